"""Recognise attention in the operations of a forward pass."""
