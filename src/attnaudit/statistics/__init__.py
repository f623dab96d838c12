"""Intervals and scores: arrays in, numbers out."""
