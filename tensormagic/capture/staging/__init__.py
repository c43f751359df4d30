"""Control flow of captured code: syntax becomes calls that decide, when they run, between Python and a region of the graph."""
