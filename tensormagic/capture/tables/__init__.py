"""Series and DataFrames of pandas in captured code."""
