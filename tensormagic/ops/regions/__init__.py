"""Ops that contain graphs: branches, loops, calls, recursion."""
