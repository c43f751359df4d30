"""Formulas of lazy values: the tree of a formula, its text and its LaTeX."""
