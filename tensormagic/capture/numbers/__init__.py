"""Python's numbers in captured code, and values whose class or presence is data-dependent."""
