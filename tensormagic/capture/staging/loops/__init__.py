"""Loops, comprehensions and recursion as regions of the graph."""
