"""Rewrite rules of the user's own: reading, testing, installing."""
