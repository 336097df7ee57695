"""What a run leaves behind: one record per evaluation, and a result at the end."""

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from crosstail.metrics import PairAccuracy
from crosstail.training.spec import RunSpec


class SplitAccuracy(msgspec.Struct, frozen=True, kw_only=True):
    """Accuracies on one split, between 0 and 1; None for an empty group."""

    average: float | None
    worst_domain: float | None
    pair_average: float | None
    worst_pair: float | None
    shots: dict[str, float | None] = {}
    hits: list[list[int]]
    totals: list[list[int]]

    @classmethod
    def of(cls, accuracy: PairAccuracy, counts: NDArray[np.int64] | None = None, **shots: int) -> "SplitAccuracy":
        """From hits and totals, with the shots where the training counts are given."""
        return cls(**accuracy.to_json(counts, **shots))

    def pairs(self) -> PairAccuracy:
        """Hits and totals (D, C) with the metrics on them."""
        return PairAccuracy(np.asarray(self.hits), np.asarray(self.totals))


class Transferability(msgspec.Struct, frozen=True, kw_only=True):
    """α, β, γ of the training features; None where no two pairs are comparable."""

    alpha: float | None
    beta: float | None
    gamma: float | None


class Trace(Transferability, frozen=True, kw_only=True):
    """The graph at one evaluation: its statistics, and a 2-D point for every pair with training samples."""

    points: list[tuple[float, float]]


class Averaged(msgspec.Struct, frozen=True, kw_only=True):
    """The accuracies of the averaged weights at one evaluation."""

    validation: SplitAccuracy
    test: SplitAccuracy


class Evaluation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of records.jsonl; `losses` are means since the evaluation before."""

    stage: int
    step: int
    seconds: float
    losses: dict[str, float]
    validation: SplitAccuracy
    test: SplitAccuracy
    averaged: Averaged | None = None
    trace: Trace | None = None


class DataFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Which data a run was trained on."""

    checksum: str
    samples: int
    notes: list[str]


class RawWeights(msgspec.Struct, frozen=True, kw_only=True):
    """With averaged weights: what the raw ones reach at their own best evaluation."""

    selected_step: int
    validation: SplitAccuracy
    test: SplitAccuracy


class RunResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """result.json."""

    spec: RunSpec
    versions: dict[str, str]
    selected_step: int
    selected_steps: list[int]
    """By stage; the last is `selected_step`."""
    seconds: float
    domains: list[str]
    classes: list[str]
    counts: list[list[int]]
    validation: SplitAccuracy
    test: SplitAccuracy
    transferability: Transferability
    hparams: dict[str, Any]
    """All of them: a later version may have other defaults."""
    input_shape: list[int]
    weights: str | None
    """Checksum of the frozen backbone's weights."""
    data: DataFacts
    raw: RawWeights | None = None
