"""The best worst class on validation, whatever its domain, as in SubpopBench without attributes (Yang et al., 2023)."""

from typing import TYPE_CHECKING

import numpy as np

from crosstail.sweeps.rules import Rule

if TYPE_CHECKING:
    from crosstail.training.result import SplitAccuracy


def worst_class(split: "SplitAccuracy") -> float | None:
    """The lowest recall of a class over the samples of all domains together; None without samples."""
    hits, totals = (np.sum(table, axis=0) for table in (split.hits, split.totals))
    known = totals > 0
    return float((hits[known] / totals[known]).min()) if known.any() else None


RULE = Rule(label="the worst class on validation, without domains", value=worst_class)
