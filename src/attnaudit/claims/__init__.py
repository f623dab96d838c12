"""What the papers say: their tables and figures as data, and how to repeat them."""
