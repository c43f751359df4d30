"""Text and errors that depend on data: print, raise, assert, f-strings."""
