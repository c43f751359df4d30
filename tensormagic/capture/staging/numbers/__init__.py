"""Truth, order, conversions and classes of lazy numbers in staged code."""
