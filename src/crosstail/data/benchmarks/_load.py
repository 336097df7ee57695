"""From the name of a benchmark, or its name and folder, to a DomainDataset."""

import inspect
from pathlib import Path

import numpy as np

from crosstail import discovery
from crosstail.data.benchmarks import _layout
from crosstail.data.benchmarks._sheet import DataSheet
from crosstail.data.dataset import DomainDataset
from crosstail.data.images.files import ImageFiles

PACKAGE = "crosstail.data.benchmarks"


def split_source(source: str) -> tuple[str, str | None]:
    """The name and the folder of a source, `name` or `name:folder`.

    >>> split_source("vlcs"), split_source("vlcs:data/VLCS")
    (('vlcs', None), ('vlcs', 'data/VLCS'))
    """
    name, colon, root = source.partition(":")
    return name, root if colon else None


def sheet_of(source: str) -> DataSheet | None:
    """The data sheet of a source that is a benchmark.

    >>> sheet_of("pacs:somewhere").many, sheet_of("somewhere/mine.npz")
    (100, None)
    """
    name, _ = split_source(source)
    if name not in discovery.names(PACKAGE):
        return None
    sheet: DataSheet = discovery.find(PACKAGE, name, "data set").SHEET
    return sheet


def load_benchmark(source: str, seed: int = 0) -> DomainDataset:
    """Load `name`, from $CROSSTAIL_DATA, or `name:folder`; label profiles are for the caller to apply."""
    name, root = split_source(source)
    module = discovery.find(PACKAGE, name, "data set")
    takes_root = "root" in inspect.signature(module.load).parameters
    if root is not None and not root:
        raise ValueError(f"{source!r}: no folder after the colon, expected for example {name}:data/{name}")
    if root is not None and not takes_root:
        raise ValueError(f"{source!r}: {name} takes no folder, it is {module.SHEET.source}")
    dataset: DomainDataset = module.load(root, seed=seed) if takes_root else module.load(seed=seed)
    return dataset


def load_images(
    sheet: DataSheet, root: Path | str | None = None, *, seed: int = 0, split_file: Path | str | None = None
) -> DomainDataset:
    """The images of a sheet below a root, in the paper's split file's split or in one made like it.

    The images stay in their files. Those that the sheet's lists or the split file do not name are left out.
    """
    folder = _layout.existing_root(sheet, root)
    base = _layout.locate(sheet, folder)
    files = _layout.image_files(sheet, folder, base)
    seen = {place[0] for place in files}
    for d, domain in enumerate(sheet.domains):
        if d not in seen:
            raise ValueError(
                f"{folder}: has no images of the domain {domain!r}; "
                f"`crosstail data {sheet.name} --root {folder} --check` tells what is wrong"
            )
    path = _layout.find_split_file(sheet, folder, base, given=split_file)
    splits = _layout.read_split_file(sheet, path) if path else None
    if splits is not None:
        absent = splits.keys() - files.keys()
        if absent:
            first = _layout.place_name(sheet, min(absent))
            raise ValueError(f"{path}: names {first}, which is not in {base} ({len(absent):,} such images)")
        files = {place: file for place, file in files.items() if place in splits}
    pairs = _layout.pairs_of(files)
    if splits is not None:
        split = np.array([splits[place] for place in files], "<U5")
    else:
        split = _layout.make_split(sheet, pairs, seed)
    return DomainDataset(
        name=sheet.name,
        x=ImageFiles(base, [file.relative_to(base).as_posix() for file in files.values()]),
        y=pairs[:, 1],
        domain=pairs[:, 0],
        split=split,
        classes=sheet.classes,
        domains=sheet.domains,
        notes=(f"the split is that of {path}" if path else f"the split is made like the paper's, with seed {seed}",),
    )
