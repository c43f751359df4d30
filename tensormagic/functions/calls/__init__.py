"""Calls of captured functions: what is given, which program runs, what is handed back."""
