"""Effects of a running graph, in the program's order: checks, errors, and printing."""
