"""From the syntax of a cell or a function to staged code."""
