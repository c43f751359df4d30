"""Calls in staged code."""
