"""Rewrite rules of the user's own: reading, trying, installing."""
