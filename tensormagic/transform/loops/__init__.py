"""Rewrites of loops as a whole."""
