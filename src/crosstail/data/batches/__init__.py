"""Batches with the same number of samples per domain: balanced, prepared ahead, a function of seed and step."""

from crosstail.data.batches.batch import DomainBatch, to_input
from crosstail.data.batches.domain_batches import DomainBatches
from crosstail.data.batches.sampler import PairBalancedSampler

__all__ = ["DomainBatch", "DomainBatches", "PairBalancedSampler", "to_input"]
