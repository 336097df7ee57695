"""A finished run as a function from inputs to probabilities."""
