"""Functions compiled ahead of time: their memory and cost, files, export to C."""
