"""Threads, precision and random streams."""
