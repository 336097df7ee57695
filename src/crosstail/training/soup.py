"""A soup: the models of several runs on the same data as one (Wortsman et al., 2022)."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crosstail import algorithms, second_stages
from crosstail.algorithms import Algorithm
from crosstail.data import DomainDataset
from crosstail.metrics.pair_scores import PairScores
from crosstail.progress import Progress
from crosstail.second_stages import FittedStage
from crosstail.training.ensemble import Ensemble
from crosstail.training.evaluation import EVALUATED, answers, pair_scores
from crosstail.training.existing import existing_run
from crosstail.training.fit import Run, finish_run
from crosstail.training.folder import RunFolder
from crosstail.training.inputs import input_shape, load_inputs
from crosstail.training.model import build_algorithm, load_model
from crosstail.training.result import Evaluation, RunResult, Soup, SplitAccuracy, selection_score
from crosstail.training.used_samples import UsedSamples

Score = Callable[[Sequence[int]], float]
"""Validation score of the soup of the runs with these numbers; larger is better."""


def make_soup(runs: Sequence[Path], out: Path, *, uniform: bool = False, progress: Progress | None = None) -> Run:
    """Write the soup of several finished runs as a run: of all of them, or of those that a greedy choice keeps.

    Weights are averaged where all runs have the same architecture and began with the same weights of the backbone;
    otherwise, or after a fitted second stage, probabilities are.
    """
    began = time.perf_counter()
    folders = [RunFolder(existing_run(run)) for run in runs]
    results = [folder.finished_result() for folder in folders]
    _require_same_data(runs, results)
    order = sorted(range(len(runs)), key=lambda i: -_validated(runs[i], results[i]))
    first = results[order[0]]
    inputs = load_inputs(first.spec)
    RunFolder(folders[order[0]].path).check_data(inputs.facts())
    dataset = inputs.seen(progress)
    models = [load_model(folder, dataset).eval() for folder in folders]
    ensemble = not _begin_alike(results, models, dataset)

    def made(chosen: Sequence[int]) -> Algorithm:
        own = [models[i] for i in chosen]
        return Ensemble(own) if ensemble else averaged(load_model(folders[chosen[0]], dataset), own)

    score = _ensemble_score(models, dataset, first) if ensemble else _weights_score(made, dataset, first)
    chosen = order if uniform else greedy(order, score, progress)
    model = made(chosen).eval()
    folder = RunFolder(out)
    folder.open(first.spec, inputs.facts())
    UsedSamples.keep(inputs.raw, folder)
    accuracy: dict[str, Any] = {
        name: SplitAccuracy.of_scores(pair_scores(model, dataset, split)) for name, split in EVALUATED.items()
    }
    seconds = round(time.perf_counter() - began, 3)
    folder.append_record(Evaluation(stage=1, step=0, seconds=seconds, losses={}, **accuracy))
    of = [results[i].spec for i in chosen]
    soup = Soup(ensemble=ensemble, runs=[str(runs[i]) for i in chosen], specs=of, offered=len(runs))
    return finish_run(first.spec, inputs, folder, model, [0], soup=soup)


def greedy(order: Sequence[int], score: Score, progress: Progress | None = None) -> list[int]:
    """The greedy soup: each run in turn, best first, is kept if the score on validation is no lower with it.

    >>> greedy([2, 0, 1], lambda chosen: {(2,): 0.5, (2, 0): 0.4, (2, 1): 0.5}[tuple(chosen)])
    [2, 1]
    """
    chosen = [order[0]]
    best = score(chosen)
    for number, i in enumerate(order[1:], 2):
        found = score([*chosen, i])
        if found >= best:
            chosen, best = [*chosen, i], found
        if progress:
            progress("soup", number, len(order))
    return chosen


def averaged(model: Algorithm, models: Sequence[Algorithm]) -> Algorithm:
    """The model with the mean weights of several; non-float buffers come from the first."""
    states = [one.state_dict() for one in models]

    def mean(name: str, value: Tensor) -> Tensor:
        return torch.stack([state[name] for state in states]).mean(0) if value.is_floating_point() else value

    model.load_state_dict({name: mean(name, value) for name, value in states[0].items()})
    return model


def _validated(run: Path, result: RunResult) -> float:
    score = selection_score(result.validation, result.spec.selected_on)
    if score is None:
        raise ValueError(f"{run} has no validation samples, which a soup needs to rank and select runs")
    return score


def _require_same_data(runs: Sequence[Path], results: Sequence[RunResult]) -> None:
    """Refuse runs that cannot be combined: other samples, another split, or other inputs."""
    if not runs:
        raise ValueError("there is no finished run to make a soup of")

    def of(result: RunResult) -> dict[str, Any]:
        spec = result.spec
        return {
            "data or split": (result.data.checksum, result.domains, result.classes),
            "input": result.input_shape,
            "frozen backbone": (spec.freeze, result.weights, spec.backbone if spec.freeze else ""),
            "metric of selection": spec.selected_on,
        }

    first = of(results[0])
    for run, result in zip(runs, results, strict=True):
        if differing := next((name for name, value in of(result).items() if value != first[name]), ""):
            raise ValueError(
                f"{run} and {runs[0]} differ in their {differing}; a soup needs runs on the same data and split"
            )
        if algorithms.own_file(result.spec.algorithm):
            raise ValueError(f"{run} uses a custom algorithm file; soups support built-in algorithms only")
        if result.soup or result.spec.stop_at is not None:
            kind = "a soup itself" if result.soup else "trained on every sample, so it has no validation samples"
            raise ValueError(f"{run} is {kind}; exclude it")


def _begin_alike(results: Sequence[RunResult], models: Sequence[Algorithm], dataset: DomainDataset) -> bool:
    """Whether weights can be averaged: all networks are alike, and their backbones started from the same weights."""
    stages = [second_stages.find(r.spec.second_stage) for r in results if r.spec.second_stage]
    if any(isinstance(stage, FittedStage) for stage in stages) or 0 < len(stages) < len(results):
        return False

    def shapes(model: Algorithm) -> dict[str, torch.Size]:
        return {name: value.shape for name, value in model.state_dict().items()}

    if any(shapes(model) != shapes(models[0]) for model in models):
        return False
    before = (
        build_algorithm(r.spec, input_shape(dataset), dataset.counts("train")).backbone.state_dict() for r in results
    )
    first = next(before)
    return all(torch.equal(value, first[name]) for other in before for name, value in other.items())


def _scored(scores: PairScores, result: RunResult) -> float:
    found = selection_score(SplitAccuracy.of_scores(scores), result.spec.selected_on)
    assert found is not None  # there are validation samples
    return found


def _weights_score(made: Callable[[Sequence[int]], Algorithm], dataset: DomainDataset, result: RunResult) -> Score:
    return lambda chosen: _scored(pair_scores(made(chosen), dataset, "val"), result)


def _ensemble_score(models: Sequence[Algorithm], dataset: DomainDataset, result: RunResult) -> Score:
    """Score ensembles from the probabilities of each model, which are computed once."""
    rows = dataset.rows("val")
    every = np.ones(len(rows), bool)
    each = [np.exp(answers(model, dataset, rows, keep=every).log_p.astype(np.float32)) for model in models]

    def score(chosen: Sequence[int]) -> float:
        mean: NDArray[np.float32] = np.mean([each[i] for i in chosen], axis=0)
        log_p = np.log(mean.clip(1e-30)).astype(np.float16)
        scores = PairScores.of(mean.argmax(1), log_p, dataset.y[rows], dataset.domain[rows], dataset.num_domains)
        return _scored(scores, result)

    return score
