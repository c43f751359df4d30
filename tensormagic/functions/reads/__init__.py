"""What a captured function reads of Python's state, and the check that it is unchanged."""
