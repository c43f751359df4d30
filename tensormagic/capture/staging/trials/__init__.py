"""Code that is run on trial: what it can reach, what it has changed, and how that is undone."""
