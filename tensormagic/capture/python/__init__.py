"""Facts about Python: its instructions, its own functions, and where the user's code is."""
