"""`load`: any source to a DomainDataset."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from shlex import quote
from typing import Any

import pandas as pd

from crosstail.data.benchmarks._load import load_benchmark, sheet_of
from crosstail.data.dataset import DomainDataset
from crosstail.data.images.files import AnyPath
from crosstail.data.sources._arrays import load_arrays
from crosstail.data.sources._as_dataset import SourceOptions, without_broken
from crosstail.data.sources._folder import load_folder
from crosstail.data.sources._hugging_face import is_hf, is_saved_dataset, load_hf
from crosstail.data.sources._locate import HUGGING_FACE, OTHERS, require_source
from crosstail.data.sources._manifest import load_frame, load_manifest
from crosstail.data.sources._manifest_table import MANIFEST_SUFFIXES, Columns
from crosstail.data.sources._torch_dataset import load_torch
from crosstail.data.spec import DataSpec
from crosstail.data.splits.gaps import with_gaps_noted
from crosstail.data.splits.label_profiles import apply_labels
from crosstail.progress import Progress


def load(
    source: AnyPath | pd.DataFrame | Any,
    *,
    labels: Sequence[str] | None = None,
    seed: int = 0,
    skip_broken: bool = False,
    columns: Columns = None,
    root: AnyPath | None = None,
    group_by: str | None = None,
    progress: Progress | None = None,
) -> DomainDataset:
    """Load a benchmark (`NAME` or `NAME:FOLDER`), a folder, a manifest, an .npz file or "hf:NAME".

    Or an object: a DataFrame with the columns of a manifest (`load_frame`), a data set of the Hugging Face library
    `datasets` (`load_hf`), or one of torch (`load_torch`).

    `labels` are label profiles, one per domain or one for all. By default a benchmark has those of its data sheet, and
    other sources have none; `["uniform"]` keeps all samples. `skip_broken` leaves out images that cannot be decoded and
    names them in the notes; `columns` and `root` are those of `load_manifest`; `group_by` is a regular expression that
    finds the group in the path of an image, as in "patient\\d+". A benchmark takes precedence over a folder of the same
    name: write `./digits` for the folder.

    >>> load("digits", labels=["uniform"]).counts("train")[0].tolist()
    [57, 57, 57, 57, 57, 57, 57, 57, 57, 57]
    >>> load("digits").counts("train")[0].tolist()
    [57, 36, 23, 14, 9, 6, 3, 2, 1, 1]
    """
    options: SourceOptions = {"seed": seed, "skip_broken": skip_broken, "group_by": group_by, "progress": progress}
    if not isinstance(source, (str, PathLike)):
        dataset = _load_object(source, columns, root, options)
        return _finished(dataset, labels, seed, dataset.name)
    name, path = str(source), Path(source)
    sheet = sheet_of(name) if isinstance(source, str) else None
    if sheet is not None:
        if group_by is not None:
            raise ValueError(f"{name}: a benchmark defines its own split; remove --group-by {quote(group_by)}")
        dataset = load_benchmark(name, seed=seed)
        labels = sheet.labels if labels is None else labels
        dataset = without_broken(dataset) if skip_broken else dataset
    elif name.startswith(HUGGING_FACE) or is_saved_dataset(path):
        dataset = load_hf(source, columns=columns, **options)
    elif path.suffix.lower() == ".npz":
        dataset = load_arrays(path, **options)
    elif path.suffix.lower() in MANIFEST_SUFFIXES:
        dataset = load_manifest(path, columns=columns, root=root, **options)
    elif path.is_dir():
        dataset = load_folder(path, **options)
    else:
        require_source(name)
        raise ValueError(f"{path}: is not a kind of file that can be loaded. {OTHERS}")
    return _finished(dataset, labels, seed, name)


def load_source(spec: DataSpec, progress: Progress | None = None) -> DomainDataset:
    """All samples of a spec with the split they came with, before any protocol or label profile."""
    return load(
        spec.dataset,
        labels=(),
        seed=spec.data_seed,
        skip_broken=spec.skip_broken,
        columns=spec.columns or None,
        group_by=spec.group_by,
        progress=progress,
    )


def _finished(dataset: DomainDataset, labels: Sequence[str] | None, seed: int, source: str) -> DomainDataset:
    """The data set with its label profiles and notes about what its split lacks; a single class is refused."""
    if dataset.num_classes < 2:
        found = f"{source}: has one class ({', '.join(dataset.classes)})"
        raise ValueError(f"{found}, expected two or more")
    return with_gaps_noted(apply_labels(dataset, labels, seed))


def _load_object(source: Any, columns: Columns, root: AnyPath | None, options: SourceOptions) -> DomainDataset:
    if isinstance(source, pd.DataFrame):
        return load_frame(source, columns=columns, root=root, **options)
    if is_hf(source):
        return load_hf(source, columns=columns, **options)
    if hasattr(source, "__getitem__"):
        return load_torch(source, **options)
    expected = "expected a path or name, a DataFrame, or a data set of torch or Hugging Face"
    raise ValueError(f"{type(source).__name__}: is not a kind of object that can be loaded; {expected}")
