"""Evaluate a finished run on labelled data, without the samples that it was trained on."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.data import DataSpec, DomainDataset, examine, load_source, protocols
from crosstail.data.names import spelled_as
from crosstail.metrics import Answers
from crosstail.prediction.critical import Alarms
from crosstail.prediction.decision import decide
from crosstail.prediction.predictor import UNKNOWN, Predictor, check_shape
from crosstail.prediction.scoring import BATCH, NamedInputs
from crosstail.prediction.sets import COVERAGE
from crosstail.progress import Progress
from crosstail.training.evaluation import LEAST
from crosstail.training.used_samples import UsedSamples


@dataclass(frozen=True)
class LeftOut:
    """Numbers of samples that were left out, by reason."""

    trained: int  # trained or selected on
    held_out: int  # tested on, or unused
    unknown: dict[str, int] = field(default_factory=dict)  # of classes that the model does not know

    def __str__(self) -> str:
        parts = {"that the run was trained or selected on": self.trained, "that the run held out": self.held_out}
        named = ", ".join(f"{name} ({number:,})" for name, number in self.unknown.items())
        parts[f"of classes that the model does not know: {named}"] = sum(self.unknown.values())
        return " and ".join(f"{number:,} samples {which}" for which, number in parts.items() if number)


@dataclass(frozen=True)
class Evaluated:
    """A run's model on other data."""

    answers: Answers
    """Classes are the model's; `informed` if the model uses the domain and was trained on one of these."""
    left_out: LeftOut
    samples: DomainDataset
    """Samples that were evaluated, all in the split test."""
    sets: pd.DataFrame | None = None
    """A row for each: domain, class, whether its prediction set contains it, and the size of the set.

    Thresholds come from the run's test samples; None if it has none, or if some are among these."""
    weights: NDArray[np.float64] | None = None
    """How frequent each pair is (D, C) where `by_prevalence` of the answers holds; None for an uncalibrated run."""
    held_out: int = 0
    """How many of these samples the run held out for its own test."""
    alarms: tuple[Alarms, NDArray[np.bool_]] | None = None
    """For critical classes: the thresholds of the domains, and which samples may be of which (N, K)."""


def load_for(
    predictor: Predictor,
    source: DataSpec,
    split: str = "all",
    progress: Progress | None = None,
) -> DomainDataset:
    """Load data to evaluate a run on; the run's own data, wherever they are now, are split as they were for it."""
    result = predictor.run.result
    spec = result.spec.with_source(source)
    dataset = replace(load_source(spec, progress), name=spec.dataset)
    if spec.names == "merge":  # with the run's spelling, too
        classes, domains = spelled_as(dataset.classes, result.classes), spelled_as(dataset.domains, result.domains)
        dataset = replace(dataset, classes=classes, domains=domains)
    check_shape(predictor.inputs(dataset), predictor.input_shape, spec.dataset)
    named = (list(dataset.domains), list(dataset.classes)) == (result.domains, result.classes)
    if split == "all":  # how these data would be split is of no interest
        return replace(dataset, notes=dataset.source_notes, gaps=())
    if not named:
        return dataset
    own = protocols.split(dataset, spec)
    return own if own.checksum == result.data.checksum else dataset


def evaluate_on(
    predictor: Predictor,
    dataset: DomainDataset,
    split: str = "all",
    progress: Progress | None = None,
    prior: str | None = None,
) -> Evaluated:
    """Accuracy per pair of the data set's domains and the model's classes; both are matched by name.

    Skips classes that the model does not know and samples that the run was trained or selected on (found by content),
    with the split `all` every sample of the run's data. Beside the default answers there are those for a `prior`, of
    training if it is None.
    """
    number = {name: c for c, name in enumerate(predictor.classes)}
    if not any(name in number for name in dataset.classes):
        found = f"the classes {', '.join(dataset.classes)}, but the model was trained on {', '.join(number)}"
        raise ValueError(f"{dataset.name} has {found}: no class is in both, so nothing can be tested")
    rows = np.arange(len(dataset)) if split == "all" else dataset.rows(split)
    if not len(rows):
        raise ValueError(f"{dataset.name} has no samples in the split {split!r}")
    every = np.array([number.get(name, UNKNOWN) for name in dataset.classes])[dataset.y]
    strange = np.bincount(dataset.y[rows][every[rows] == UNKNOWN], minlength=dataset.num_classes)
    unknown = {name: int(n) for name, n in zip(dataset.classes, strange, strict=True) if n}
    tested = rows[every[rows] != UNKNOWN]
    part, used = dataset.keep(tested), UsedSamples.load(predictor.run.folder)
    hashes = examine(part.x).hashes
    trained = np.isin(hashes, used.trained)
    held_out = np.isin(hashes, used.held_out) & ~trained & (split == "all")
    left_out = LeftOut(int(trained.sum()), int(held_out.sum()), unknown)
    new = ~(trained | held_out)
    part = part.keep(new)
    if not len(part):
        part_of = dataset.name if split == "all" else f"the split {split!r} of {dataset.name}"
        found = f"0 of the {len(rows):,} samples in {part_of}"
        again = ". For the test samples of the run's own data, add --split test" if left_out.held_out else ""
        raise ValueError(f"{found} are new: they are {left_out}{again}")
    inputs = predictor.inputs(part)
    sites = np.array([predictor.sites.get(name, UNKNOWN) for name in dataset.domains])[part.domain]
    both = predictor.algorithm.uses_domain and bool((sites != UNKNOWN).any())
    predicted = np.empty((1 + both, len(part)), np.int64)  # with the domain unknown, and known
    scored = np.empty((*predicted.shape, len(number)), np.float16)
    features = predictor.features_of(inputs, BATCH)
    for batch, z, _ in NamedInputs(part.names(), inputs, sites).batches(np.arange(len(part)), features):
        for track, domain in enumerate((UNKNOWN, sites[batch])[: 1 + both]):
            log_p = predictor.scored(z, domain)
            predicted[track, batch], scored[track, batch] = log_p.argmax(1), np.maximum(log_p, LEAST)
        if progress:
            progress("predicting", int(batch[-1]) + 1, len(part))
    y = every[tested[new]]
    own = int(np.isin(hashes[new], used.held_out).sum())
    result = predictor.run.result
    counts = dict(zip(result.domains, result.counts, strict=True))
    about: dict[str, Any] = {"domains": list(dataset.domains), "classes": result.classes, "shots": result.shots}
    about["counts"] = np.array([counts.get(name, [0] * len(number)) for name in dataset.domains])
    about |= {"y": y, "domain": part.domain, "row": tested[new], "group": part.group}
    tracks = [Answers(**about, predicted=said, log_p=p) for said, p in zip(predicted, scored, strict=True)]
    answers = replace(tracks[0], informed=tracks[1] if both else None)
    weights, samples = None, replace(part, split=np.full(len(part), "test"))
    if predictor.calibration.samples:
        answers, weights = _by_prevalence(predictor, answers, sites, prior)
    sets, alarms = (None, None) if own else _covered(predictor, answers, sites)
    if alarms is not None:
        alarms = alarms[0].at([predictor.sites.get(name, UNKNOWN) for name in dataset.domains]), alarms[1]
    return Evaluated(answers, left_out, samples, sets, weights, own, alarms)


def _by_prevalence(
    predictor: Predictor, found: Answers, sites: NDArray[np.int64], prior: str | None
) -> tuple[Answers, NDArray[np.float64]]:
    """The answers with those that `predict --prior` gives, and how frequent it takes each pair to be (D, C).

    A site weighs as much as it has training samples, a new one as much as the mean site.
    """
    assert found.told.log_p is not None
    decision = decide(predictor, found.told.log_p, sites, prior=prior or "train")
    assert decision.shares is not None
    said = np.concatenate([one.probabilities.argmax(1) for one in decision.chunks(found.told.log_p, sites)])
    own, trained = found.counts.sum(1), np.array([sum(row) for row in predictor.run.result.counts])
    size = np.where(own > 0, own, trained[trained > 0].mean())
    place = [predictor.sites.get(name, UNKNOWN) for name in found.domains]
    weights = size[:, None] * decision.shares[place]
    if prior in (None, "train"):  # as on the run's page: a pair that training lacks does not count
        weights = np.where(own[:, None] > 0, found.counts, weights)
    told = replace(found.told, by_prevalence=said)
    return (told if found.informed is None else replace(found, informed=told)), weights


def _covered(
    predictor: Predictor, found: Answers, sites: NDArray[np.int64]
) -> tuple[pd.DataFrame | None, tuple[Alarms, NDArray[np.bool_]] | None]:
    kept, log_p = predictor.run.held_out, found.told.log_p
    if kept is None or not len(kept.test) or log_p is None:
        return None, None
    decision, parts, raised = decide(predictor, log_p, sites, coverage=COVERAGE), [], []
    for one in decision.chunks(log_p, sites):
        assert one.members is not None
        y, domain = found.y[one.rows], found.domain[one.rows]
        about = {"inside": one.members[np.arange(len(y)), y], "size": one.members.sum(1), "review": one.review}
        parts.append(pd.DataFrame({"domain": domain, "class": y, **about}))
        raised += [] if one.alarms is None else [one.alarms]
    alarms = None if decision.alarms is None else (decision.alarms, np.concatenate(raised))
    return pd.concat(parts, ignore_index=True), alarms
