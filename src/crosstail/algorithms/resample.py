from crosstail.algorithms.erm import ERM


class Resample(ERM):
    """Resample: ERM on batches in which all classes of a domain are equally frequent (Japkowicz, 2000)."""

    family = "imbalance"
    class_balanced = True
    differs = ("the classes of each domain take turns; the BoDA code draws them with equal probability",)
