"""The source "arrays": an .npz file with x, y and domain, and optionally split, groups, domains and classes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crosstail.data.dataset import DomainDataset
from crosstail.data.inputs import kind_of
from crosstail.data.sources._as_dataset import SourceOptions, as_dataset
from crosstail.data.sources._manifest_table import as_text
from crosstail.data.sources._natural_order import numbered_names
from crosstail.data.sources._npz_members import UNREADABLE, read_member
from crosstail.storage import naming, replacing


def load_arrays(path: Path, **options: Unpack[SourceOptions]) -> DomainDataset:
    """Load an .npz file; without a `split` in it, the samples get the split of user data (`default_split`)."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    arrays = read_arrays(path, ("x", "y", "domain"), ("split", "groups", "domains", "classes"))
    x = check_inputs(path, arrays["x"])
    for key in ("y", "domain", "split", "groups"):
        if key in arrays and (found := arrays[key].shape) != x.shape[:1]:
            raise ValueError(f"{path}: {key} has the shape {found}, expected ({len(x)},) as x has {len(x)} rows")
        kinds, expected = ("U", "strings") if key == "split" else ("iuU", "integers or strings")
        if key in arrays and arrays[key].dtype.kind not in kinds:
            raise ValueError(f"{path}: {key} is {arrays[key].dtype}, expected {expected}")
    y, classes, *notes = _named(path, "y", "classes", arrays)
    domain, domains, *more = _named(path, "domain", "domains", arrays)
    group = as_text(path, "groups", pa.array(arrays["groups"])) if "groups" in arrays else None
    named: dict[str, Any] = {"split": arrays.get("split"), "group": group, "notes": (*notes, *more)}
    # Under the path at first, so that an error about its values names the file.
    dataset = as_dataset(str(path), x, y, domain, classes, domains, **named, **options)
    return replace(dataset, name=path.stem, split=dataset.split.astype("<U5", copy=False))


def save_arrays(dataset: DomainDataset, path: Path) -> None:
    """Write a data set atomically as an .npz file for `load_arrays`."""
    assert isinstance(dataset.x, np.ndarray)
    more: dict[str, Any] = {"domains": np.array(dataset.domains), "classes": np.array(dataset.classes)}
    if dataset.group is not None:
        more["groups"] = dataset.group
    with replacing(path) as partial, naming(path):
        np.savez(partial, x=dataset.x, y=dataset.y, domain=dataset.domain, split=dataset.split, **more)


def read_arrays(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, NDArray[Any]]:
    """The required and optional arrays of an .npz file."""
    try:
        # Opened here: np.load does not close the file of a broken archive.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            missing = [key for key in required if key not in file.files]
            if not missing:
                found = {key: read_member(path, key, file) for key in (*required, *optional) if key in file.files}
                if odd := [key for key, value in found.items() if not isinstance(value, np.ndarray)]:
                    raise ValueError(f"{odd[0]} is not an array")
                return found
            there = ", ".join(file.files) or "nothing"
    except (*UNREADABLE, AttributeError, TypeError) as error:
        # The last two: a .npy file named .npz loads as an array, which is not a context manager.
        remedy = "; save text as array.astype(str)" if "Object arrays" in str(error) else ""
        raise ValueError(f"{path}: cannot be read as an .npz file of plain arrays ({error}{remedy})") from error
    expected = ", ".join(required) + (f" and optionally {', '.join(optional)}" if optional else "")
    raise ValueError(f"{path}: has no array {missing[0]!r} but {there}; expected {expected}")


def read_x(path: Path) -> NDArray[Any]:
    """The inputs in a .npy file, memory-mapped, or the array `x` of an .npz file."""
    if path.suffix.lower() == ".npz":
        return read_arrays(path, ("x",))["x"]
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except UNREADABLE as error:
        raise ValueError(f"{path}: cannot be read as an array ({error})") from error


def check_inputs(path: Path, x: NDArray[Any]) -> NDArray[Any]:
    """The inputs in a file as they are used; what is of no kind, or cannot be trained on, is refused."""
    if x.ndim and not x.size:
        raise ValueError(f"{path}: x has no {'values' if len(x) else 'rows'}, its shape is {x.shape}")
    try:
        kind = kind_of(x)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return kind.check(path, x)


def _named(path: Path, key: str, names_key: str, arrays: dict[str, NDArray[Any]]) -> tuple[Any, ...]:
    """Indices into names, the names, and a note on where they come from if they are not given."""
    given = arrays[key]
    names = tuple(map(str, arrays[names_key].ravel())) if names_key in arrays else ()
    if len(set(names)) < len(names):
        raise ValueError(f"{path}: {names_key} has the name {Counter(names).most_common(1)[0][0]!r} twice")
    if given.dtype.kind == "U":
        return _from_text(path, key, names_key, given, names)
    values = given.astype(np.int64, copy=False)
    if names_key in arrays:
        return values, names
    used, index = np.unique(values, return_inverse=True)
    names = tuple(map(str, used.tolist()))
    if used[0] < 0:
        raise ValueError(f"{path}: {key} of row {values.argmin()} is {used[0]}, expected 0 or more")
    if len(used) > used[-1]:
        return values, names
    missing = int(np.argmax(used != np.arange(len(used))))  # the first
    return index, names, f"no sample has the {key} {missing}: the {names_key} are the {len(used)} numbers that occur"


def _from_text(path: Path, key: str, names_key: str, text: NDArray[Any], names: tuple[str, ...]) -> tuple[Any, ...]:
    found = np.unique(text).tolist()
    if "" in found:
        raise ValueError(f"{path}: {key} of row {(text == '').argmax()} is empty")
    if not names:
        note = f"{key} is text: the {names_key} are the {len(found)} names that occur, in natural order"
        return *numbered_names(text.tolist()), note
    number = {name: i for i, name in enumerate(names)}
    if unknown := [name for name in found if name not in number]:
        row = (text == unknown[0]).argmax()
        raise ValueError(f"{path}: {key} of row {row} is {unknown[0]!r}, which is not among the {names_key}")
    return np.array([number[name] for name in text.tolist()]), names
