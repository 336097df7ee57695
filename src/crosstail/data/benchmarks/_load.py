"""Benchmarks by name, or by name and folder, to a DomainDataset."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np

from crosstail import discovery
from crosstail.data.benchmarks import _image_folders as folders
from crosstail.data.benchmarks._sheet import DataSheet, read_sheet
from crosstail.data.dataset import DomainDataset
from crosstail.data.images.files import AnyPath, ImageFiles
from crosstail.data.sources.benchmark import BENCHMARKS, benchmark_of, with_folder
from crosstail.data.splits.paper import paper_split


def sheet_of(source: str) -> DataSheet | None:
    """The data sheet of a source that is a benchmark; None for a user's file whose sheet is not beside it any more."""
    name = benchmark_of(source)
    if name is None or (name.endswith(".py") and not Path(name).with_suffix(".toml").exists()):
        return None
    return existing_sheet(source)


def existing_sheet(source: str) -> DataSheet:
    """The same where there must be one; a user's file is not run for it."""
    name = benchmark_of(source)
    if name is None or not name.endswith(".py"):
        return cast(DataSheet, discovery.find(BENCHMARKS, name or with_folder(source)[0], "data set").SHEET)
    if not (file := Path(name).with_suffix(".toml")).exists():
        raise ValueError(f"{name}: has no data sheet beside it, expected {file}: `crosstail new dataset` writes both")
    return read_sheet(name)


def shot_thresholds(source: AnyPath) -> tuple[int, int]:
    """Many-shot pairs have more samples than the first number, few-shot ones at most the second."""
    sheet = sheet_of(str(source))
    return (sheet.many, sheet.few) if sheet else (100, 20)


def load_benchmark(source: str, seed: int = 0) -> DomainDataset:
    """Load `name`, from $CROSSTAIL_DATA, or `name:folder`, without applying label profiles."""
    name, root = with_folder(source)
    sheet = existing_sheet(source)
    load = discovery.declared(BENCHMARKS, name, "data set", "load", Callable)
    takes_root = "root" in inspect.signature(load).parameters
    if root == "":
        raise ValueError(f"{source!r}: no folder after the colon, expected for example {name}:data/{name}")
    if root and not takes_root:
        raise ValueError(f"{source!r}: {name} takes no folder, it is {sheet.source}")
    dataset = load(root, seed=seed) if takes_root else load(seed=seed)
    if not isinstance(dataset, DomainDataset):
        raise ValueError(f"{name}: load returns {type(dataset).__name__}, expected a DomainDataset")
    return dataset


def load_images(sheet: DataSheet, root: Path | str | None = None, *, seed: int = 0) -> DomainDataset:
    """The images that lists and split file of a sheet name, split by the latter or else as in the paper."""
    folder = folders.existing_root(sheet, root)
    base = folders.locate(sheet, folder)
    files = folders.image_files(sheet, folder, base)
    if missing := set(range(len(sheet.domains))) - {d for d, _, _ in files}:
        how = f"`crosstail data {sheet.name} --root {folder} --check` shows what is wrong"
        raise ValueError(f"{folder}: has no images of the domain {sheet.domains[min(missing)]!r}; {how}")
    path = folders.find_split_file(sheet, folder, base)
    splits = folders.read_split_file(sheet, path) if path else {}
    if absent := splits.keys() - files.keys():
        first = folders.place_name(sheet, min(absent))
        raise ValueError(f"{path}: names {first}, which is not in {base} ({len(absent):,} such images)")
    if path:
        files = {place: file for place, file in files.items() if place in splits}
    domain, y = folders.pairs_of(files).T
    if path:
        split, note = np.array([splits[place] for place in files], "<U5"), f"split read from {path}"
    else:
        assert sheet.validation is not None, "images in folders have no split of their own"
        split = paper_split(y, domain, validation=sheet.validation, seed=seed)
        note = f"split made as in the paper, with seed {seed}"
    x = ImageFiles(base, [file.relative_to(base).as_posix() for file in files.values()])
    return DomainDataset(sheet.name, x, y, domain, split, sheet.classes, sheet.domains, (note,))
