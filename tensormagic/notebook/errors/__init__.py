"""Errors as the user sees them, and hints."""
