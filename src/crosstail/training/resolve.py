"""Defaults that depend on the data: backbone, what is tuned, augmentation, steps, batch size, learning rates."""

from dataclasses import replace
from functools import cache, partial
from typing import Any

from crosstail import algorithms, backbones, data, discovery, second_stages
from crosstail.data import protocols
from crosstail.data.sources.benchmark import benchmark_of
from crosstail.second_stages import FittedStage
from crosstail.training.spec import AUTO, HEADS, RunSpec, split_method

FROZEN = "efficientnet_lite0"  # for `--tune none` or `last` without a backbone
STEPS, BATCH_SIZE, EVALUATIONS = 1000, 24, 10
ON_FEATURES, ON_ACTIVATIONS, SECOND_STAGE = "frozen", "bsoftmax", "blend"
TUNING = {"steps": 300, "evaluations": 3, "optimizer": "adamw", "schedule": "cosine"}  # with `--tune last`
ON_PIXELS, ON_ONE_DOMAIN = "bsoftmax+coral", "bsoftmax"


def resolve(spec: RunSpec) -> RunSpec:
    """Fill in the defaults that depend on the data and the algorithm; resolving again changes nothing.

    The resolved spec is stored, so that new defaults in a later version cannot change a run. A backbone's defaults
    (width, resolution, weights) and a benchmark's (labels) stay None, so they must not change from version to version.
    """
    spec = _with_algorithm(_with_data_defaults(spec))
    algorithm, stage = split_method(canonical_method(spec.method))
    spec = replace(spec, algorithm=algorithm, second_stage=stage)
    if spec.select_on == replace(spec, select_on=None).selected_on:  # the default has one spelling
        spec = replace(spec, select_on=None)
    if spec.labels == ():  # which has no spelling on the command line
        spec = replace(spec, labels=("uniform",))
    if spec.warm_up is not None and spec.warm_up >= (spec.steps or 0):
        raise ValueError(f"--warm-up is {spec.warm_up}, expected fewer than the {spec.steps} steps of a stage")
    usual: dict[str, Any] = {"warm_up": 0} | ({} if spec.stages else {"optimizer": "adam", "schedule": "constant"})
    unset: dict[str, Any] = {name: None for name, default in usual.items() if getattr(spec, name) == default}
    spec = replace(spec, **unset)
    if spec.second_lr and not (stage and isinstance(second_stages.find(stage), second_stages.TrainedStage)):
        raise ValueError(f"--second-lr is for a second stage that is trained, such as retrain, not for {spec.method}")
    _check_stop(spec)
    return replace(spec, hparams=all_hparams(spec, spec.algorithm, spec.hparams))


def all_hparams(spec: RunSpec, algorithm: str, given: dict[str, Any]) -> dict[str, Any]:
    """Every hyperparameter of an algorithm on the data of a spec, typed; those not given have their default."""
    defaults = drawn(spec, algorithm, trial=0)
    return algorithms.values(algorithms.parse_for(algorithm, defaults | given))


def drawn(spec: RunSpec, algorithm: str, trial: int, seed: int = 0) -> dict[str, Any]:
    """What a trial of an algorithm draws on the data of a spec, or where trial 0 has other defaults."""
    declared, benchmark = algorithms.find(algorithm).Hparams, benchmark_of(spec.dataset)
    return algorithms.draw(declared, trial, seed, finetunes(spec), benchmark)


def finetunes(spec: RunSpec) -> bool:
    """Whether a whole pretrained network is trained."""
    return not spec.frozen and _network(spec) is not None


def tunes(spec: RunSpec) -> bool:
    """Whether a pretrained network is trained, or the last of its stages."""
    return spec.stages > 0 or finetunes(spec)


def trained_backbone(spec: RunSpec) -> str:
    """What turns the inputs of training into features: the backbone, the head on frozen features, or nothing at all."""
    assert spec.backbone is not None
    if not algorithms.find(spec.algorithm).learns:
        return "identity"
    return HEADS[spec.head] if spec.tune == "none" and spec.head else spec.backbone


def steps_of_stages(spec: RunSpec) -> tuple[int, ...]:
    """How many steps each stage of a resolved spec takes: a fitted one none, nor a first one with nothing to learn.

    >>> steps_of_stages(resolve(RunSpec(dataset="digits", algorithm="erm", second_stage="ncm", steps=9)))
    (9, 0)
    """
    assert spec.steps is not None
    if not spec.second_stage:
        return spec.stop_at or (spec.steps,)
    first, second = spec.stop_at or (spec.steps, spec.steps)
    fitted = isinstance(second_stages.find(spec.second_stage), FittedStage)
    return first if first_stage_learns(spec) else 0, 0 if fitted else second


def first_stage_learns(spec: RunSpec) -> bool:
    """Whether stage one of a resolved spec leaves anything behind that is used later."""
    if not spec.second_stage or trained_backbone(spec) != "identity":
        return True
    return second_stages.find(spec.second_stage).needs_classifier


def unreached_phases(spec: RunSpec) -> list[str]:
    """One sentence for each phase of the algorithm that a resolved spec has too few steps for."""
    assert spec.steps is not None
    return algorithms.unreached(algorithms.parse_for(spec.algorithm, spec.hparams), spec.steps)


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


def _with_algorithm(spec: RunSpec) -> RunSpec:
    """The default: blend, on fixed features or features of balanced softmax and, unless there is one domain, CORAL."""
    if spec.algorithm != AUTO:
        return spec
    spec = replace(spec, second_stage=spec.second_stage or SECOND_STAGE)
    if spec.tune == "none" or spec.backbone in HEADS.values():
        return replace(spec, algorithm=ON_FEATURES)
    if spec.stages:
        return replace(spec, algorithm=ON_ACTIVATIONS)
    domains = data.count_domains(spec.dataset, spec.columns)
    alone = domains is not None and domains - spec.unseen_domains < 2
    return replace(spec, algorithm=ON_ONE_DOMAIN if alone else ON_PIXELS)


def canonical_method(method: str) -> str:
    """Check a method, replace an alias by what it stands for, and name the second stage that an algorithm needs.

    >>> canonical_method("crt"), canonical_method("boda:retrain"), canonical_method("frozen")
    ('erm:retrain', 'boda:retrain', 'frozen:blend')
    """
    given, stage = split_method(method)
    algorithm, own = split_method(algorithms.canonical(given))
    if stage:
        stage = discovery.known(second_stages.PACKAGE, stage, "second stage")
        second_stages.find(stage)  # a mistake in a file is found now, not after stage one
        if own and stage != own and algorithm != given:
            raise ValueError(f"{given} is {algorithm} with the second stage {own}, not {stage}")
    return f"{algorithm}:{stage or own}" if stage or own else algorithm


def _with_data_defaults(spec: RunSpec) -> RunSpec:
    protocol = discovery.known(protocols.PACKAGE, spec.protocol, "protocol")
    spec = replace(spec, dataset=data.spelled(spec.dataset), protocol=protocol)
    kind = cache(partial(data.kind_in, spec.dataset, spec.columns))  # of a resolved spec the data may be gone
    if spec.backbone is None:
        spec = replace(spec, backbone=FROZEN if spec.frozen else kind().backbone)
    else:
        spec = replace(spec, backbone=backbones.known(spec.backbone, spec.weights))
    if spec.tune is None:
        usual = backbones.pretrained(kind().backbone) is not None
        spec = replace(spec, tune="none" if usual and _network(spec) is not None else "all")
    if not spec.frozen and (spec.views or spec.head):
        raise ValueError("--head and --views need --tune none or last (on vectors: --backbone identity)")
    if spec.tune == "last:1":
        spec = replace(spec, tune="last")
    if spec.frozen and spec.head is None:
        spec = replace(spec, head="linear" if spec.stages else "mlp")
    if spec.augment is None:
        spec = replace(spec, augment=kind().augments and spec.tune != "none")
    sheet = data.sheet_of(spec.dataset)
    if sheet and sheet.labels and spec.labels is None and ".py" in spec.dataset and not spec.unseen_domains:
        spec = replace(spec, labels=sheet.labels)  # a user's sheet may change
    defaults: dict[str, Any] = {"steps": STEPS, "batch_size": BATCH_SIZE, "evaluations": EVALUATIONS}
    defaults |= protocols.find(protocol).defaults(sheet) if sheet else {}
    defaults |= TUNING if spec.stages else {}
    chosen: dict[str, Any] = {name: getattr(spec, name) or value for name, value in defaults.items()}
    return replace(spec, **chosen)
