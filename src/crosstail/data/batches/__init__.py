"""Batches with the same number of samples per domain."""
