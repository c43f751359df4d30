"""Calls of functions that know nothing of lazy arrays."""
