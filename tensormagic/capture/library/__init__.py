"""NumPy's and SciPy's functions on lazy arrays, by subject."""
