"""What capture sees of the attention of whole libraries: `python -m benchmarks.coverage --help`."""
