"""Live views: what follows when a number moves. The widgets themselves are in ``widgets``."""
