"""NumPy's random generators in captured code."""
