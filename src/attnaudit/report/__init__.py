"""What a person looks at: terminal tables and figures."""
