"""The source "manifest": a CSV or Parquet file or a DataFrame with a row per sample; split files are manifests, too."""

import errno
import os
from dataclasses import replace
from pathlib import Path
from stat import S_ISREG
from typing import Any, Unpack

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from crosstail.data.dataset import DomainDataset
from crosstail.data.images.files import AnyPath, ImageFiles, Samples
from crosstail.data.sources import Columns
from crosstail.data.sources._arrays import check_inputs, read_x
from crosstail.data.sources._as_dataset import SourceOptions, as_dataset
from crosstail.data.sources._groups import group_like_columns
from crosstail.data.sources._locate import data_name
from crosstail.data.sources._manifest_table import (
    Manifest,
    checked,
    choose,
    read_manifest,
)


def load_manifest(
    path: AnyPath, *, columns: Columns = None, root: AnyPath | None = None, **options: Unpack[SourceOptions]
) -> DomainDataset:
    """Load the samples that a table lists: `domain`, `label`, optionally `split` and `group`, and `path` or `x`.

    `columns` maps these names to those in the file, as in {"domain": "site"}. Paths are relative to `root`, by default
    the folder of the manifest, or the folder that they share if all are absolute. `x` is a row number of the array in
    the .npy or .npz file of the same name. Without a split column, the samples get the split of user data.
    """
    manifest = read_manifest(Path(path), columns)
    x: Samples
    if manifest.key == "x":
        x = _rows(manifest)
    else:
        folder = Path(root or _shared(manifest) or manifest.file.parent)
        manifest, x = _files(manifest, folder, skip_missing=options.get("skip_broken", False))
    return _as_dataset(manifest, x, **options)


def load_frame(
    frame: pd.DataFrame, *, columns: Columns = None, root: AnyPath | None = None, **options: Unpack[SourceOptions]
) -> DomainDataset:
    """Load the samples in the rows of a DataFrame, with the columns of a manifest.

    With a column `path` they are images, by default relative to the current folder; without, they are vectors of the
    other columns of numbers.
    """
    file, names = Path("DataFrame"), [str(name) for name in frame.columns]
    chosen = choose(file, names, columns)
    chosen.pop("x", None)  # a feature like any other
    chosen |= group_like_columns(chosen, names)
    table = pa.table({ours: _column(theirs, frame) for ours, theirs in chosen.items()})
    if "path" in chosen:
        found = checked(file, table, [])
        manifest, x = _files(found, Path(root or "."), skip_missing=options.get("skip_broken", False))
        return _as_dataset(manifest, x, **options)
    numbers = frame.loc[:, [str(name) not in chosen.values() for name in frame.columns]].select_dtypes("number")
    if not numbers.shape[1]:
        raise ValueError(f"{file}: has neither a column 'path' nor columns of numbers, but {', '.join(names)}")
    used = list(map(str, numbers.columns))
    shown = ", ".join(used if len(used) < 4 else [*used[:2], "…", used[-1]])
    note = f"the vectors are the {len(used)} columns of numbers without another use: {shown}"
    manifest = checked(file, table.append_column("x", pa.array(np.arange(len(frame)))), [note])
    return _as_dataset(manifest, check_inputs(file, numbers.to_numpy(np.float32)), **options)


def _column(name: str, frame: pd.DataFrame) -> Any:
    """A column for Arrow; numbers and text together become text."""
    values = frame.iloc[:, list(map(str, frame.columns)).index(name)]
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if missing else str(v) for v, missing in zip(values, values.isna(), strict=True)])


def _as_dataset(manifest: Manifest, x: Samples, **options: Unpack[SourceOptions]) -> DomainDataset:
    (domain, domains), (y, classes) = manifest.codes("domain"), manifest.codes("label")
    named: dict[str, Any] = {"split": manifest.split, "group": manifest.group, "notes": manifest.notes}
    if options.get("group_by") is None:
        named["group_like"] = dict(manifest.group_like)
    # Under the path at first, so that an error about its values names the file.
    dataset = as_dataset(str(manifest.file), x, y, domain, classes, domains, **named, **options)
    return replace(dataset, name=data_name(manifest.file).removesuffix(manifest.file.suffix))


def _files(manifest: Manifest, folder: Path, *, skip_missing: bool) -> tuple[Manifest, ImageFiles]:
    manifest = _inside(manifest, folder)
    paths = manifest.table["path"]
    sizes = np.fromiter((_size(f"{folder}/{path}") for path in paths), np.int64, len(paths))  # −1: missing
    missing = sizes < 0
    if missing.any():
        count = int(missing.sum())
        shown = ", ".join(paths[missing][:3]) + (", …" if count > 3 else "")
        found = f"{count} of {len(sizes)} files are not below {folder}: {shown}"
        if not skip_missing or missing.all():
            raise ValueError(f"{manifest.file}: {found}; give the folder of the images as `root`")
        notes = (*manifest.notes, f"left out: {found}")
        manifest = replace(manifest, table=manifest.table[~missing], notes=notes)
    kept = pa.array(manifest.table["path"], pa.string())
    return manifest, ImageFiles(folder, kept, sizes=sizes[~missing])


def _shared(manifest: Manifest) -> str:
    """The folder that holds all samples, if all paths are absolute."""
    paths = manifest.table["path"]
    return os.path.commonpath([os.path.dirname(path) for path in paths]) if paths.str.startswith("/").all() else ""  # noqa: PTH120


def _inside(manifest: Manifest, folder: Path) -> Manifest:
    # Parts that are . or .. or empty (an absolute path has an empty one), and backslashes.
    odd = manifest.table["path"].str.contains(r"(?:^|/)\.{0,2}(?:/|$)|\\").to_numpy(np.bool_)
    if not odd.any():
        return manifest
    # Not resolve(): a link inside the folder may well lead to another disk.
    top = os.path.abspath(folder)  # noqa: PTH100
    table, normal = manifest.table.copy(), []
    for row, path in zip(np.flatnonzero(odd).tolist(), table["path"][odd], strict=True):
        whole = os.path.normpath(os.path.join(top, path))  # noqa: PTH118
        wrong = ""
        if "\\" in path:
            wrong = "" if os.path.exists(whole) else "; expected / between folders, not \\"  # noqa: PTH110
        elif not whole.startswith(top.rstrip("/") + "/"):
            wrong = f", which leads out of {folder}; give the folder that holds all images as `root`"
        if wrong:
            raise ValueError(f"{manifest.file}: {manifest.at(row)} has the path {path!r}{wrong}")
        normal.append(os.path.relpath(whole, top))
    table.loc[odd, "path"] = normal
    return replace(manifest, table=table).without_duplicates()


def _size(path: str) -> int:
    try:
        found = os.stat(path)  # noqa: PTH116
    except ValueError:  # no file has such a name
        return -1
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP):
            raise
        return -1
    return found.st_size if S_ISREG(found.st_mode) else -1


def _rows(manifest: Manifest) -> NDArray[Any]:
    beside = [manifest.file.with_suffix(suffix) for suffix in (".npy", ".npz")]
    array = next((file for file in beside if file.is_file()), None)
    if array is None:
        missing = f"there is neither {beside[0].name} nor {beside[1].name} beside it"
        raise ValueError(f"{manifest.file}: has a column 'x' of row numbers, but {missing}")
    x = check_inputs(array, read_x(array))
    rows = manifest.table["x"].to_numpy()
    wrong = np.flatnonzero((rows < 0) | (rows >= len(x)))
    if len(wrong):
        found = f"{manifest.at(wrong[0])} has x = {rows[wrong[0]]}"
        raise ValueError(f"{manifest.file}: {found}, expected a row of {array.name}, 0 to {len(x) - 1}")
    return x if np.array_equal(rows, np.arange(len(x))) else x[rows]  # no copy if all rows are used in order
