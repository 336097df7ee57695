"""Domain-class distribution alignment without balance: the ablation of BoDA."""

from crosstail.algorithms import boda


class DA(boda.BoDA):
    """DA: BoDA without counts in the distances (Yang, Wang and Katabi, 2022, equation 1)."""

    balanced = False
