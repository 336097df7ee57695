"""A finished run as a function from inputs to probabilities, without the training data."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from crosstail import discovery
from crosstail.backbones import Backbone
from crosstail.backbones._frozen import FrozenNetwork
from crosstail.data import DomainDataset, kind_of, to_input
from crosstail.data.images.decode import FORMATS, HEIC_REMEDY
from crosstail.data.images.decode import SUFFIXES as IMAGE_SUFFIXES
from crosstail.data.images.files import Samples
from crosstail.data.inputs import kind_of_model
from crosstail.data.sources._arrays import check_inputs, read_x
from crosstail.data.sources._folder_walk import walk
from crosstail.metrics._calibration import Calibration
from crosstail.metrics._link import log_probabilities
from crosstail.prediction.prior import read_table
from crosstail.training import user_file
from crosstail.training.embedding import Embedder
from crosstail.training.existing import existing_run, naming_run
from crosstail.training.folder import MODEL
from crosstail.training.model import build_final_model, load_weights
from crosstail.training.run import Run
from crosstail.training.run_data import frozen_backbone

NAMED = 20  # sites listed in an error
NAMED_CHARACTERS = 300  # of a path in an error
UNKNOWN = -1
"""The domain of a sample whose domain is unknown."""


class Predictor:
    """The model of a run, with its frozen backbone if it has one.

    The run's folder has everything but the weights of a frozen backbone, which are where training found them, or in
    the file `weights`.
    """

    def __init__(self, run: Path, weights: Path | None = None, trust: bool = False) -> None:
        self.run = Run(existing_run(run))
        folder, result = self.run.folder, self.run.result
        self.classes = tuple(result.classes)
        self.input_shape = tuple(result.input_shape)
        self.kind = kind_of_model(self.input_shape)
        self.sites = {name: d for d, name in enumerate(result.domains) if any(result.counts[d])}
        """The domains that the model was trained on, by name."""
        with naming_run(folder.path):
            frozen = self._frozen(str(weights) if weights else None)
            seen = (frozen.num_features,) if frozen and not result.spec.stages else self.input_shape
            if frozen and result.spec.stages:
                frozen = frozen.divided(result.spec.stages).front
            spec = user_file.from_copy(result.spec, folder, trust)
            self.algorithm = build_final_model(spec, seen, np.array(result.counts))
        self.embedder = FrozenNetwork(frozen) if frozen else None
        load_weights(self.algorithm, folder)
        self.algorithm.eval()
        self.calibration = self.run.calibration or Calibration.none(result.domains, len(self.classes))

    def _frozen(self, weights: str | None) -> Backbone | None:
        """The backbone that embedded the training data, verified by the checksum of its weights."""
        spec, checksum = self.run.result.spec, self.run.result.weights
        if weights and not spec.frozen:
            raise ValueError("the run contains all weights of its model, which was trained whole: remove --weights")
        try:
            backbone = frozen_backbone(spec, self.input_shape, weights)
        except FileNotFoundError:
            needed = f"The model needs these weights of {spec.backbone} (checksum {checksum})"
            found = f"{weights or spec.weights}: there is no such file"
            raise FileNotFoundError(f"{found}. {needed}: say where they are with --weights FILE") from None
        if backbone is not None and backbone.weights != checksum:
            found = f"{weights or spec.weights or spec.backbone}: the weights have checksum {backbone.weights}"
            trained = f"the model was trained on those with {checksum}"
            raise ValueError(f"{found}, but {trained}: name their file with --weights FILE")
        return backbone

    def site(self, name: str | None) -> int:
        """The domain with this name; UNKNOWN without one, or if the model was not trained on it."""
        return UNKNOWN if name is None else self.sites.get(name, UNKNOWN)

    def site_note(self, name: str | None) -> str:
        """Why a site is not used, where it is not."""
        if name is None or (name in self.sites and self.algorithm.uses_domain):
            return ""
        if name not in self.sites:
            known = list(self.sites)
            near = f". Did you mean {near!r}?" if (near := discovery.nearest(name, known)) else ""
            more = f" and {len(known) - NAMED:,} more" if len(known) > NAMED else ""
            trained = f"the model was trained on {', '.join(known[:NAMED])}{more}"
            return f"the site {name!r} is new to the model, so it is treated as unknown: {trained}{near}"
        return f"{self.run.result.spec.method} does not use the site; only the temperature of its probabilities does"

    def inputs(self, dataset: DomainDataset) -> Samples:
        """The inputs of a data set, images in the size that the model takes."""
        resized = dataset.kind.resized if len(self.input_shape) > 1 else None
        return resized(dataset.x, self.input_shape[1], self.run.result.spec.whole_view) if resized else dataset.x

    def probabilities(self, x: NDArray[Any], domain: NDArray[np.int64] | int = UNKNOWN) -> NDArray[np.float32]:
        """Calibrated probabilities (N, C) of images (N, H, W, 3) or vectors (N, F); `domain` as in `scored`."""
        scores = self.scored(self.features(x), domain)
        return self.calibration.probabilities(scores, domain, self.run.result.domains)

    def features(self, x: NDArray[Any]) -> Tensor:
        """What the classifier sees (N, F) of images (N, H, W, 3) or vectors (N, F)."""
        check_shape(x, self.input_shape, "inputs")
        inputs = to_input(x)
        return self._trained(inputs if self.embedder is None else torch.from_numpy(self.embedder(inputs)))

    def features_of(self, x: Samples, batch_size: int) -> Callable[[NDArray[np.int64]], Tensor]:
        """What the classifier sees of rows of x; frozen features are those in the cache that training uses."""
        if self.embedder is None or self.run.result.spec.stages:
            return lambda rows: self.features(x[rows])
        check_shape(x, self.input_shape, "inputs")
        embedder = Embedder(x, self.embedder.backbone, batch_size=batch_size, required=False)
        return lambda rows: self._trained(torch.from_numpy(embedder(rows)[:, 0]))

    def _trained(self, inputs: Tensor) -> Tensor:
        with torch.inference_mode():
            z: Tensor = self.algorithm.embed(inputs)
            return z

    def scored(self, z: Tensor, domain: NDArray[np.int64] | int = UNKNOWN) -> NDArray[np.float32]:
        """Log probabilities (N, C) of features, all of one domain or with one for each, which may be UNKNOWN.

        They are not calibrated.
        """
        domain = np.broadcast_to(np.asarray(domain), len(z))
        scores = torch.empty(len(z), len(self.classes))
        with torch.inference_mode():
            for rows, known in ((domain == UNKNOWN, False), (domain != UNKNOWN, True)):
                if rows.any():
                    own = torch.from_numpy(domain[rows]) if known else None
                    scores[rows] = self.algorithm.scores(z[rows], own)
            if scores.isnan().any():
                raise ValueError(f"{self.run.path / MODEL} gives scores that are NaN: train the model again")
            return log_probabilities(scores).numpy()

    def distances(self, z: Tensor, domain: NDArray[np.int64] | int = UNKNOWN) -> NDArray[np.float32]:
        """How far features are from the training samples of their domains (N,); NaN if the model cannot tell."""
        domain, far = np.broadcast_to(np.asarray(domain), len(z)), np.full(len(z), np.nan, np.float32)
        with torch.inference_mode():
            for rows, known in ((domain == UNKNOWN, False), (domain != UNKNOWN, True)):
                own = torch.from_numpy(domain[rows]) if known else None
                if rows.any() and (found := self.algorithm.distance_to_training(z[rows], own)) is not None:
                    far[rows] = found
        return far


def check_shape(x: Samples, trained: tuple[int, ...], source: Path | str) -> None:
    """Refuse inputs of another shape than those that a model was trained on."""
    found = kind_of(x).shape(x)
    if found != trained:
        how = ": embed them with the backbone that embedded the training data" if len(found) == 1 else ""
        raise ValueError(f"{source}: the shape is {found}, but the model was trained on {trained}{how}")


class Inputs(NamedTuple):
    """Inputs with their names; with a .csv its rows, and why files in it were left out."""

    names: list[str]
    x: Samples
    table: pd.DataFrame | None = None
    missing: Sequence[str] = ()


def find_inputs(files: Sequence[Path], predictor: Predictor, *, skip_missing: bool = False) -> Inputs:
    """Image files, those in folders or a .csv, or rows of one array file; `skip_missing` is for files in a .csv."""
    for file in files:
        if not file.exists():
            raise FileNotFoundError(f"{file}: there is no such file or folder")
    if any(file.suffix.lower() in (".npy", ".npz") for file in files):
        if len(files) > 1:
            raise ValueError(f"{files[0]}: give one .npy or .npz file, or images, not both")
        x = check_inputs(files[0], read_x(files[0]))
        check_shape(x, predictor.input_shape, files[0])
        return Inputs([str(row) for row in range(len(x))], x)
    if predictor.kind.open is None or predictor.kind.resized is None:
        takes = f"the model takes {predictor.kind.described(predictor.input_shape)}"
        raise ValueError(f"{files[0]}: {takes}: give an .npy or .npz file")
    table: pd.DataFrame | None = None
    missing: dict[int, str] = {}
    if len(files) == 1 and files[0].suffix.lower() == ".csv":
        table = read_table(files[0], ("path",))
        if table["path"].isna().any():
            raise ValueError(f"{files[0]}: row {int(table['path'].isna().argmax()) + 1} has no path")
        listed = [files[0].parent / name for name in table["path"]]
        missing = {row: why for row, path in enumerate(listed) if (why := _missing(path))}
        if missing and not (skip_missing and len(missing) < len(listed)):
            raise ValueError(f"{files[0]}: {next(iter(missing.values()))}")
        files, table = [path for row, path in enumerate(listed) if row not in missing], table.drop(index=list(missing))
    found: list[Path] = []
    for file in files:
        if file.is_dir():
            found += sorted(file.joinpath(*one.folder, image.name) for one in walk(file) for image in one.images)
        else:
            found.append(file)
    if not found:
        heic = f"; for HEIC photos {HEIC_REMEDY}" if "HEIF" not in FORMATS else ""
        raise ValueError(f"{files[0]}: contains no images ({', '.join(sorted(IMAGE_SUFFIXES))}{heic})")
    names = [str(path) for path in found]
    absolute = [str(path.absolute()).lstrip("/") for path in found]
    x = predictor.kind.open(Path("/"), absolute)
    x = predictor.kind.resized(x, predictor.input_shape[1], predictor.run.result.spec.whole_view)
    return Inputs(names, x, table, list(missing.values()))


def _missing(path: Path) -> str:
    """Why there is no such file; empty if there is one."""
    try:
        path.stat()
    except (OSError, ValueError) as error:  # the last: no file has such a name
        why = getattr(error, "strerror", None) or str(error)
        return f"{str(path)[:NAMED_CHARACTERS]!r} cannot be read ({why})"
    return ""
