"""Arithmetic that every package shares: threads, precision, random streams, digests, masks, blocks of rows."""
