from torch import Tensor

from crosstail.algorithms._hparams import LogUniform, OneMinus, hp
from crosstail.algorithms._weighted import Weighted
from crosstail.losses.tails import class_balanced_weights


class CBLoss(Weighted):
    """CBLoss: weights (1 − β) / (1 − β^n), the inverse effective number of samples (Cui et al., 2019).

    As in the paper, the weights sum to the number of classes: here, those that the domain has.
    """

    class Hparams(Weighted.Hparams):
        beta: float = hp(
            0.9999, OneMinus(LogUniform(1e-5, 1e-2)), "β: at most 1 / (1 − β) effective samples", above=0, below=1
        )

    def weigh(self, counts: Tensor) -> Tensor:
        """Weights (D, C); each row sums to the number of classes present in the domain."""
        return class_balanced_weights(counts, beta=self.hparams.beta)
