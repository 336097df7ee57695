"""The second stage of a run: each sample embedded once, and the classifier trained or fitted on the features."""

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from crosstail import algorithms, backbones, second_stages
from crosstail.algorithms import Algorithm
from crosstail.data import DomainDataset, shot_thresholds
from crosstail.data.activations import Activations
from crosstail.progress import Progress
from crosstail.second_stages import Features, FittedModel, FittedStage, Rows, TrainedStage, linear_classifier
from crosstail.training.devices import AnyFabric
from crosstail.training.evaluation import features, on_unseen, split_accuracies
from crosstail.training.folder import RunFolder
from crosstail.training.held_out import HeldOut, held_out
from crosstail.training.loop import train
from crosstail.training.resolve import steps_of_stages
from crosstail.training.result import Evaluation, SplitAccuracy, Tuned
from crosstail.training.run_data import input_shape
from crosstail.training.spec import RunSpec
from crosstail.training.tuned_share import TunedPart, choose


class Staged(NamedTuple):
    """The final model, the step that was selected (0 if fitted), and, in the main process, its held-out answers."""

    model: Algorithm
    step: int = 0
    scored: tuple[HeldOut, HeldOut] | None = None
    tuned: Tuned | None = None
    shared: bool = True  # whether all processes have its weights


def run_second_stage(
    spec: RunSpec,
    algorithm: Algorithm,
    dataset: DomainDataset,
    part: TunedPart | None,
    *,
    folder: RunFolder,
    fabric: AnyFabric,
    **common: Any,
) -> Staged:
    """Train or fit it; of a network with a tuned part, with the share of tuned weights that suits it best."""
    assert spec.second_stage is not None
    stage, began = second_stages.find(spec.second_stage), time.perf_counter()
    if part and isinstance(stage, FittedStage):
        return _at_the_best_share(spec, stage, algorithm, dataset, part, folder=folder, fabric=fabric, **common)
    seen = embedded(algorithm, dataset, fabric)
    if isinstance(stage, TrainedStage):
        model = build_classifier(spec, stage, algorithm, seen)
        fabric.to_device(model)
        how: dict[str, Any] = {"last": steps_of_stages(spec)[1], "class_balanced": stage.class_balanced}
        selected = train(model, seen, spec, stage=2, **how, folder=folder, fabric=fabric, **common)
        model.load_state_dict(selected.weights)
        scored = held_out(model, seen, **scoring(spec, model), fabric=fabric)
        return Staged(_behind(algorithm, model), selected.step, scored)
    if not fabric.is_global_zero:  # which has a part in nothing but features from now on
        return Staged(algorithm)
    model, scored, unseen = _fitted(spec, stage, algorithm, seen)
    _record(spec, scored, unseen, folder, began)
    return Staged(_behind(algorithm, model), 0, scored)


def _at_the_best_share(
    spec: RunSpec,
    stage: FittedStage,
    algorithm: Algorithm,
    dataset: DomainDataset,
    part: TunedPart,
    *,
    folder: RunFolder,
    fabric: AnyFabric,
    progress: Progress | None = None,
    checkpoint: Any = None,
) -> Staged:
    """Fit it to the features at every share of the tuned weights, and take the one that suits it best."""
    began, tried = time.perf_counter(), dict[float, Fitted]()
    shares = part.shares(len(dataset.rows("val")))
    for share in shares:
        part.move(share)
        seen = embedded(algorithm, dataset, fabric, untuned=share == 0)
        if fabric.is_global_zero:
            tried[share] = _fitted(spec, stage, algorithm, seen)
        if progress:
            progress("choosing how far to tune", 1 + shares.index(share), len(shares))
    if not fabric.is_global_zero:
        return Staged(algorithm, shared=False)
    tuned = choose({share: kept.validation for share, (_, (_, kept), _) in tried.items()})
    part.move(tuned.share)
    model, scored, unseen = tried[tuned.share]
    _record(spec, scored, unseen, folder, began)
    return Staged(_behind(algorithm, model), 0, scored, tuned, shared=False)


Fitted = tuple[FittedModel, tuple[HeldOut, HeldOut], SplitAccuracy | None]
"""A model from features to scores, its held-out answers, and its accuracy `on_unseen`."""


def _fitted(spec: RunSpec, stage: FittedStage, algorithm: Algorithm, seen: DomainDataset) -> Fitted:
    head = stage.fit(features_of(spec, stage, algorithm, seen))
    model = FittedModel(backbones.build("identity", input_shape(seen)), algorithm.task, head)
    return model, held_out(model, seen, **scoring(spec, model)), on_unseen(model, seen, spec)


def _record(
    spec: RunSpec, scored: tuple[HeldOut, HeldOut], unseen: SplitAccuracy | None, folder: RunFolder, began: float
) -> None:
    """Record the evaluation of a stage without steps, in place of an earlier one: after a kill, it is fitted again."""
    folder.keep_records(2, -1)
    accuracy: dict[str, Any] = split_accuracies(vars(scored[0]), spec.selected_on, vars(scored[1]))
    seconds = round(time.perf_counter() - began, 3)
    folder.append_record(Evaluation(stage=2, step=0, seconds=seconds, losses={}, unseen=unseen, **accuracy))


def _behind(algorithm: Algorithm, model: Algorithm) -> Algorithm:
    """A classifier behind the representation that it was trained or fitted on."""
    model.backbone, model.low_precision = algorithm.backbone, algorithm.low_precision
    return model.to(next(algorithm.parameters()).device)


def scoring(spec: RunSpec, algorithm: Algorithm) -> dict[str, Any]:
    """How the held-out samples of a run are scored: also with their domain told, if the model makes use of several."""
    several = algorithm.task.counts.shape[0] > 1
    informed = algorithm.uses_domain and not spec.unseen_domains and several
    return {"informed": informed, "shots": shot_thresholds(spec.dataset)}


def build_classifier(spec: RunSpec, stage: TrainedStage, algorithm: Algorithm, seen: DomainDataset) -> Algorithm:
    """The classifier that is trained on the features of an algorithm, before its first step."""
    shared = {name: value for name, value in spec.hparams.items() if name in ("lr", "weight_decay")}
    own = {"lr": spec.second_lr} if spec.second_lr else {}
    torch.manual_seed(spec.seed)
    backbone = backbones.build("identity", input_shape(seen))
    model = algorithms.build(stage.algorithm, backbone, algorithm.task, shared | stage.hparams | own)
    if stage.start:
        model.head = stage.start(features_of(spec, stage, algorithm, seen))
    return model


def features_of(
    spec: RunSpec, stage: TrainedStage | FittedStage, algorithm: Algorithm, seen: DomainDataset
) -> Features:
    """What a second stage is given, of samples that are embedded already."""
    x = np.asarray(seen.plain().x)

    def of(split: str, **more: Any) -> Features:
        rows = seen.rows(split)
        group = None if seen.group is None else seen.group[rows]
        labels = seen.y[rows], seen.domain[rows], seen.counts("train"), group
        more |= {"unseen": spec.unseen_domains, "seed": spec.seed, "select_on": spec.selected_on}
        return Features(Rows(x, rows), *labels, **more)

    given = of("train", validation=of("val") if len(seen.rows("val")) else None)
    return replace(given, classifier=linear_classifier(algorithm, given)) if stage.needs_classifier else given


def embedded(
    algorithm: Algorithm, dataset: DomainDataset, fabric: "AnyFabric | None" = None, *, untuned: bool = False
) -> DomainDataset:
    """Every sample embedded once, by all processes together, unless the samples are features already.

    Those of an `untuned` network are known from before.
    """
    x = dataset.x
    if untuned and isinstance(x, Activations) and algorithm.backbone.num_features == x.features.shape[1]:
        return dataset.with_x(x.features)
    if isinstance(algorithm.backbone.layers, torch.nn.Identity):
        return dataset
    return dataset.with_x(features(algorithm, dataset, np.arange(len(dataset)), fabric))
