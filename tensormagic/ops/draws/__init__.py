"""Random numbers: draws, the states they are made of, and how samples move with their parameters."""
