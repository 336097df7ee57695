"""How much more labels of a pair would help, from what fewer of them cost."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from crosstail import second_stages
from crosstail.algorithms import Algorithm
from crosstail.pairs import pair_number
from crosstail.second_stages import Features, FittedStage
from crosstail.training.run import Run
from crosstail.training.second_stage import embedded, features_of

MORE = 20  # labels
OFFSET = 5.0  # labels that a pair is worth without any: it borrows from its class and its domain
SPREAD = 5.0  # samples of average recall that are added to every pair's
STEEPEST = 1.0

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PairGain:
    """A pair, and what MORE labels of it would bring."""

    domain: str
    label: str
    labels: int
    recall: float | None
    """Of held-out samples, with SPREAD more of average recall; None without any."""
    gain: float


def shrunk_errors(pair: NDArray[np.int64], hits: NDArray[np.bool_], pairs: int) -> Floats:
    """1 − recall of every pair (P,), each with SPREAD more samples of average recall."""
    number, found = np.bincount(pair, minlength=pairs), np.bincount(pair, hits, minlength=pairs)
    return np.asarray(1 - (found + SPREAD * hits.mean()) / (number + SPREAD))


def exponent(counts: NDArray[np.integer], error: Floats, error_of_half: Floats) -> float:
    """The b of error ∝ (n + m)^−b with which errors of pairs with n and with n / 2 labels agree on average."""
    from scipy.optimize import brentq  # here, because few commands need it

    ratio, seen = (counts + OFFSET) / (counts / 2 + OFFSET), counts > 0

    def gap(b: float) -> float:
        return float((error[seen] * ratio[seen] ** b).mean() - error_of_half[seen].mean())

    if not seen.any() or gap(0.0) >= 0:  # half of the labels are as good
        return 0.0
    return STEEPEST if gap(STEEPEST) <= 0 else float(brentq(gap, 0.0, STEEPEST))


def thinned(pair: NDArray[np.int64], pairs: int, seed: int) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Twice, half of the pairs (P,) in turn, and the samples (N,) that are left without half of those pairs' own.

    The others keep theirs, so that what is lost is not what they would have lent.
    """
    rng = np.random.default_rng(seed)
    side, dropped = rng.permutation(pairs) % 2, rng.random(len(pair)) < 0.5
    for k in range(2):
        yield side == k, ~(dropped & (side[pair] == k))


def gain(counts: NDArray[np.integer], error: Floats, b: float, more: int) -> Floats:
    """How much recall pairs with these errors gain from so many `more` labels: e (1 − ((n + m) / (n + more + m))^b)."""
    return np.asarray(error * (1 - ((counts + OFFSET) / (counts + more + OFFSET)) ** b))


def pair_gains(run: Run, algorithm: Algorithm) -> list[PairGain]:
    """The pairs of a run, the largest gain first; none without its data or held-out samples.

    The classifier `pooled` is fitted on the features of all training samples and, twice, without half of those of half
    of the pairs, and judged on the validation and test samples.
    """
    if run.inputs is None:
        return []
    seen, stage, shape = embedded(algorithm, run.inputs.embedded()), second_stages.find("pooled"), run.result.counts
    held, pairs = np.flatnonzero(np.isin(seen.split, ("val", "test"))), np.size(shape)
    if not len(held):
        return []
    assert isinstance(stage, FittedStage)
    whole = features_of(run.result.spec, stage, algorithm, seen)
    z = torch.from_numpy(np.asarray(seen.plain().x)[held].astype(np.float32))
    y, pair = seen.y[held], pair_number(seen.y[held], seen.domain[held], seen.num_classes)

    def errors(features: Features) -> Floats:
        with torch.no_grad():
            said = stage.fit(features)(z, torch.from_numpy(seen.domain[held])).argmax(1).numpy()
        return shrunk_errors(pair, said == y, pairs)

    error, counts, error_of_half = errors(whole), whole.counts.ravel(), np.zeros(pairs)
    for halved, kept in thinned(whole.pair, pairs, seed=0):
        part = whole.keep(np.flatnonzero(kept))
        left = np.bincount(part.pair, minlength=pairs).reshape(whole.counts.shape)
        error_of_half[halved] = errors(replace(part, counts=left))[halved]
    gains = gain(counts, error, exponent(counts, error, error_of_half), MORE)
    found = []
    for p in np.argsort(-gains, kind="stable").tolist():
        d, c = divmod(p, seen.num_classes)
        if counts.reshape(whole.counts.shape)[:, c].any():
            recall = float(1 - error[p]) if (pair == p).any() else None
            about = int(counts[p]), recall, float(gains[p])
            found.append(PairGain(seen.domains[d], seen.classes[c], *about))
    return found
