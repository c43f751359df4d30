"""Kernels of our own for a GPU: their text, and their launches."""
