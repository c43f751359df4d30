"""What happens when the graph runs, in the program's order: checks, errors, and what is printed."""
