"""The prevalence of the classes at a site: corrected for, and estimated from unlabelled samples."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pandas as pd
from numpy.typing import NDArray

TOLERANCE = 1e-4  # of a sum of shares in a file
CHANGE = 1e-6  # of the estimate in a step of EM, at its end
STEPS = 1000
SIGMAS = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class EstimatedPrior:
    """Shares (C,) of the classes among samples, with their 95 % intervals."""

    share: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def estimate_prior(balanced: NDArray[np.floating], plausible: Iterable[NDArray[np.floating]] = ()) -> EstimatedPrior:
    """The shares that make unlabelled samples most likely, by EM (Saerens et al., 2002), from balanced probabilities.

        π_c ← (1/N) Σ_i π_c p_ic / Σ_k π_k p_ik

    With calibrated probabilities the log likelihood Σ_i log Σ_k π_k p_ik is concave in π. Its curvature gives the
    intervals, which are widened by how far estimates differ under other `plausible` calibrations of the first samples:
    the squares of the two errors are added on the logit scale.
    """
    from scipy.special import expit, logit  # here, because most predictions estimate no prevalence

    p = np.asarray(balanced)
    if not len(p):
        raise ValueError("no samples to estimate the prevalence from")
    equal = np.full(p.shape[1], 1 / p.shape[1], p.dtype)
    found = _most_likely(p, equal, CHANGE)
    low, high = _intervals(p, found)
    others = [(len(q), _most_likely(q, (0.9 * found + 0.1 * equal).astype(q.dtype), 10 * CHANGE)) for q in plausible]
    if others:
        number, least = others[0][0], 0.5 / len(p)
        centre = found if number == len(p) else _most_likely(p[:number], equal, CHANGE)
        middle, below, above, start, *moved = (
            logit(each.clip(least, 1 - least)) for each in (found, low, high, centre, *(share for _, share in others))
        )
        error = SIGMAS * np.sqrt(((np.array(moved) - start) ** 2).mean(0))
        low = np.where(low > 0, np.minimum(low, expit(middle - np.hypot(middle - below, error))), 0)
        high = np.maximum(high, expit(middle + np.hypot(above - middle, error)))
    return EstimatedPrior(found, low, high)


def _most_likely(p: NDArray[np.floating], share: NDArray[np.floating], change: float) -> NDArray[np.float64]:
    """Shares (C,) after EM from these, which ends when a step changes none of them by more than `change`."""
    for _ in range(STEPS):
        updated = share * (p.T @ (1 / (p @ share).clip(np.finfo(p.dtype).tiny))) / len(p)
        moved = float(np.abs(updated - share).max())
        share = updated
        if moved < change:
            break
    return share.astype(np.float64) / share.sum(dtype=np.float64)


def _intervals(p: NDArray[np.floating], share: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """95 % intervals (C,) of shares that were estimated: of those above 0 from the curvature, on the logit scale.

    A share of about 0 lies on the border of what is possible, where curvature says nothing. It may rise, at the
    expense of all others, until the log likelihood has fallen by 1.92.
    """
    from scipy.special import expit, logit  # here, because most predictions estimate no prevalence

    inside = np.flatnonzero(share > 1 / len(p))
    mixed = (p @ share.astype(p.dtype)).clip(np.finfo(p.dtype).tiny)
    weighted = p[:, inside] / mixed[:, None]
    information = (weighted.T @ weighted).astype(np.float64)
    centred = np.eye(len(inside)) - 1 / max(1, len(inside))  # shares move within their sum
    covariance = np.linalg.pinv(centred @ information @ centred, hermitian=True)
    middle = share[inside].clip(1e-9, 1 - 1e-9)
    half = SIGMAS * np.sqrt(covariance.diagonal().clip(0)) / (middle * (1 - middle))
    low, high = np.zeros_like(share), np.ones_like(share)
    low[inside], high[inside] = (expit(logit(middle) + sign * half.clip(max=50)) for sign in (-1, 1))
    for c in inside if len(inside) > 1 else ():  # it may be 0 if that lowers the likelihood as little
        without = (mixed - share[c] * p[:, c]) / (1 - share[c])
        low[c] *= float(np.log((mixed / without.clip(1e-300)).clip(1e-300)).sum()) > 1.92
    for c in np.flatnonzero(share <= 1 / len(p)):
        ratio = p[:, c].astype(np.float64) / mixed - 1
        least, most = 0.0, 1.0
        for _ in range(30):
            middle_of = (least + most) / 2
            fallen = -float(np.log1p(middle_of * ratio).clip(min=-700).sum()) > 1.92
            least, most = (least, middle_of) if fallen else (middle_of, most)
        high[c] = most
    if len(inside) == 1:  # it may lack what the others may have
        low[inside] = max(0.0, 1 - float(np.delete(high, inside).sum()))
    return low, high


def read_table(file: Path, needed: Sequence[str], option: str = "", sep: str | None = None) -> pd.DataFrame:
    """A table with these columns as text, by the separator of its header or `sep`; errors name the `option`."""
    try:
        table = pd.read_csv(file, sep=sep, engine="python", dtype=str)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{option}{file}: not a table ({error})") from None
    if table.empty:
        raise ValueError(f"{option}{file}: has no rows")
    for name in needed:
        if name not in table:
            raise ValueError(f"{option}{file}: the column {name!r} is missing, found {', '.join(table.columns)}")
    return table


def read_prior(file: Path, classes: Sequence[str]) -> NDArray[np.float64]:
    """Shares (C,) from a .csv file with the columns `class` and `share`; they are non-negative and sum to 1."""
    table = read_table(file, ("class", "share"), "--prior ", sep=",")
    shares = pd.to_numeric(table["share"], errors="coerce").set_axis(table["class"])
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise ValueError(f"--prior {file}: the share of {name!r} is not a number between 0 and 1")
    for what, names in (
        ("twice", shares.index[shares.index.duplicated()]),
        ("not a class of the model", shares.index.difference(list(classes))),
        ("missing", pd.Index(list(classes)).difference(shares.index)),
    ):
        if len(names):
            raise ValueError(f"--prior {file}: {names[0]!r} is {what}; the classes are {', '.join(classes)}")
    if abs(shares.sum() - 1) > TOLERANCE:
        raise ValueError(f"--prior {file}: the shares sum to {shares.sum():g}, expected 1")
    return (shares.loc[list(classes)] / shares.sum()).to_numpy(np.float64)
