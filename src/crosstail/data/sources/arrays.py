"""The source "arrays": an .npz file with x, y and domain, and optionally split, domains and classes."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from crosstail.data.dataset import SPLITS, DomainDataset
from crosstail.data.sources.npz_members import read_member
from crosstail.data.splits.paper import paper_split

REQUIRED = ("x", "y", "domain")
OPTIONAL = ("split", "domains", "classes")
_ROWS = 4096  # at a time: a memory map is not read into memory at once


def load_arrays(path: Path, *, seed: int = 0) -> DomainDataset:
    """Read an .npz file; without a `split` in it, the samples are split as in the paper (`paper_split`)."""
    arrays = _read(path)
    x = check_inputs(path, arrays["x"])
    y, domain = (_indices(path, key, arrays[key], len(x)) for key in ("y", "domain"))
    classes = _names(path, "classes", arrays.get("classes"), y)
    domains = _names(path, "domains", arrays.get("domains"), domain)
    train = np.full(len(x), "train", "<U5")
    # Built under the name of the file first, so that what is wrong with its indices is said of the file.
    dataset = DomainDataset(str(path), x, y, domain, train, classes, domains)
    if "split" in arrays:
        split = _split(path, arrays["split"], len(x))
    else:
        split = paper_split(y, domain, num_domains=len(domains), num_classes=len(classes), seed=seed)
    return replace(dataset, name=path.stem, split=split)


def save_arrays(dataset: DomainDataset, path: Path) -> None:
    """Write a data set as an .npz file that `load_arrays` reads, whole or not at all."""
    assert isinstance(dataset.x, np.ndarray)
    partial = path.with_name(f".{path.stem}.{os.getpid()}.npz")
    try:
        with partial.open("wb") as file:
            np.savez(
                file,
                x=dataset.x,
                y=dataset.y,
                domain=dataset.domain,
                split=dataset.split,
                domains=np.array(dataset.domains),
                classes=np.array(dataset.classes),
            )
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _read(path: Path) -> dict[str, NDArray[Any]]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    try:
        # Opened here: np.load leaves a file open when it turns out to be a broken archive.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            missing = [key for key in REQUIRED if key not in file.files]
            if not missing:
                return {key: read_member(path, key, file) for key in (*REQUIRED, *OPTIONAL) if key in file.files}
            found = ", ".join(file.files) or "nothing"
    except (ValueError, OSError, EOFError, BadZipFile, AttributeError, TypeError) as error:
        # The last two: a plain .npy under the name .npz loads as an array, which is no context manager.
        raise ValueError(f"{path}: cannot be read as an .npz file of plain arrays ({error})") from error
    raise ValueError(
        f"{path}: has no array {missing[0]!r} but {found}; expected {', '.join(REQUIRED)} and optionally "
        f"{', '.join(OPTIONAL)}"
    )


def check_inputs(path: Path, x: NDArray[Any]) -> NDArray[Any]:
    """Images in uint8 or finite embeddings in float32, or an error that names the row."""
    if x.ndim and not len(x):
        raise ValueError(f"{path}: x has no rows")
    if x.ndim == 4 and x.shape[3] == 3 and x.dtype == np.uint8:
        return x
    if x.ndim not in (2, 3) or x.dtype.kind != "f":
        raise ValueError(
            f"{path}: x is {x.dtype} {x.shape}, expected uint8 images (N, H, W, 3) or float embeddings (N, F)"
        )
    wrong = np.flatnonzero(np.concatenate([_odd(x[i : i + _ROWS]) for i in range(0, len(x), _ROWS)]))
    if len(wrong):
        raise ValueError(f"{path}: row {wrong[0]} of x has a value that is NaN or infinite ({len(wrong)} such rows)")
    return x if isinstance(x, np.memmap) else x.astype(np.float32, copy=False)


def _odd(x: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows are not finite as float32."""
    with np.errstate(over="ignore"):  # what does not fit becomes infinite
        finite = np.isfinite(x.astype(np.float32, copy=False))
    return np.logical_not(finite.reshape(len(x), -1).all(axis=1))


def _indices(path: Path, key: str, values: NDArray[Any], n: int) -> NDArray[np.int64]:
    if values.dtype.kind not in "iu":
        raise ValueError(f"{path}: {key} is {values.dtype}, expected whole numbers that count from 0")
    if values.shape != (n,):
        raise ValueError(f"{path}: {key} has the shape {values.shape}, expected ({n},) as x has {n} rows")
    return values.astype(np.int64, copy=False)


def _names(path: Path, key: str, names: NDArray[Any] | None, used: NDArray[np.int64]) -> tuple[str, ...]:
    if names is None:
        return tuple(str(i) for i in range(max(1, int(used.max()) + 1)))
    listed = tuple(str(name) for name in np.atleast_1d(names).ravel())
    for i, name in enumerate(listed):
        if name in listed[:i]:
            raise ValueError(f"{path}: {key} has the name {name!r} twice")
    return listed


def _split(path: Path, split: NDArray[Any], n: int) -> NDArray[np.str_]:
    if split.shape != (n,):
        raise ValueError(f"{path}: split has the shape {split.shape}, expected ({n},) as x has {n} rows")
    wrong = np.flatnonzero(~np.isin(split, SPLITS))
    if len(wrong):
        raise ValueError(
            f"{path}: split of row {wrong[0]} is {str(split[wrong[0]])!r}, expected one of {', '.join(SPLITS)}"
        )
    return split.astype("<U5", copy=False)
