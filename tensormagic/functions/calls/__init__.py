"""Calls of captured functions: their arguments, the program that runs, and the results."""
