"""Files of arrays: data as .npz and .npy, and the probabilities that a run keeps."""

import io
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from tests.fuzz._case import Case
from tests.fuzz._good import SHORT

from crosstail.data.sources import _npz_members as npz_members

ON_NPZ = (
    *3 * ("audit new.npz --json", "predict run-b new.npz --json", "evaluate run-b new.npz --json"),
    *2 * ("graph new.npz --json --out g.csv", "audit new.npz", "predict run-b new.npz --coverage 0.8 --site lab"),
    f"fit new.npz --algorithm erm {SHORT} --out run-n",
    "embed new.npz --out e.npz",
    "predict run-p new.npz",
)
ON_NPY = ("predict run-b new.npy --json", "predict run-p new.npy", "audit rows.csv --json")
ON_PROBABILITIES = (
    *("compare run-b run-c --json", "audit vectors.npz --run run-b", "predict run-b vectors.npz --coverage 0.8 --json"),
    *("predict run-b vectors.npz --prior estimate", "report run-b --page-only", "graph run-b --json --out g.csv"),
)
Array = NDArray[Any]


def case(random: Random, good: Path) -> Case:
    """A file of arrays with one flaw."""
    kind = random.choices((".npz", ".npy", "probabilities.npz"), (6, 2, 3))[0]
    if kind == ".npy":
        return _npy(random, good)
    source, file = ("vectors.npz", "new.npz") if kind == ".npz" else (f"run-b/{kind}", f"run-b/{kind}")
    command = random.choice(ON_NPZ if kind == ".npz" else ON_PROBABILITIES)
    with np.load(good / source) as stored:
        arrays = dict(stored)
    if kind == ".npz":  # new samples, or `evaluate` would leave all of them out
        arrays["x"] = arrays["x"] + np.float32(random.random())
    key = random.choice([*arrays, "x", "y", "domain"] if kind == ".npz" else list(arrays))
    if random.random() < 0.6:
        how, value = _changed(arrays[key], random)
        content = _packed(
            {**arrays, key: value} if value is not None else {k: v for k, v in arrays.items() if k != key}
        )
        how = f"{key} {how}"
    elif random.random() < 0.5:
        how, content = _packed_oddly(arrays, key, random)
    else:
        how, content = damaged(_packed(arrays), random)
    # A large array is memory-mapped, and here every array is large.
    mapped = kind == ".npz" and random.random() < 0.3
    during = partial(patch.object, npz_members, "LARGE", 0) if mapped else nullcontext
    return _case(f"{file}: {how}{', mapped' * mapped}", command, file, content, during)


def _npy(random: Random, good: Path) -> Case:
    with np.load(good / "vectors.npz") as stored:
        x = stored["x"]
    how, value = _changed(x, random)
    content = _member(x if value is None else value)
    if random.random() < 0.4:
        how, content = damaged(content, random)
    command = random.choice(ON_NPY)
    file = "rows.npy" if "rows" in command else "new.npy"
    rows = "\n".join(f"{i},{'clinic' if i % 2 else 'lab'},{'cat' if i % 3 else 'dog'}" for i in range(12))

    def spoil(folder: Path) -> None:
        (folder / "rows.csv").write_text(f"x,domain,label\n{rows}\n")
        (folder / file).write_bytes(content)

    return Case(f"{file}: {how}", command, (file, "rows.csv"), spoil)


def _case(
    what: str, command: str, file: str, content: bytes, during: Callable[[], AbstractContextManager[object]]
) -> Case:
    def spoil(folder: Path) -> None:
        (folder / file).write_bytes(content)

    return Case(what, command, (file,), spoil, during=during)


def _packed(arrays: dict[str, Any]) -> bytes:
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def _member(value: Any) -> bytes:
    content = io.BytesIO()
    np.save(content, value)
    return content.getvalue()


def _changed(value: Array, random: Random) -> tuple[str, Any]:
    """Another array in the place of one; None leaves it out."""
    n = len(value)
    numeric = value.dtype.kind in "iuf"
    ways: dict[str, Callable[[], Any]] = {
        "missing": lambda: None,
        "without rows": lambda: value[:0],
        "without columns": lambda: np.zeros((n, 0), value.dtype),
        "(0, 0)": lambda: np.zeros((0, 0), value.dtype),
        "a bytes scalar": lambda: np.bytes_(b"x"),
        "0-d": lambda: np.array(value.ravel()[0]),
        "objects": lambda: np.array([None] * n, object),
        "text": lambda: value.astype(str),
        "bytes": lambda: value.astype(str).astype("S"),
        "complex": lambda: np.ones(value.shape, complex),
        "Boolean": lambda: np.zeros(value.shape, bool),
        "dates": lambda: np.zeros(value.shape, "datetime64[s]"),
        "structured": lambda: np.zeros(value.shape, [("a", int), ("b", float)]),
        "long double": lambda: np.zeros(value.shape, np.longdouble),
        "half": lambda: np.zeros(value.shape, np.float16),
        "bytes of 8 bits": lambda: np.zeros(value.shape, np.uint8),
        "one row": lambda: value[:1],
        "shorter": lambda: value[:-1],
        "longer": lambda: np.concatenate([value, value]),
        "one axis more": lambda: value[:, None],
        "transposed": lambda: value.T,
        "five axes": lambda: np.zeros((n, 2, 2, 2, 2), np.float32),
        "images": lambda: np.zeros((n, 4, 4, 3), np.uint8),
        "images without pixels": lambda: np.zeros((n, 0, 4, 3), np.uint8),
        "Fortran order": lambda: np.asfortranarray(value),
        "big-endian": lambda: value.astype(value.dtype.newbyteorder(">")),
        "all the same": lambda: np.repeat(value[:1], n, axis=0),
        "names that are empty": lambda: np.full(n, ""),
        "names with line breaks": lambda: np.array([f"a\nb{i % 3}" for i in range(n)]),
        "long names": lambda: np.array([f"{i % 3}" * 5000 for i in range(n)]),
        "row numbers": lambda: np.arange(n),
    }
    if numeric:
        ways |= {
            "negative": lambda: -1 - value,
            "huge": lambda: value.astype(np.float64) * 1e300 if value.dtype.kind == "f" else value + 2**40,
            "unsigned and huge": lambda: np.full(value.shape, 2**64 - 1, np.uint64),
            "NaN": lambda: np.full(value.shape, np.nan),
            "a NaN": lambda: _with(value, np.nan),
            "infinite": lambda: _with(value, np.inf),
            "out of range": lambda: _with(value, 10**6),
        }
    how = random.choice(sorted(ways))
    try:
        return how, ways[how]()
    except (IndexError, ValueError, OverflowError):  # not for an array of this shape
        return "objects", ways["objects"]()


def _with(value: Array, one: float) -> Array:
    changed = value.astype(np.float64 if value.dtype.kind == "f" or not np.isfinite(one) else value.dtype)
    changed.reshape(-1)[len(changed) // 2] = one
    return changed


def _packed_oddly(arrays: dict[str, Any], key: str, random: Random) -> tuple[str, bytes]:
    """The same arrays in an archive that is not as NumPy writes it."""
    members = {f"{name}.npy": _member(value) for name, value in arrays.items()}
    own = members[f"{key}.npy"]
    huge = own.replace(str(arrays[key].shape[0]).encode(), b"9" * 15, 1)
    ways: dict[str, dict[str, bytes]] = {
        "compressed": members,
        "a header that claims petabytes": {**members, f"{key}.npy": huge},
        "a header that is no literal": {**members, f"{key}.npy": own[:10] + b"__import__('os')".ljust(len(own) - 10)},
        "a format of the future": {**members, f"{key}.npy": own[:6] + b"\x09\x00" + own[8:]},
        "a member that is empty": {**members, f"{key}.npy": b""},
        "a member that is cut short": {**members, f"{key}.npy": own[: random.randrange(len(own))]},
        "a member with rubbish after it": {**members, f"{key}.npy": own + b"rubbish" * 9},
        "a member that is text": {**members, f"{key}.npy": b"hello"},
        "a member without suffix": {k: v for k, v in members.items() if k != f"{key}.npy"} | {key: own},
        "a member in a folder": {f"a/{k}": v for k, v in members.items()},
        "a bomb": {**members, f"{key}.npy": _member(np.zeros((1, 1)))[:128] + bytes(1 << 26)},
        "no members": {},
    }
    how = random.choice(sorted(ways))
    content = io.BytesIO()
    packed = zipfile.ZIP_DEFLATED if how in ("compressed", "a bomb") or random.random() < 0.3 else zipfile.ZIP_STORED
    with zipfile.ZipFile(content, "w", packed) as archive:
        for name, member in ways[how].items():
            archive.writestr(name, member)
    return f"{key}: {how}", content.getvalue()


def damaged(content: bytes, random: Random) -> tuple[str, bytes]:
    """A binary file with damage that disks and downloads do."""
    start = random.randrange(len(content))
    length = random.choice((1, 1, 4, 64))
    ways = {
        "cut short": content[:start],
        "empty": b"",
        "other bytes": content[:start] + random.randbytes(length) + content[start + length :],
        "zeros at the end": content[:start] + bytes(len(content) - start),
        "a web page": b"<html>404</html>",
        "bytes lost": content[:start] + content[start + length :],
        "twice": content * 2,
        "rubbish": random.randbytes(500),
        "a .npy file": _member(np.zeros((4, 6), np.float32)),
    }
    how = random.choice(sorted(ways))
    return f"{how} (from {start})", ways[how]
