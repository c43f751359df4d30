"""The NumPy tier: graphs run, or written out, as plain NumPy."""
