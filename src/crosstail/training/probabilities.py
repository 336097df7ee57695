"""Probabilities of the final model for held-out samples: validation and test."""

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
from numpy.typing import NDArray

from crosstail.algorithms import Algorithm
from crosstail.data import DomainDataset
from crosstail.data.sources._npz_members import UNREADABLE, read_header
from crosstail.metrics import PairAccuracy
from crosstail.metrics.calibration import Calibration, calibrate
from crosstail.storage import write_whole
from crosstail.training.evaluation import answers
from crosstail.training.folder import RunFolder
from crosstail.training.predictions import Predictions
from crosstail.training.result import PROBABILITIES, KnownDomain, SplitAccuracy

MOST, LEAST = 2**26, 100  # log probabilities that are kept, and samples of which they are at least
KINDS = {"test": np.bool_, "unknown": np.float16, "known": np.float16}  # the other arrays are integers


@dataclass(frozen=True, eq=False)
class Probabilities:
    """Log probabilities (N, C) in half precision, beside the row in the data, class, domain and group of each sample.

    With very many classes, they are those of a random part of the held-out samples.

    `predicted` is the class with the highest score, which half precision may not tell from the second. `known` and
    `known_predicted` are those of a model that uses the domain, where it is told the domain of each sample.
    """

    row: NDArray[np.int64]
    test: NDArray[np.bool_]  # else validation
    y: NDArray[np.int64]
    domain: NDArray[np.int64]
    predicted: NDArray[np.int64]
    unknown: NDArray[np.float16]
    known_predicted: NDArray[np.int64] | None = None
    known: NDArray[np.float16] | None = None
    group: NDArray[np.int64] | None = None  # where the data have groups

    @classmethod
    def pooled(cls, runs: Sequence["Probabilities"]) -> Self:
        """Out-of-sample probabilities from runs on parts of the data, for a model that was trained on all of it.

        Of several runs, which were tested on different samples, the test samples of every other one count as
        validation samples, so that temperatures and prediction sets come from different ones.
        """
        if len(runs) == 1:
            return cls(**vars(runs[0]))
        parts = [replace(run.part(test=True), test=run.test[run.test] & (k % 2 == 0)) for k, run in enumerate(runs)]
        values = {name: [getattr(part, name) for part in parts] for name in vars(parts[0])}
        every: dict[str, Any] = {n: None if v[0] is None else np.concatenate(v) for n, v in values.items()}
        return cls(**every)

    def told(self) -> NDArray[np.float16]:
        """Log probabilities with the domain known; the same as `unknown` if the model does not use it."""
        return self.unknown if self.known is None else self.known

    def part(self, test: bool) -> Self:
        """The test samples, or the validation samples."""
        return self.keep(self.test == test)

    def keep(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> Self:
        """Some of the samples."""
        return type(self)(**_some(rows, **vars(self)))

    def predictions(self) -> Predictions:
        """The predicted classes of the test samples."""
        test = self.part(test=True)
        return Predictions(test.predicted, test.y, test.domain, test.group, test.known_predicted)

    def calibration(self, domains: Sequence[str], counts: Sequence[Sequence[int]]) -> Calibration:
        """Calibration fitted on the validation samples; `counts` are the training counts."""
        part = self.part(test=False)
        return calibrate(part.unknown, part.told(), part.y, part.domain, domains, np.array(counts))

    def save(self, folder: RunFolder) -> None:
        """Store the arrays, compressed."""
        content = io.BytesIO()
        # Level 1: noise is no smaller at a higher one, and 10,000 classes take minutes.
        with ZipFile(content, "w", ZIP_DEFLATED, compresslevel=1) as archive:
            for name, value in vars(self).items():
                if value is not None:
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, value, allow_pickle=False)
        write_whole(folder.path / PROBABILITIES, content.getbuffer())

    @classmethod
    def load(cls, folder: RunFolder) -> Self | None:
        """Load the probabilities of a finished run, or None if they were not kept."""
        file = folder.path / PROBABILITIES
        if not file.exists():
            return None
        content = file.read_bytes()
        try:
            found = _arrays(content, [field.name for field in fields(cls)])
            for key, value in found.items():
                kind = KINDS.get(key, np.int64)
                shape = found["unknown"].shape[: 2 if kind is np.float16 else 1]
                if value.shape != shape or value.dtype != kind or np.isnan(value).any():
                    raise ValueError
            kept = cls(**found)
        except (*UNREADABLE, KeyError, TypeError):
            raise folder.damaged(PROBABILITIES) from None
        classes = [found[key] for key in ("y", "predicted", "known_predicted") if key in found]
        folder.check_samples(PROBABILITIES, classes, kept.domain, width=kept.unknown.shape[1])
        return kept


def _arrays(content: bytes, names: Sequence[str]) -> dict[str, Any]:
    """The arrays of an .npz file that have these names; a header that claims more than there can be is refused."""
    found = {}
    with ZipFile(io.BytesIO(content)) as archive:
        for name in {f"{name}.npy" for name in names} & set(archive.namelist()):
            with archive.open(name) as member:
                shape, _, dtype = read_header(member)
            if math.prod(shape) * dtype.itemsize > 1032 * len(content):  # nothing is deflated to less than 1/1032
                raise ValueError
            with archive.open(name) as member:
                found[name.removesuffix(".npy")] = np.lib.format.read_array(member, allow_pickle=False)
    return found


class HeldOut(NamedTuple):
    """Probabilities, predictions and accuracies on the validation and test samples of a data set."""

    probabilities: Probabilities
    predictions: Predictions  # of all test samples
    known: KnownDomain | None  # accuracies where it is told the domain of every sample, if it uses it


def held_out(algorithm: Algorithm, dataset: DomainDataset, known: bool) -> HeldOut:
    """Score the validation and test samples; with `known`, also with their domain given."""
    row = np.flatnonzero(np.isin(dataset.split, ("val", "test")))
    keep = np.zeros(len(row), bool)
    keep[np.random.default_rng(0).permutation(len(row))[: max(LEAST, MOST // dataset.num_classes)]] = True
    said = answers(algorithm, dataset, row, keep=keep)
    told = answers(algorithm, dataset, row, known=True, keep=keep) if known else None
    test, y, domain = dataset.split[row] == "test", dataset.y[row], dataset.domain[row]
    group = None if dataset.group is None else dataset.group[row]
    told_predicted = None if told is None else told.predicted
    samples = {"y": y, "domain": domain, "predicted": said.predicted, "group": group}
    kept = Probabilities(
        row=row[keep],
        test=test[keep],
        **_some(keep, **samples, known_predicted=told_predicted),
        unknown=said.log_p,
        known=None if told is None else told.log_p,
    )
    accuracies = None
    if told_predicted is not None:
        sizes = {"num_domains": dataset.num_domains, "num_classes": dataset.num_classes}
        parts = {"validation": ~test, "test": test}
        accuracies = KnownDomain(
            **{
                name: SplitAccuracy.of(PairAccuracy.from_predictions(told_predicted[own], y[own], domain[own], **sizes))
                for name, own in parts.items()
            }
        )
    return HeldOut(kept, Predictions(**_some(test, **samples, known=told_predicted)), accuracies)


def _some(rows: NDArray[np.bool_] | NDArray[np.int64], **values: NDArray[Any] | None) -> dict[str, Any]:
    return {name: None if value is None else value[rows] for name, value in values.items()}
