"""The structure of sparse Jacobians."""
