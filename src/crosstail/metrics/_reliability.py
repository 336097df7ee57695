"""How far confidence and accuracy are apart: the calibration error with its interval, and bins for a chart."""

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch.special import gammaincc

BINS, IN_BIN, DRAWS = 15, 20, 1000


def calibration_error(
    confidence: NDArray[np.float64], hit: NDArray[np.bool_], weights: NDArray[np.float64] | None = None, seed: int = 0
) -> tuple[float, float, float]:
    """Mean |confidence − accuracy| over bins of about equal size, and its 95 % interval.

    Few samples make bins differ by chance, which only ever adds to the error. The interval, from normal draws for each
    bin, makes up for it, so the estimate may lie above it. It begins at 0 if a χ² test finds no difference at all.
    """
    table = reliability(confidence, hit, weights)
    share, gap = table["share"].to_numpy(), (table["confidence"] - table["accuracy"]).to_numpy()
    deviation = table["deviation"].to_numpy()
    error = float(share @ np.abs(gap))
    drawn = np.abs(gap + deviation * np.random.default_rng(seed).standard_normal((DRAWS, len(gap)))) @ share
    bias = drawn.mean() - error
    low, high = np.quantile(drawn, [0.025, 0.975]) - (2 * bias, bias)
    differ = float(((gap / deviation.clip(1e-9)) ** 2).sum())
    if float(gammaincc(*torch.tensor([len(gap), differ], dtype=torch.float64) / 2)) >= 0.025:
        low = 0.0
    return error, float(max(low, 0.0)), float(min(high, 1.0))


def reliability(
    confidence: NDArray[np.float64], hit: NDArray[np.bool_], weights: NDArray[np.float64] | None = None
) -> pd.DataFrame:
    """Bins of about equal weight, with equal confidences together: mean confidence, accuracy, share and samples.

    `deviation` is the standard error of the difference between the first two.
    """
    w = np.ones(len(hit)) if weights is None else weights
    of = bins_of(confidence, w)
    bins = int(of.max()) + 1
    total = np.bincount(of, w, minlength=bins)
    kept = total > 0
    total = np.where(kept, total, 1)
    mean, right = (np.bincount(of, w * each, minlength=bins) / total for each in (confidence, hit))
    around = (w * (confidence - hit - (mean - right)[of])) ** 2
    number = np.bincount(of, minlength=bins)
    deviation = np.sqrt(np.bincount(of, around, minlength=bins) * number / (number - 1).clip(1)) / total
    found = {"confidence": mean, "accuracy": right, "share": total / w.sum(), "samples": number, "deviation": deviation}
    return pd.DataFrame(found)[kept].reset_index(drop=True)


def bins_of(confidence: NDArray[np.float64], w: NDArray[np.float64]) -> NDArray[np.int64]:
    """The bin of each sample (N,): bins have about equal weight, and equal confidences are in one."""
    bins = int(np.clip(w.sum() ** 2 / (w**2).sum() / IN_BIN, 1, BINS))
    values, same = np.unique(confidence, return_inverse=True)
    of_value = np.bincount(same, w, minlength=len(values))
    middle = (np.cumsum(of_value) - of_value / 2) / w.sum()
    return np.minimum((middle * bins).astype(np.int64), bins - 1)[same]
