"""Graphs on a card: the device, the library of calls on its arrays, kernels of our own, and what runs a graph with them."""
