"""Linear algebra: factorisations and what is made of them."""
