"""Rules that users write: their text, and their trial on numbers."""
