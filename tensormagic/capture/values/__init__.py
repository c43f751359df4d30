"""Lazy arrays: operators, methods, indexing, ufuncs."""
