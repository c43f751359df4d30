"""Ops that hold graphs: branches, loops, calls, recursion."""
