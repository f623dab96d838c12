"""Published tables and figures as data, and how to repeat them."""
