"""The source "manifest": a CSV or Parquet file with a row per sample, and split files."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from crosstail.data.dataset import DomainDataset
from crosstail.data.images.files import RESOLUTION, ImageFiles
from crosstail.data.sources.arrays import check_inputs
from crosstail.data.sources.assemble import from_files
from crosstail.data.sources.manifest_table import Manifest, checksum_file, read_manifest
from crosstail.data.sources.npz_members import read_member
from crosstail.data.splits.paper import paper_split


def load_manifest(
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    root: str | os.PathLike[str] | None = None,
    seed: int = 0,
    skip_broken: bool = False,
    resolution: int = RESOLUTION,
) -> DomainDataset:
    """The samples that a table lists: `domain`, `label`, optionally `split`, and `path` of an image or `x`.

    `columns` says what these are called in the file, as in {"domain": "site"}. Paths are relative to `root`, by default
    the folder of the manifest. `x` is a row number of the array in the .npy or .npz file of the same name. Without a
    split the samples are split as in the paper.
    """
    manifest = read_manifest(Path(path), columns)
    if manifest.where == "x":
        return _load_rows(manifest, seed)
    folder = Path(root) if root is not None else manifest.file.parent
    manifest = _inside(manifest, folder)
    sizes = _sizes(folder, manifest.samples)
    missing = np.flatnonzero(sizes < 0)
    if len(missing):
        shown = ", ".join(manifest.samples.take(pa.array(missing[:3])).to_pylist())
        found = f"{len(missing)} of {len(sizes)} files are not below {folder}: {shown}"
        found += ", …" if len(missing) > 3 else ""
        if not skip_broken or len(missing) == len(sizes):
            raise ValueError(f"{manifest.file}: {found}; give the folder of the images as `root`")
        manifest = manifest.keep(sizes >= 0)
        manifest = replace(manifest, notes=(*manifest.notes, f"left out: {found}"))
    files = ImageFiles(folder, manifest.samples, sizes=sizes[sizes >= 0], resolution=resolution)
    return from_files(
        manifest.file.stem,
        files,
        manifest.label.codes,
        manifest.domain.codes,
        manifest.label.names,
        manifest.domain.names,
        split=manifest.split,
        notes=manifest.notes,
        seed=seed,
        skip_broken=skip_broken,
    )


def save_split(dataset: DomainDataset, path: str | os.PathLike[str]) -> str:
    """Write the split as a manifest, with its checksum in `path`.sha256 (as of `sha256sum`), and return that checksum.

    Image files are listed by path relative to their root: load it with `load_manifest(path, root=...)`. Arrays are
    listed by row number, to be found in a .npy or .npz file of the same name. A saved split that was changed by hand
    does not load. Domains and classes come back in natural order, whatever their order was.
    """
    file = Path(path)
    if file.suffix.lower() != ".csv":
        raise ValueError(f"{file}: a split is saved as .csv")
    by_path = isinstance(dataset.x, ImageFiles)
    table = pa.table(
        {
            "domain": pa.array(dataset.domains).take(pa.array(dataset.domain)),
            "label": pa.array(dataset.classes).take(pa.array(dataset.y)),
            "path" if by_path else "x": _listed(dataset),
            "split": pa.array(dataset.split),
        }
    )
    csv.write_csv(table, file, csv.WriteOptions(quoting_style="needed"))
    checksum = hashlib.sha256(file.read_bytes()).hexdigest()
    checksum_file(file).write_text(f"{checksum}  {file.name}\n", encoding="utf-8")
    return checksum


def _listed(dataset: DomainDataset) -> Any:
    return dataset.x.paths() if isinstance(dataset.x, ImageFiles) else np.arange(len(dataset))


def _inside(manifest: Manifest, folder: Path) -> Manifest:
    """With paths relative to the folder and in one spelling; one that leads out of it is refused."""
    # Parts that are . or .. or empty (an absolute path has an empty one), and backslashes.
    odd = manifest.rows_matching(r"(^|/)\.{0,2}(/|$)|\\")
    if not len(odd):
        return manifest
    spelled = manifest.samples.to_pylist()
    # Not resolve(): a link inside the folder may well lead to another disk.
    top = os.path.abspath(folder)  # noqa: PTH100
    for row in odd:
        path = spelled[row]
        whole = os.path.normpath(os.path.join(top, path))  # noqa: PTH118
        if not whole.startswith(top.rstrip("/") + "/") and "\\" not in path:
            raise ValueError(
                f"{manifest.file}: {manifest.at(row)} has the path {path!r}, which leads out of {folder}; "
                f"give the folder that holds all images as `root`"
            )
        if "\\" in path and not os.path.exists(whole):  # noqa: PTH110
            raise ValueError(
                f"{manifest.file}: {manifest.at(row)} has the path {path!r}; expected / between folders, not \\"
            )
        spelled[row] = os.path.relpath(whole, top)
    return manifest.with_samples(pa.array(spelled, pa.string()))


def _sizes(folder: Path, paths: Any) -> NDArray[np.int64]:
    """The size of every file, −1 if it is not there."""
    sizes = np.empty(len(paths), np.int64)
    row = 0
    for start in range(0, len(paths), 10_000):  # in parts: paths as Python objects take four times as much memory
        for path in paths.slice(start, 10_000).to_pylist():
            try:
                sizes[row] = os.stat(f"{folder}/{path}").st_size  # noqa: PTH116
            except OSError:
                sizes[row] = -1
            row += 1
    return sizes


def _load_rows(manifest: Manifest, seed: int) -> DomainDataset:
    """Samples that are rows of an array beside the manifest."""
    beside = [manifest.file.with_suffix(suffix) for suffix in (".npy", ".npz")]
    array = next((file for file in beside if file.is_file()), None)
    if array is None:
        raise ValueError(
            f"{manifest.file}: has a column 'x' of row numbers, but there is neither {beside[0].name} nor "
            f"{beside[1].name} beside it"
        )
    x = _array(array)
    rows = manifest.samples
    wrong = np.flatnonzero((rows < 0) | (rows >= len(x)))
    if len(wrong):
        raise ValueError(
            f"{manifest.file}: {manifest.at(wrong[0])} has x = {rows[wrong[0]]}, expected a row of {array.name}, "
            f"0 to {len(x) - 1}"
        )
    label, domain = manifest.label, manifest.domain
    x = check_inputs(array, x)
    if not np.array_equal(rows, np.arange(len(x))):  # all of them as they are: no copy
        x = x[rows]
    train = np.full(len(rows), "train", "<U5")
    dataset = DomainDataset(manifest.file.stem, x, label.codes, domain.codes, train, label.names, domain.names)
    split = manifest.split
    if split is None:
        sizes = {"num_domains": dataset.num_domains, "num_classes": dataset.num_classes}
        split = paper_split(dataset.y, dataset.domain, seed=seed, **sizes)
    return replace(dataset, split=split, notes=manifest.notes)


def _array(path: Path) -> NDArray[Any]:
    try:
        if path.suffix == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False)
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            if "x" in file.files:
                return read_member(path, "x", file)
            found = ", ".join(file.files) or "nothing"
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path}: cannot be read as an array ({error})") from error
    raise ValueError(f"{path}: has no array 'x' but {found}")
