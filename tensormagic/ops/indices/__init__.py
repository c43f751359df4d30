"""Elements by integer arrays: gathered, scattered, selected, sorted."""
