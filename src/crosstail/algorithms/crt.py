"""Classifier re-training."""

from crosstail.algorithms.erm import ERM


class CRT(ERM):
    """CRT: ERM, then a new classifier on class-balanced batches of fixed features (Kang et al., 2020)."""

    family = "imbalance"
    alias_of = "erm:retrain"
    differs = ("the classes are balanced within each domain",)
