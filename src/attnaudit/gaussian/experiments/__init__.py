"""Experiments: each takes its settings and a seed, and returns what theory said, what was measured, and the curves."""
