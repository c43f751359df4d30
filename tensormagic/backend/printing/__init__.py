"""The text of kernels and of the functions that drive them, from plans."""
