"""Floor 2: from graphs to values; NumPy, and machine code."""
