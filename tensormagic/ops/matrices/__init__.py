"""Linear algebra: factorisations and functions computed from them."""
