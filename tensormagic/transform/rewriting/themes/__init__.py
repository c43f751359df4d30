"""The rules, a file for each theme."""
