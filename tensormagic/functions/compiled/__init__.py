"""Functions compiled ahead of time: what they need, files, export to C."""
