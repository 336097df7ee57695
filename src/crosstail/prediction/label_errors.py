"""Samples that are probably mislabelled, according to a model that was not trained on them."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

MOST = 2**20  # probabilities that the two numbers are fitted to, of every k-th sample
WORTH = 1 / 3  # least chance that a listed sample is mislabelled
TRUSTED = 1 / 2  # share of the labels that a model may contradict and still be asked about them
SHARPEST = 3.0  # greatest |log| of the inverse temperature

Floats = NDArray[np.float64]


def worth_a_look(
    probabilities: NDArray[np.floating], y: NDArray[np.int64], shares: NDArray[np.floating]
) -> pd.DataFrame:
    """Rows whose label is wrong with a `chance` of at least one in three, the greatest first, and what they `seem`.

    A label is taken to be drawn from the model's probabilities at some temperature, or, at some rate, by accident from
    the other classes by their `shares` (N, C); the likeliest temperature and rate give each label's chance to be wrong.
    Mistakes of which the model is sure look like accidents: one in C of its mistakes is taken to be such, and chances
    are lowered by as much. A model that contradicts most labels judges none. Probabilities (N, C) must be at the
    prevalence of the labels at every site, not for equally frequent pairs.
    """
    from scipy.optimize import minimize  # here, because few commands need it
    from scipy.special import expit

    some = slice(None, None, -(-probabilities.size // MOST))

    def surprise(numbers: Floats) -> float:
        right, wrong = _likely(probabilities[some], y[some], shares[some], numbers[1])
        rate = expit(numbers[0])
        return -float(np.log((1 - rate) * right + rate * wrong).sum())

    fitted = minimize(surprise, [-4.0, 0.0], method="Nelder-Mead").x if len(y) else np.zeros(2)
    rate, contradicted = float(expit(fitted[0])), np.mean(probabilities.argmax(1) != y) if len(y) else 1.0
    sure = max(0.0, contradicted - rate) / probabilities.shape[1]
    right, wrong = _likely(probabilities, y, shares, fitted[1])
    chance = max(0.0, rate - sure) * wrong / ((1 - rate) * right + rate * wrong)
    listed = np.flatnonzero((chance >= WORTH) & (probabilities.argmax(1) != y) & (contradicted <= TRUSTED))
    row = listed[np.argsort(-chance[listed], kind="stable")]
    own = probabilities[row, y[row]].astype(np.float64)
    return pd.DataFrame({"row": row, "seems": probabilities[row].argmax(1), "probability": own, "chance": chance[row]})


def _likely(p: NDArray[np.floating], y: NDArray[np.int64], shares: NDArray[np.floating], sharper: float) -> Any:
    """The probability of every label (N,) if it is the true class, and if it was drawn from the other classes."""
    log_p = np.log(p.astype(np.float64).clip(1e-12)) * np.exp(np.clip(sharper, -SHARPEST, SHARPEST))
    p = np.exp(log_p - log_p.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    rows, others = np.arange(len(y)), 1 - shares.astype(np.float64).clip(0, 0.999)
    right = p[rows, y].clip(1e-12)
    return right, shares[rows, y] * ((p / others).sum(1) - right / others[rows, y]).clip(1e-12)
