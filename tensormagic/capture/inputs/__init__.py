"""How the user's values come in: names, arguments, attributes, items."""
