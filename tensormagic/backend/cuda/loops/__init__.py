"""Loops and branches on a GPU, as launches that the host need not wait for."""
