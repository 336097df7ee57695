"""From a spec to a result: data, features, stage one, stage two, test figures, transferability."""

import math
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from crosstail import __version__, algorithms, backbones, data
from crosstail.algorithms import Algorithm, Task
from crosstail.backbones import Backbone
from crosstail.data import Augment, DomainDataset, ImageFiles
from crosstail.metrics import PairAccuracy
from crosstail.training import own_code
from crosstail.training.devices import Devices, fabric_of
from crosstail.training.embedding import embed
from crosstail.training.evaluation import FeaturesOnDemand, features, predicted
from crosstail.training.folder import RunFolder
from crosstail.training.loop import Progress, train
from crosstail.training.memory import lower_if_short
from crosstail.training.spec import HEADS, RunSpec
from crosstail.transfer import TransferabilityGraph, TransferStatistics
from crosstail.transfer.graph import Metric

ONE = Devices()
Prepare = Callable[[RunSpec], DomainDataset]
"""What loads and splits the data of a run."""


def prepare_as_split(spec: RunSpec) -> DomainDataset:
    """The data set with its own split and label profiles; other protocols are in `crosstail.protocols`."""
    if spec.protocol != "mdlt":
        raise ValueError(f"protocol {spec.protocol!r} splits the data anew: use crosstail.protocols.run")
    return data.load(
        spec.dataset,
        labels=spec.labels,
        seed=spec.data_seed,
        skip_broken=spec.skip_broken,
        columns=spec.columns or None,
    )


class Inputs(NamedTuple):
    """The data of a run as its trained part sees them, and what its result says about them."""

    dataset: DomainDataset
    about: dict[str, Any]


Load = Callable[[RunSpec, Progress | None], Inputs]
"""What gives the inputs of a run; a sweep keeps them from one run to the next."""


def load(spec: RunSpec, progress: Progress | None = None, prepare: Prepare = prepare_as_split) -> Inputs:
    """Load, split, and embed if the backbone is frozen."""
    raw = sized(spec, prepare(spec))
    frozen = frozen_backbone(spec, input_shape(raw))
    about = {
        "input_shape": list(input_shape(raw)),
        "weights": frozen.weights if frozen else None,
        "data": {"checksum": raw.checksum, "samples": len(raw), "notes": list(raw.notes)},
    }
    return Inputs(_seen(spec, raw, frozen, progress), about)


def load_inputs(spec: RunSpec, progress: Progress | None = None, prepare: Prepare = prepare_as_split) -> DomainDataset:
    """The data set of a run as its trained part sees it: embedded if the backbone is frozen."""
    return load(spec, progress, prepare).dataset


def sized(spec: RunSpec, dataset: DomainDataset) -> DomainDataset:
    """Image files at the resolution that is asked for, or that suits the backbone."""
    network = backbones.pretrained(spec.backbone)
    if not isinstance(dataset.x, ImageFiles):
        if spec.resolution and network is None:
            raise ValueError("--resolution is for image files and for pretrained backbones: leave it out")
        return dataset
    size = spec.resolution or (network.size if network else dataset.x.resolution)
    return dataset.with_x(dataset.x.at_resolution(size))


def frozen_backbone(spec: RunSpec, shape: tuple[int, ...], weights: str | None = None) -> Backbone | None:
    """What embeds the inputs of a run, or None if they are trained on as they are; `weights` replace the spec's."""
    if not spec.freeze:
        if spec.views or spec.head != "mlp":
            raise ValueError("--head and --views are for frozen features: add --freeze (vectors: --backbone identity)")
        return None
    if len(shape) == 1:
        raise ValueError(f"{spec.dataset} holds vectors already: leave --freeze out and use --backbone mlp")
    backbone = backbones.build(spec.backbone, shape, weights=weights or spec.weights, resolution=spec.resolution)
    if not backbone.weights:
        raise ValueError(f"backbone {spec.backbone!r} has no pretrained weights to freeze: use efficientnet_lite0")
    return backbone


def _seen(spec: RunSpec, dataset: DomainDataset, frozen: Backbone | None, progress: Progress | None) -> DomainDataset:
    if frozen is None:
        # Every epoch sees the same files: what the first has decoded is kept.
        return dataset.with_x(dataset.x.cached()) if isinstance(dataset.x, ImageFiles) else dataset
    report = (lambda done, total: progress("embedding", done, total)) if progress else None
    return dataset.with_x(embed(dataset, frozen, views=spec.views, progress=report))


def build_algorithm(spec: RunSpec, shape: tuple[int, ...], counts: NDArray[np.int64]) -> Algorithm:
    """The untrained model of a run for inputs of one shape and training counts (D, C), the same for the same seed."""
    torch.manual_seed(spec.seed)
    if spec.freeze:
        backbone = backbones.build(HEADS[spec.head], shape, spec.width)
    else:
        backbone = backbones.build(spec.backbone, shape, spec.width, weights=spec.weights, resolution=spec.resolution)
    return algorithms.build(spec.algorithm, backbone, Task(torch.from_numpy(counts)), spec.hparams)


def build_model(spec: RunSpec, shape: tuple[int, ...], counts: NDArray[np.int64]) -> Algorithm:
    """What a run ends with, untrained: after a second stage, a representation and a plain classifier.

    Its weights are in the run's folder, so those that training began with are not looked for.
    """
    spec = replace(spec, weights=backbones.RANDOM)
    return build_algorithm(replace(spec, algorithm="erm", hparams={}) if decouples(spec) else spec, shape, counts)


def decouples(spec: RunSpec) -> bool:
    """Whether there is a second stage: because it was asked for, or because the algorithm has one (CRT)."""
    return spec.decouple or algorithms.find(spec.algorithm).decouple


def fit(
    spec: RunSpec,
    out: Path,
    progress: Progress | None = None,
    load: Load = load,
    devices: Devices = ONE,
    trace: bool = False,
) -> dict[str, Any]:
    """Run a spec in a folder and return its result; finished runs return at once, unfinished ones go on.

    With several devices, the others run the same program up to here and then join in. With `trace`, the records of
    stage one also say how the pairs lie to each other, which changes no figure.
    """
    folder = RunFolder(out)
    if folder.holds(spec):
        own_code.keep(spec, folder)
        finished = folder.result()
        if finished is not None:
            return finished
    with lower_if_short(f"--batch-size (now {spec.batch_size} per domain), --width, --resolution, or --accumulate 4"):
        dataset, about = load(spec, progress)
        with _threads(None if dataset.is_image else 1):
            return _fit(spec, dataset, about, folder, progress, devices, trace)


def _fit(
    spec: RunSpec,
    dataset: DomainDataset,
    about: dict[str, Any],
    folder: RunFolder,
    progress: Progress | None,
    devices: Devices,
    trace: bool,
) -> dict[str, Any]:
    algorithm = build_algorithm(spec, input_shape(dataset), dataset.counts("train"))
    if devices.several and algorithm.unshared:
        raise ValueError(f"{spec.algorithm} cannot be trained by several processes: {algorithm.unshared}")
    fabric = fabric_of(devices, spec.precision)
    algorithm.chunks = devices.chunks
    if devices.compile:
        algorithm.backbone.compile()
    if fabric.is_global_zero:
        folder.open(spec)  # only now: a mistake in the spec leaves no folder behind that refuses its correction
        own_code.keep(spec, folder)
    fabric.barrier()
    common: dict[str, Any] = {"batch_size": spec.batch_size, "seed": spec.seed, "evaluations": spec.evaluations}
    common |= {"steps": spec.steps, "average": spec.average, "folder": folder, "fabric": fabric, "progress": progress}

    hparams = asdict(algorithm.hparams)
    first = folder.load("stage_one.pt")
    if first is None:
        augment = Augment(resolution=dataset.x.shape[1], seed=spec.seed) if spec.augment else None
        kept = _traced if trace else None  # the second stage does not move the features
        first = vars(train(algorithm, dataset, stage=1, augment=augment, trace=kept, **common))
        if fabric.is_global_zero:
            folder.save("stage_one.pt", first)
    algorithm.load_state_dict(first["weights"])
    step = first["step"]
    if decouples(spec):
        classifier, seen = _second_stage_parts(spec, algorithm, dataset)
        second = train(classifier, seen, stage=2, class_balanced=True, **common)
        classifier.load_state_dict(second.weights)
        classifier.backbone = algorithm.backbone
        algorithm, step = classifier, second.step

    if not fabric.is_global_zero:
        fabric.barrier()
        return folder.read_json("result.json")
    folder.save("model.pt", algorithm.state_dict())
    folder.save("predictions.pt", _tested(algorithm, dataset))
    result = _result(spec, algorithm, dataset, folder.records(), stage=1 + decouples(spec), step=step)
    result |= {"hparams": hparams, **about}  # all of them: a later version may have other defaults
    folder.write_json("result.json", result)
    folder.clean()
    fabric.barrier()
    return result


def load_model(folder: RunFolder, dataset: DomainDataset, trust: bool = False) -> Algorithm:
    """The trained model of a finished run; `trust` allows to run an algorithm file that the run brings along."""
    state = folder.load("model.pt")
    if state is None:
        raise ValueError(
            f"{folder.path} has no model.pt: remove its result.json, if any, and run its `crosstail fit` command"
        )
    spec = own_code.from_copy(folder.spec(), folder, trust)
    algorithm = build_model(spec, input_shape(dataset), dataset.counts("train"))
    algorithm.load_state_dict(state)
    return algorithm


def graph_of(algorithm: Algorithm, dataset: DomainDataset, metric: Metric = "euclidean") -> TransferabilityGraph:
    """The transferability graph of a model on the training samples."""
    rows = dataset.rows("train")
    # Images are embedded once for its two passes; with vectors it is the memory that matters.
    z: Any = features(algorithm, dataset, rows) if dataset.is_image else FeaturesOnDemand(algorithm, dataset, rows)
    return TransferabilityGraph.from_features(
        z,
        dataset.y[rows],
        dataset.domain[rows],
        num_domains=dataset.num_domains,
        num_classes=dataset.num_classes,
        metric=metric,
    )


def _traced(algorithm: Algorithm, dataset: DomainDataset) -> dict[str, Any]:
    """α, β, γ, and where in the plane to draw each pair that has training samples, domains outermost."""
    graph = graph_of(algorithm, dataset)
    points = [[float(f"{value:.4g}") for value in point] for point in graph.layout()]
    return {**_known(graph.statistics), "points": points}


def _known(statistics: TransferStatistics) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in statistics._asdict().items()}


def _second_stage_parts(spec: RunSpec, algorithm: Algorithm, dataset: DomainDataset) -> tuple[Algorithm, DomainDataset]:
    """A new classifier, and the data set as the fixed representation sees it: each sample is embedded once."""
    seen = dataset
    if not isinstance(algorithm.backbone.layers, torch.nn.Identity):
        seen = dataset.with_x(features(algorithm, dataset, np.arange(len(dataset))))
    common = {name: value for name, value in spec.hparams.items() if name in ("lr", "weight_decay")}
    torch.manual_seed(spec.seed)
    backbone = backbones.build("identity", input_shape(seen))
    return algorithms.build("erm", backbone, algorithm.task, common), seen


def _result(
    spec: RunSpec, algorithm: Algorithm, dataset: DomainDataset, records: list[dict[str, Any]], *, stage: int, step: int
) -> dict[str, Any]:
    chosen = next((r for r in records if (r["stage"], r["step"]) == (stage, step)), None)
    if chosen is None:
        raise ValueError(
            f"records.jsonl lacks step {step} of stage {stage}: remove the folder and run the command again"
        )
    counts = dataset.counts("train")
    many, few = data.shot_thresholds(spec.dataset)

    def figures(record: dict[str, Any]) -> dict[str, Any]:
        accuracies = {split: PairAccuracy.from_json(record[split]) for split in ("validation", "test")}
        return {split: accuracy.to_json(counts, many=many, few=few) for split, accuracy in accuracies.items()}

    statistics = graph_of(algorithm, dataset).statistics
    beside = {}
    if spec.average:
        raw = _best([r for r in records if r["stage"] == stage])
        beside = {"raw": {"selected_step": raw["step"], **figures(raw)}}
    return {
        "spec": spec.to_json(),
        "versions": {"crosstail": __version__, "torch": str(torch.__version__), "Python": platform.python_version()},
        "selected_step": step,
        "seconds": round(sum({r["stage"]: r["seconds"] for r in records}.values()), 3),
        "domains": list(dataset.domains),
        "classes": list(dataset.classes),
        "counts": counts.tolist(),
        **figures(chosen["averaged"] if spec.average else chosen),
        "transferability": _known(statistics),
        **beside,
    }


def _tested(algorithm: Algorithm, dataset: DomainDataset) -> dict[str, torch.Tensor]:
    """What the model says of every test sample, beside what is true, in small numbers."""
    rows = dataset.rows("test")
    found = {"predicted": predicted(algorithm, dataset, rows), "y": dataset.y[rows], "domain": dataset.domain[rows]}
    sizes = dataset.num_classes, dataset.num_classes, dataset.num_domains
    return {
        name: torch.from_numpy(values.astype(np.uint8 if size <= 256 else np.int32))
        for (name, values), size in zip(found.items(), sizes, strict=True)
    }


def _best(records: list[dict[str, Any]]) -> dict[str, Any]:
    """The first of the best on validation, or the last one where there are no validation samples."""
    scores = [PairAccuracy.from_json(record["validation"]).pair_average for record in records]
    known = [score for score in scores if score is not None]
    return records[scores.index(max(known)) if known else -1]


@contextmanager
def _threads(number: int | None) -> Iterator[None]:
    """Limit torch to so many threads.

    A step on vectors takes a millisecond: more threads gain little on an idle machine, and on a busy one they wait for
    each other for ten times as long. With one, the figures also do not depend on the number of cores.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def input_shape(dataset: DomainDataset) -> tuple[int, ...]:
    """Of one sample as a backbone takes it: (3, H, W) or (F,)."""
    return (3, *dataset.x.shape[1:3]) if dataset.is_image else dataset.x.shape[-1:]
