"""Floor 2: from Python to graphs; lazy arrays and what NumPy does with them."""
