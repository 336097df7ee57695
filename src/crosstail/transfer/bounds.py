"""Lower bounds of the BoDA loss: theorems 1 and 2 of the paper."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from crosstail.transfer.statistics import TransferStatistics


def boda_lower_bound(statistics: TransferStatistics, counts: NDArray[Any] | Tensor) -> float:
    """Lower bound of the BoDA loss, summed over the training set, given α, β, γ.

    L ≥ N log(D − 1 + D (C − 1) exp((C D α − C β − C (D − 1) γ) / N)): theorem 1 for `graph.statistics` (ν = 0),
    theorem 2 for `graph.calibrated_statistics(counts, nu)`. Both require at least two domains, two classes, and one
    sample in every pair.

    >>> round(boda_lower_bound(TransferStatistics(0.0, 0.0, 0.0), np.ones((2, 2))), 4)  # 4 log(1 + 2)
    4.3944
    """
    table = np.asarray(counts)
    num_domains, num_classes = table.shape
    if num_domains < 2 or num_classes < 2:
        raise ValueError(f"the bound requires two domains and two classes, found {num_domains} and {num_classes}")
    if (table <= 0).any():
        d, c = np.argwhere(table <= 0)[0]
        raise ValueError(f"the bound requires samples in every pair; (domain {d}, class {c}) has none")
    n = float(table.sum())
    alpha, beta, gamma = statistics
    exponent = num_classes * (num_domains * alpha - beta - (num_domains - 1) * gamma) / n
    return n * float(np.logaddexp(math.log(num_domains - 1), math.log(num_domains * (num_classes - 1)) + exponent))
