"""What reverse mode keeps, and how it goes back through loops."""
