"""Widgets of the notebook: each is one class, one hand-written script and one style sheet."""
