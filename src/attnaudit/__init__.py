"""attnaudit."""
