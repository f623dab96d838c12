"""What the values of a head could be: each theory predicts them from the rest of the head."""
