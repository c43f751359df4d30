"""Notebooks as programs: captured cells become functions, or plain NumPy with generated gradients."""
