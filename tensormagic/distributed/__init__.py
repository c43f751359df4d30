"""Functions split over chunks of rows, and over the workers of a cluster."""
