"""The compile worker, what asks it, and the cache on disk."""
