"""Classifier re-training."""

from crosstail.algorithms.erm import ERM


class CRT(ERM):
    """CRT: ERM, then a new classifier on class-balanced batches, the representation being fixed (Kang et al., 2020)."""

    family = "imbalance"
    decouple = True
    differs = ("the classes are balanced within each domain",)
