"""What is stored: run folders, evidence, and the typed content of every file in them."""
