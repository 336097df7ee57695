"""Defaults that depend on the data: backbone, freezing, augmentation, steps, batch size, learning rates."""

from dataclasses import replace
from typing import Any

from crosstail import algorithms, backbones, data, second_stages
from crosstail.second_stages import FittedStage
from crosstail.training.spec import HEADS, RunSpec, split_method

SUITABLE_BACKBONE = {"files": "efficientnet_lite0", "images": "small_cnn", "vectors": "mlp"}
STEPS, BATCH_SIZE = 1000, 24


def resolve(spec: RunSpec) -> RunSpec:
    """Fill in what depends on the data and the algorithm, so that the spec names everything that decides the run.

    It is stored like that: a later version with other defaults cannot change a run. Resolving again changes nothing.

    >>> spec = resolve(RunSpec(dataset="digits", algorithm="crt"))
    >>> spec.method, spec.backbone, spec.freeze, spec.steps, spec.hparams
    ('erm:retrain', 'small_cnn', False, 1000, {'lr': 0.001, 'weight_decay': 0.0, 'dropout': 0.0})
    """
    spec = _with_data_defaults(_without_alias(spec))
    _check_stop(spec)
    return replace(spec, hparams=all_hparams(spec.algorithm, spec.hparams, finetune=finetunes(spec)))


def all_hparams(algorithm: str, given: dict[str, Any], *, finetune: bool) -> dict[str, Any]:
    """Every hyperparameter of an algorithm, typed; those not given have their default."""
    declared = algorithms.find(algorithm).Hparams
    defaults = algorithms.draw(declared, trial=0, finetune=finetune)
    return algorithms.values(algorithms.parse(declared, defaults | given))


def finetunes(spec: RunSpec) -> bool:
    """Whether a whole pretrained network is trained."""
    return not spec.freeze and _network(spec) is not None


def steps_of_stages(spec: RunSpec) -> tuple[int, ...]:
    """How many steps each stage of a resolved spec takes: a fitted one none, nor a first one with nothing to learn.

    >>> steps_of_stages(resolve(RunSpec(dataset="digits", algorithm="erm", second_stage="ncm", steps=9)))
    (9, 0)
    """
    assert spec.steps is not None
    if not spec.second_stage:
        return spec.stop_at or (spec.steps,)
    first, second = spec.stop_at or (spec.steps, spec.steps)
    stage = second_stages.find(spec.second_stage)
    trained = HEADS[spec.head] if spec.freeze else spec.backbone
    learns = stage.needs_classifier or trained != "identity"
    return first if learns else 0, 0 if isinstance(stage, FittedStage) else second


def _check_stop(spec: RunSpec) -> None:
    assert spec.steps is not None
    if spec.stop_at is None:
        return
    stages = 2 if spec.second_stage else 1
    if len(spec.stop_at) != stages:
        raise ValueError(
            f"--stop-at has {len(spec.stop_at)} values, but {spec.method} has {stages} stages: one for each"
        )
    for stage, (step, taken) in enumerate(zip(spec.stop_at, steps_of_stages(spec), strict=True), 1):
        if not 0 <= step <= spec.steps:
            raise ValueError(f"--stop-at is {step}, expected 0 to {spec.steps}, the number of steps")
        if step != taken:
            raise ValueError(f"--stop-at is {step} for stage {stage} of {spec.method}, expected 0: it takes no steps")


def _network(spec: RunSpec) -> backbones.Pretrained | None:
    assert spec.backbone is not None
    return backbones.pretrained(spec.backbone) if spec.weights != backbones.RANDOM else None


def _without_alias(spec: RunSpec) -> RunSpec:
    algorithm, stage = split_method(algorithms.canonical(spec.algorithm))
    if stage and spec.second_stage not in (None, stage):
        raise ValueError(f"{spec.algorithm} is {algorithm} with the second stage {stage}, not {spec.second_stage}")
    spec = replace(spec, algorithm=algorithm, second_stage=spec.second_stage or stage)
    if spec.second_stage:
        second_stages.find(spec.second_stage)  # an unknown name is an error
    return spec


def _with_data_defaults(spec: RunSpec) -> RunSpec:
    chosen = (spec.backbone, spec.freeze, spec.augment)
    kind = data.kind_of(spec.dataset, spec.columns) if None in chosen else None
    if spec.backbone is None:
        assert kind is not None
        spec = replace(spec, backbone="efficientnet_lite0" if spec.freeze else SUITABLE_BACKBONE[kind])
    if spec.freeze is None:
        spec = replace(spec, freeze=kind == "files" and _network(spec) is not None)
    if spec.augment is None:
        spec = replace(spec, augment=kind == "files" and not spec.freeze)
    sheet = data.sheet_of(spec.dataset)
    steps, batch_size = (sheet.steps, sheet.batch_size) if sheet else (STEPS, BATCH_SIZE)
    return replace(spec, steps=spec.steps or steps, batch_size=spec.batch_size or batch_size)
