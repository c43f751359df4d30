"""NumPy programs as benchmark suites have them, written plainly, to be captured as they are."""
