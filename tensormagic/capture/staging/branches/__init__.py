"""Branches on data-dependent conditions, and the join of what they leave."""
