"""Answers of the final model for held-out samples, validation and test, and the files that keep them."""

import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import torch
from numpy.typing import NDArray

from crosstail.algorithms import Algorithm
from crosstail.data import DomainDataset
from crosstail.data.sources._npz_members import UNREADABLE, read_header
from crosstail.metrics import Answers
from crosstail.metrics._calibration import Calibration, calibrate
from crosstail.storage import write_whole
from crosstail.training.devices import AnyFabric
from crosstail.training.evaluation import answers
from crosstail.training.folder import RunFolder
from crosstail.training.result import PROBABILITIES, RunResult

PREDICTIONS = "predictions.pt"
MOST, LEAST = 2**26, 100  # log probabilities that are kept, and samples of which they are at least
KINDS = {"test": np.bool_, "unknown": np.float16, "known": np.float16}  # the other arrays are integers
KINDS |= {"distance": np.float32, "known_distance": np.float32}
STORED = (
    *("row", "test", "y", "domain", "predicted", "unknown", "known_predicted", "known", "group", "by_prevalence"),
    *("distance", "known_distance"),
)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Validation and test samples with the answers of the final model; with very many classes, only a part of them."""

    validation: Answers
    test: Answers

    def __len__(self) -> int:
        return len(self.validation) + len(self.test)

    @property
    def every(self) -> Answers:
        """The samples of both, in the order of the data."""
        return Answers.pooled([self.validation, self.test]).sorted()

    @classmethod
    def pooled(cls, runs: Sequence["HeldOut"]) -> "HeldOut":
        """Out-of-sample answers from runs on parts of the data, for a model that was trained on all of it.

        Of several runs, which were tested on different samples, the test samples of every other one count as
        validation samples, so that temperatures and prediction sets come from different ones.
        """
        if len(runs) == 1:
            return runs[0]
        odd, even = (Answers.pooled([run.test for run in runs[k::2]]).sorted() for k in (1, 0))
        return cls(odd, even)

    def described(self, **about: Any) -> "HeldOut":
        """The same samples with other names, training counts or thresholds."""
        return HeldOut(self.validation.described(**about), self.test.described(**about))

    def calibration(self) -> Calibration:
        """Calibration fitted on the validation samples."""
        part = self.validation
        assert part.log_p is not None and part.told.log_p is not None
        return calibrate(part.log_p, part.told.log_p, part.y, part.domain, part.domains, part.counts)

    def save(self, folder: RunFolder) -> None:
        """Store the log probabilities with all that they are of, compressed."""
        every = self.every
        told: dict[str, Any] = {}
        if every.informed is not None:
            told = {"known_predicted": every.informed.predicted, "known": every.informed.log_p}
            told["known_distance"] = every.informed.distance
        assert every.row is not None and self.test.row is not None
        test = np.isin(every.row, self.test.row)
        arrays = {**{n: getattr(every, n) for n in STORED if hasattr(every, n)}, "test": test, "unknown": every.log_p}
        content = io.BytesIO()
        # Level 1: noise is no smaller at a higher one, and 10,000 classes take minutes.
        with ZipFile(content, "w", ZIP_DEFLATED, compresslevel=1) as archive:
            for name in STORED:
                if (value := (arrays | told).get(name)) is not None:
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, value, allow_pickle=False)
        write_whole(folder.path / PROBABILITIES, content.getbuffer())

    @classmethod
    def load(cls, folder: RunFolder, result: RunResult) -> Self | None:
        """The held-out samples of a finished run, or None if their log probabilities were not kept."""
        file = folder.path / PROBABILITIES
        if not file.exists():
            return None
        content = file.read_bytes()
        try:
            found = _arrays(content, STORED)
            for key, value in found.items():
                kind = KINDS.get(key, np.int64)
                shape = found["unknown"].shape[: 2 if kind is np.float16 else 1]
                if value.shape != shape or value.dtype != kind or np.isnan(value).any():
                    raise ValueError
            test, log_p, told = found.pop("test"), found.pop("unknown"), found.pop("known", None)
            predicted, far = found.pop("known_predicted", None), found.pop("known_distance", None)
            classes = [found["y"], found["predicted"], *([] if predicted is None else [predicted])]
            classes += [found["by_prevalence"]] if "by_prevalence" in found else []
            folder.check_samples(PROBABILITIES, classes, found["domain"], width=log_p.shape[1])
            every = Answers(**result.answered, **found, log_p=log_p, true=_true(log_p, found["y"]))
            if predicted is not None:
                informed = replace(every, predicted=predicted, log_p=told, true=_true(told, found["y"]), distance=far)
                every = replace(every, informed=informed)
        except (*UNREADABLE, KeyError, TypeError):
            raise folder.damaged(PROBABILITIES) from None
        return cls(every.keep(~test), every.keep(test))


def _true(log_p: NDArray[np.float16], y: NDArray[np.int64]) -> NDArray[np.float16]:
    return log_p[np.arange(len(y)), y]


def _arrays(content: bytes, names: Iterable[str]) -> dict[str, Any]:
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


def save_predictions(test: Answers, folder: RunFolder) -> None:
    """Store what is predicted for every test sample, each array in the smallest integer type."""
    known = None if test.informed is None else test.informed.predicted
    given = {"predicted": test.predicted, "y": test.y, "domain": test.domain, "group": test.group, "known": known}
    there = {name: values for name, values in given.items() if values is not None}
    kinds = {name: np.uint8 if values.max(initial=0) < 256 else np.int32 for name, values in there.items()}
    folder.save(PREDICTIONS, {name: torch.from_numpy(values.astype(kinds[name])) for name, values in there.items()})


def load_predictions(folder: RunFolder, result: RunResult) -> Answers | None:
    """The answers for every test sample of a finished run, without probabilities; None if it has none."""
    stored = folder.vectors(PREDICTIONS, ("predicted", "y", "domain"), ("group", "known"))
    if stored is None:
        return None
    classes = [stored[key] for key in ("predicted", "y", "known") if key in stored]
    folder.check_samples(PREDICTIONS, classes, stored["domain"])
    found: dict[str, Any] = {name: values.astype(np.int64) for name, values in stored.items()}
    known = found.pop("known", None)
    test = Answers(**result.answered, **found)
    return test if known is None else replace(test, informed=replace(test, predicted=known))


def predictions(test: Answers) -> Answers:
    """The same answers as far as they are stored for every test sample."""
    less = replace(test, row=None, true=None, log_p=None, by_prevalence=None, distance=None)
    return less if test.informed is None else replace(less, informed=predictions(test.informed))


def held_out(
    algorithm: Algorithm,
    dataset: DomainDataset,
    *,
    informed: bool,
    shots: tuple[int, int],
    fabric: "AnyFabric | None" = None,
) -> tuple[HeldOut, HeldOut]:
    """Score the validation and test samples, if `informed` with their domain given too.

    The processes of a `fabric` share them. The first has all samples; the second only the ones whose log probabilities
    are kept, with them.
    """
    rows = np.flatnonzero(np.isin(dataset.split, ("val", "test")))
    keep = np.zeros(len(rows), bool)
    keep[np.random.default_rng(0).permutation(len(rows))[: max(LEAST, MOST // dataset.num_classes)]] = True
    every, log_p = answers(algorithm, dataset, rows, keep=keep, fabric=fabric)
    kept = replace(every.keep(keep), log_p=log_p)
    if informed:
        told, told_log_p = answers(algorithm, dataset, rows, told=True, keep=keep, fabric=fabric)
        every, kept = replace(every, informed=told), replace(kept, informed=replace(told.keep(keep), log_p=told_log_p))
    tested = dataset.split[rows] == "test"
    every, kept = every.described(shots=shots), kept.described(shots=shots)
    of_kept = tested[keep]
    return HeldOut(every.keep(~tested), every.keep(tested)), HeldOut(kept.keep(~of_kept), kept.keep(of_kept))
