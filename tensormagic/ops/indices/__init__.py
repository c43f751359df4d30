"""Elements selected by integer arrays: gathered, scattered, selected by masks, sorted."""
