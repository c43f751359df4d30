"""Backpropagation, seen: the values of a small graph, the adjoints that flow back, and what each operand adds."""
