"""Scalar functions, one record each: their derivatives and their loop code."""
