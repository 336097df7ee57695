"""The source "arrays": an .npz file with x, y and domain, and optionally split, domains and classes."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from crosstail.data.dataset import SPLITS, DomainDataset
from crosstail.data.sources.as_dataset import as_dataset
from crosstail.data.sources.npz_members import read_member

REQUIRED = ("x", "y", "domain")
OPTIONAL = ("split", "domains", "classes")
_ROWS = 4096  # checked at a time, so that a memory map is never read as a whole


def load_arrays(path: Path, *, seed: int = 0) -> DomainDataset:
    """Load an .npz file; without a `split` in it, the samples are split as in the paper (`paper_split`)."""
    arrays = _read(path)
    x = check_inputs(path, arrays["x"])
    y, domain = (_indices(path, key, arrays[key], len(x)) for key in ("y", "domain"))
    classes = _names(path, "classes", arrays.get("classes"), y)
    domains = _names(path, "domains", arrays.get("domains"), domain)
    split = _split(path, arrays["split"], len(x)) if "split" in arrays else None
    # Under the path at first, so that an error about its indices names the file.
    return replace(as_dataset(str(path), x, y, domain, classes, domains, split=split, seed=seed), name=path.stem)


def save_arrays(dataset: DomainDataset, path: Path) -> None:
    """Write a data set atomically as an .npz file for `load_arrays`."""
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
        # Opened here: np.load does not close the file of a broken archive.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            missing = [key for key in REQUIRED if key not in file.files]
            if not missing:
                return {key: read_member(path, key, file) for key in (*REQUIRED, *OPTIONAL) if key in file.files}
            found = ", ".join(file.files) or "nothing"
    except (ValueError, OSError, EOFError, BadZipFile, AttributeError, TypeError) as error:
        # The last two: a .npy file named .npz loads as an array, which is not a context manager.
        raise ValueError(f"{path}: cannot be read as an .npz file of plain arrays ({error})") from error
    raise ValueError(
        f"{path}: has no array {missing[0]!r} but {found}; expected {', '.join(REQUIRED)} and optionally "
        f"{', '.join(OPTIONAL)}"
    )


def check_inputs(path: Path, x: NDArray[Any]) -> NDArray[Any]:
    """Images in uint8 or finite embeddings in float32; anything else is refused, naming the row."""
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
    """Mask of the rows that are not finite as float32."""
    with np.errstate(over="ignore"):  # values out of range become infinite
        finite = np.isfinite(x.astype(np.float32, copy=False))
    return np.logical_not(finite.reshape(len(x), -1).all(axis=1))


def _indices(path: Path, key: str, values: NDArray[Any], n: int) -> NDArray[np.int64]:
    if values.dtype.kind not in "iu":
        raise ValueError(f"{path}: {key} is {values.dtype}, expected integers from 0")
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
