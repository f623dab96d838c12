"""Experiments: each takes settings and a seed, and compares theory with measurements."""
