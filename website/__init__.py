"""The documentation as a site: `python -m website` builds it from docs/, the claims and the docstrings."""
