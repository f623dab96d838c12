"""Models of transformers: shrunk configurations, and the inputs that each model takes."""
