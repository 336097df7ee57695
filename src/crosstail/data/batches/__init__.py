"""Batches with the same number of samples per domain: balanced, prepared ahead, a function of seed and step."""
