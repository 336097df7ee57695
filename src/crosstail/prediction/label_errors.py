"""Samples that are probably mislabelled, according to a model that was not trained on them."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray


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
    number = np.bincount(y, minlength=probabilities.shape[1])
    own = probabilities[np.arange(len(y)), y].astype(np.float64)
    mean = np.bincount(y, own, minlength=len(number)) / number.clip(1)
    confident = probabilities >= np.where(number > 0, mean, np.inf)
    seems = np.where(confident, probabilities, -1).argmax(1)
    wrong = np.flatnonzero(confident.any(1) & (seems != y))
    wrong = wrong[np.argsort(own[wrong], kind="stable")]
    return pd.DataFrame({"row": wrong, "seems": seems[wrong], "probability": own[wrong]})
