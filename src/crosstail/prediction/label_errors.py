"""Samples that are probably mislabelled, according to a model that was not trained on them."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

MOST = 2**22  # probabilities from which the precision is estimated, of every k-th sample
WORTH = 1 / 2  # least share of the listed samples expected to be mislabelled; on real data, a third or more was
SEEN = 0.1  # least share of the errors that would be found on which the estimate of their number rests


def label_errors(probabilities: NDArray[np.floating], y: NDArray[np.int64]) -> pd.DataFrame:
    """Rows that are probably mislabelled, most likely first, with the class that they seem to have.

    Confident learning (Northcutt et al., 2021): the model is confident that a sample has class c if the probability
    reaches the mean probability of c among the samples labelled c. A sample is listed if there is such a class, and the
    most probable of these is not its label. Samples are ordered by the probability of their label, lowest first.
    Probabilities must be at the prevalence of the labels at every site, not for equally frequent pairs.

    >>> p = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8], [0.1, 0.9]])
    >>> label_errors(p, np.array([0, 0, 0, 1, 1])).to_dict("list")
    {'row': [2], 'seems': [1], 'probability': [0.1]}
    """
    own, seems = probabilities[np.arange(len(y)), y].astype(np.float64), _seems(probabilities, y)
    wrong = np.flatnonzero((seems >= 0) & (seems != y))
    wrong = wrong[np.argsort(own[wrong], kind="stable")]
    return pd.DataFrame({"row": wrong, "seems": seems[wrong], "probability": own[wrong]})


def worth_a_look(
    probabilities: NDArray[np.floating], y: NDArray[np.int64], shares: NDArray[np.floating]
) -> pd.DataFrame:
    """The first of `label_errors`, as long as one in two is expected to be mislabelled, or none.

    `precision` is the share of a row and those before it that is expected to be mislabelled, the others being mistakes
    of the model. It compares the list with where it would have each sample under each wrong label, labels being drawn
    by the `shares` (N, C) of the classes: if a tenth of all errors had to be below a probability where there are only k
    samples, there are at most 10 k errors. The smallest of such bounds is taken for their number.
    """
    found, some = label_errors(probabilities, y), slice(None, None, -(-probabilities.size // MOST))
    seems, p, y, drawn = (
        _seems(probabilities, y)[some],
        probabilities[some],
        y[some],
        np.array(shares[some], np.float64),
    )
    drawn[np.arange(len(y)), y] = 0
    drawn /= drawn.sum(axis=1, keepdims=True).clip(1e-12)
    listed = (seems[:, None] >= 0) & (seems[:, None] != np.arange(drawn.shape[1])) & (drawn > 0)
    order = np.argsort(p[listed], kind="stable")
    flipped, share = p[listed][order].astype(np.float64), np.append(0.0, np.cumsum(drawn[listed][order]) / len(y))
    enough = np.flatnonzero((share[1:] >= SEEN * share[-1]) & (share[1:] > 0))
    if not len(found) or not len(enough):
        return found.assign(precision=0.0).head(0)
    below = np.searchsorted(found["probability"], flipped[enough], side="right")
    errors = (below / share[1:][enough]).min()
    rank = np.arange(1, len(found) + 1)
    expected = errors * share[np.searchsorted(flipped, found["probability"], side="right")] / rank
    found = found.assign(precision=expected.clip(max=1.0))
    return found.head(int(rank[expected >= WORTH].max(initial=0)))


def _seems(probabilities: NDArray[np.floating], y: NDArray[np.int64]) -> NDArray[np.int64]:
    """The most probable of the classes (N,) that the model is confident of, or −1."""
    number = np.bincount(y, minlength=probabilities.shape[1])
    own = probabilities[np.arange(len(y)), y].astype(np.float64)
    mean = np.bincount(y, own, minlength=len(number)) / number.clip(1)
    confident = probabilities >= np.where(number > 0, mean, np.inf)
    return np.where(confident.any(axis=1), np.where(confident, probabilities, -1).argmax(axis=1), -1)
