from crosstail.algorithms._algorithm import Algorithm
from crosstail.algorithms._base import ERM, hp


class Frozen(ERM):
    """Frozen: the features as they are, for a second stage; `blend` unless another is named (Henderson, 1975)."""

    class Hparams(Algorithm.Hparams):
        lr: float = hp(1e-3, None, "learning rate of Adam, in a second stage that is trained")

    family = "ours"
    passes = 0.0
    alias_of = "frozen:blend"
    learns = False
    alone = "it trains nothing"
