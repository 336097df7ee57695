from crosstail.algorithms.erm import ERM


class CRT(ERM):
    """CRT: ERM, then a classifier retrained on class-balanced batches of frozen features (Kang et al., 2020)."""

    family = "imbalance"
    alias_of = "erm:retrain"
    differs = ("the classes of each domain take turns; the BoDA code draws them with equal probability",)
