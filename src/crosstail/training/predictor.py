"""A finished run as a function from inputs to probabilities, without the training data."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from crosstail import backbones
from crosstail.data import BrokenImage, DomainDataset, ImageFiles, to_input
from crosstail.data.decode import SUFFIXES as IMAGE_SUFFIXES
from crosstail.metrics import PairAccuracy
from crosstail.training import own_code
from crosstail.training.folder import RunFolder
from crosstail.training.loop import Progress
from crosstail.training.run import build_model


class Predictor:
    """The model of a run, behind its frozen backbone if it has one; the domain of an input is not needed.

    Everything it needs is in the run's folder, and, for a pretrained backbone, in that backbone's package.
    """

    def __init__(self, run: Path, trust: bool = False) -> None:
        folder = RunFolder(run)
        result, state = folder.result(), folder.load("model.pt")
        if result is None or state is None:
            raise ValueError(f"{run} is not finished: run its `crosstail fit` command to the end first")
        self.spec = folder.spec()
        self.classes: tuple[str, ...] = tuple(result["classes"])
        self.domains: tuple[str, ...] = tuple(result["domains"])
        self.counts = np.array(result["counts"])
        self.input_shape: tuple[int, ...] = tuple(result["input_shape"])
        seen = self.input_shape
        self.embedder: backbones.Backbone | None = None
        if self.spec.freeze:
            self.embedder = backbones.build(self.spec.backbone, self.input_shape).eval()
            seen = (self.embedder.num_features,)
        self.algorithm = build_model(own_code.from_copy(self.spec, folder, trust), seen, self.counts)
        self.algorithm.load_state_dict(state)
        self.algorithm.eval()

    def probabilities(self, x: NDArray[Any]) -> NDArray[np.float32]:
        """Class probabilities (N, C) of images (N, H, W, 3) or vectors (N, F)."""
        found = (3, *x.shape[1:3]) if x.ndim == 4 else tuple(x.shape[1:])
        if found != self.input_shape:
            raise ValueError(f"the inputs are {found}, but the model was trained on {self.input_shape}")
        with torch.inference_mode():
            inputs = to_input(x)
            if self.embedder is not None:
                inputs = self.embedder(inputs)
            return self.algorithm(inputs).softmax(1).numpy()


@dataclass(frozen=True)
class Prediction:
    """What a model says of one input, or why it could not be read."""

    name: str
    label: str = ""
    probabilities: tuple[float, ...] = ()
    problem: str = ""


def find_inputs(files: Sequence[Path], predictor: Predictor) -> tuple[list[str], NDArray[Any] | ImageFiles]:
    """Names and inputs: images given as files or in folders, or the rows of one .npy or .npz file."""
    if any(file.suffix.lower() in (".npy", ".npz") for file in files):
        if len(files) > 1:
            raise ValueError(f"{files[0]}: give one .npy or .npz file, or images, not both")
        return _rows_of(files[0])
    if len(predictor.input_shape) == 1:
        raise ValueError(
            f"{files[0]}: the model takes vectors of {predictor.input_shape[0]} numbers: give an .npz file"
        )
    found: list[Path] = []
    for file in files:
        if file.is_dir():
            found += sorted(path for path in file.rglob("*") if path.suffix.lower() in IMAGE_SUFFIXES)
        elif file.exists():
            found.append(file)
        else:
            raise FileNotFoundError(f"{file}: there is no such file or folder")
    if not found:
        raise ValueError(f"{files[0]}: holds no images ({', '.join(sorted(IMAGE_SUFFIXES))})")
    names = [str(path) for path in found]
    absolute = [str(path.absolute()).lstrip("/") for path in found]
    return names, ImageFiles("/", absolute, resolution=predictor.input_shape[1])


def _rows_of(file: Path) -> tuple[list[str], NDArray[Any]]:
    if not file.exists():
        raise FileNotFoundError(f"{file}: there is no such file")
    try:
        found = np.load(file, allow_pickle=False, mmap_mode="r" if file.suffix == ".npy" else None)
        x = found if isinstance(found, np.ndarray) else found["x"]
    except KeyError:
        raise ValueError(f"{file}: has no array 'x'") from None
    except (ValueError, OSError) as error:
        raise ValueError(f"{file}: cannot be read ({error})") from None
    return [str(row) for row in range(len(x))], x


def predict_inputs(
    predictor: Predictor,
    names: Sequence[str],
    inputs: NDArray[Any] | ImageFiles,
    *,
    skip_broken: bool = False,
    progress: Progress | None = None,
    batch_size: int = 64,
) -> list[Prediction]:
    """Predict in batches; a broken image ends it, or is named in its place."""
    predictions: list[Prediction] = []
    for start in range(0, len(names), batch_size):
        rows = np.arange(start, min(start + batch_size, len(names)))
        broken: dict[int, str] = {}
        try:
            x = inputs[rows]
        except BrokenImage:
            broken = {int(row): problem for row in rows if (problem := _problem(inputs, int(row)))}
            if not skip_broken:
                row, problem = next(iter(broken.items()))
                raise ValueError(f"{names[row]}: {problem} (--skip-broken goes on without it)") from None
            rows = np.array([row for row in rows if row not in broken], np.int64)
            x = inputs[rows]
        if not np.isfinite(x).all():
            wrong = int(rows[~np.isfinite(x).all(axis=tuple(range(1, x.ndim)))][0])
            raise ValueError(f"input {names[wrong]} holds NaN or infinite numbers")
        scores = predictor.probabilities(x) if len(rows) else np.zeros((0, len(predictor.classes)), np.float32)
        said = {
            int(row): Prediction(names[int(row)], predictor.classes[int(p.argmax())], tuple(p.tolist()))
            for row, p in zip(rows, scores, strict=True)
        }
        said |= {row: Prediction(names[row], problem=problem) for row, problem in broken.items()}
        predictions += [said[row] for row in sorted(said)]
        if progress:
            progress("predicting", min(start + batch_size, len(names)), len(names))
    return predictions


def _problem(inputs: NDArray[Any] | ImageFiles, row: int) -> str:
    try:
        inputs[row]
    except BrokenImage as error:
        return error.problem
    return ""


def evaluate_on(
    predictor: Predictor, dataset: DomainDataset, split: str = "all", progress: Progress | None = None
) -> PairAccuracy:
    """Hits and totals per pair of the data set's own domains and the model's classes, which are matched by name."""
    unknown = [name for name in dataset.classes if name not in predictor.classes]
    if unknown:
        raise ValueError(
            f"{dataset.name} has the class {unknown[0]!r}, which the model does not know: it was trained on "
            f"{', '.join(predictor.classes)}"
        )
    rows = np.arange(len(dataset)) if split == "all" else dataset.rows(split)
    if not len(rows):
        raise ValueError(f"{dataset.name} has no samples in the split {split!r}")
    chosen = dataset.keep(rows)
    names = chosen.x.paths() if isinstance(chosen.x, ImageFiles) else [str(row) for row in rows]
    inputs = chosen.x
    if isinstance(inputs, ImageFiles):
        inputs = inputs.at_resolution(predictor.input_shape[1])
    number = {name: c for c, name in enumerate(predictor.classes)}
    said = predict_inputs(predictor, names, inputs, progress=progress)
    return PairAccuracy.from_predictions(
        np.array([number[prediction.label] for prediction in said]),
        np.array([number[name] for name in dataset.classes])[chosen.y],
        chosen.domain,
        num_domains=dataset.num_domains,
        num_classes=len(predictor.classes),
    )
