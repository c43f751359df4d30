"""Functions split over chunks of rows."""
