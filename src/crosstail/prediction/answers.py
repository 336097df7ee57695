"""The scores and the answers of `predict`, kept a block of inputs at a time, so that a stopped command resumes."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import msgspec
import numpy as np
import pandas as pd
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from crosstail.storage import naming, read_json, replacing, write_json

MARK = "inputs.sha256"
SCORES, DISTANCES = "log_p.npy", "distance.npy"
CHECKED = 1 << 24  # scores checked at a time
MOST = 2**29  # probabilities in a block: 2 GiB
FLAGS = "review", "unlike_training"
LISTED, BEST = 1000, 5  # with more classes than LISTED, only the BEST of an input are written

Parts = Iterator[tuple[bool, pd.DataFrame, NDArray[np.float32]]]
"""Some inputs at a time: whether they are the first ones, the answers, and the probabilities of every class."""


def blocks_of(inputs: int, classes: int, batch: int) -> list[slice]:
    """Inputs whose probabilities fit into memory at once, in whole batches, so that answers do not depend on it.

    >>> blocks_of(5, 2**27, batch=2)
    [slice(0, 4, None), slice(4, 5, None)]
    """
    size = max(1, MOST // classes // batch) * batch
    return [slice(start, min(start + size, inputs)) for start in range(0, inputs, size)]


class KeptScores:
    """Log probabilities (N, C), distances (N,), and which rows are done; in memory, or in a folder that an earlier
    command has left."""

    def __init__(self, shape: tuple[int, int], folder: Path | None = None) -> None:
        self.done = np.zeros(shape[0], bool)
        self.log_p: NDArray[np.float32]
        if folder is None:
            self.log_p, self.distance = np.empty(shape, np.float32), np.empty(shape[0], np.float32)
            return
        begun = (folder / SCORES).exists() and (folder / SCORES).stat().st_size > 4 * shape[0] * shape[1]
        if not begun:
            _make(folder / DISTANCES, shape[:1])
            _make(folder / SCORES, shape)
        self.log_p, self.distance = (open_memmap(folder / name, "r+") for name in (SCORES, DISTANCES))
        step = max(1, CHECKED // shape[1])
        for start in range(0, shape[0], step) if begun else ():
            self.done[start : start + step] = _complete(self.log_p[start : start + step])

    def add(self, rows: NDArray[np.int64], log_p: NDArray[np.float32], distance: NDArray[np.float32]) -> None:
        self.distance[rows] = distance
        self.log_p[rows] = log_p
        self.done[rows] = True


def _make(file: Path, shape: tuple[int, ...]) -> None:
    """Create a file of zeros and allocate its space: on a full disk, writing to a memory map would kill the process."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with naming(file):
        open_memmap(file, "w+", np.float32, shape)
        if hasattr(os, "posix_fallocate"):
            with file.open("r+b") as stream:
                os.posix_fallocate(stream.fileno(), 0, file.stat().st_size)


def _complete(log_p: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which rows have been written whole: their probabilities sum to 1; zeros would sum to C."""
    return (np.abs(np.exp(log_p).sum(axis=1) - 1) < 1e-3) & (log_p.shape[1] > 1)


def mark_of(result: Path, sources: Sequence[Path], domain: NDArray[np.int64]) -> str:
    """What identifies scores: the run, the files with their sizes and times, and the domains."""
    digest = hashlib.sha256(result.read_bytes())
    for source in sources:
        about = source.stat()
        digest.update(f"{source} {about.st_size} {about.st_mtime_ns}\n".encode(errors="surrogateescape"))
    digest.update(domain.tobytes())
    return digest.hexdigest()


class Block(msgspec.Struct, frozen=True):
    """A block whose answers are written: the options, and how many there are."""

    how: str
    answers: int
    skipped: list[str]


class AnswerFile:
    """Answers to be written to a stream or, if `out` is a file, to be kept in a folder beside it until all are there.

    `mark` says which inputs and model the folder is for; what another command has left there is removed. Answers that
    were written with other options, `how`, do not count.
    """

    def __init__(self, out: Path | TextIO | None, mark: str = "", how: str = "") -> None:
        self.out, self.how, self.blocks = out, how, dict[int, Block]()
        self.folder = out.with_name(f".{out.name}.part") if isinstance(out, Path) else None
        if self.folder is None:
            return
        if not (self.folder / MARK).exists() or (self.folder / MARK).read_text(encoding="utf-8") != mark:
            shutil.rmtree(self.folder, ignore_errors=True)
            try:
                with naming(self.folder):
                    self.folder.mkdir(parents=True)
                    (self.folder / MARK).write_text(mark, encoding="utf-8")
            except OSError:
                shutil.rmtree(self.folder, ignore_errors=True)
                raise
        found = {int(file.stem): read_json(file, Block) for file in self.folder.glob("[!.]*.json")}
        self.blocks = {start: block for start, block in found.items() if block.how == how}

    def scores(self, block: slice, classes: int) -> KeptScores:
        """A place for the scores of a block."""
        shape = block.stop - block.start, classes
        return KeptScores(shape, None if self.folder is None else self.folder / str(block.start))

    def add(self, block: slice, number: int, skipped: list[str], texts: Iterable[str]) -> None:
        """Take the answers of a block; its scores are no longer needed."""
        done = Block(self.how, number, skipped)
        if not isinstance(self.out, Path):
            if self.out is not None:
                self.out.writelines(texts)
        else:
            assert self.folder is not None
            file = self.folder / f"{block.start}.txt"
            with naming(file), file.open("w", encoding="utf-8", newline="") as stream:
                stream.writelines(texts)
            write_json(file.with_suffix(".json"), done)
            shutil.rmtree(self.folder / str(block.start))
        self.blocks[block.start] = done

    @property
    def written(self) -> int:
        return sum(block.answers for block in self.blocks.values())

    @property
    def skipped(self) -> list[str]:
        """The inputs without an answer, and why."""
        return [line for start in sorted(self.blocks) for line in self.blocks[start].skipped]

    def finish(self, end: str) -> None:
        """Put the answers together, followed by `end`."""
        if not isinstance(self.out, Path):
            if self.out is not None:
                self.out.write(end)
            return
        assert self.folder is not None
        with replacing(self.out) as partial, naming(self.out), partial.open("wb") as whole:
            for start in sorted(self.blocks):  # copied, not moved: a kill must leave every block complete
                with (self.folder / f"{start}.txt").open("rb") as part:
                    shutil.copyfileobj(part, whole, 1 << 20)
            whole.write(end.encode())
        self.remove()

    def remove(self) -> None:
        """Remove what was kept, the mark first: what a kill leaves of it then counts as nothing."""
        if self.folder is not None:
            (self.folder / MARK).unlink()
            shutil.rmtree(self.folder)


class Format(NamedTuple):
    """How answers are written."""

    texts: Callable[[Parts, Sequence[str], int | None], Iterator[str]]
    end: str = ""


def shown_classes(classes: int, top: int | None) -> int | None:
    """How many of the most probable classes are written for each input; None for all of them."""
    if top is not None and top < 1:
        raise ValueError(f"--top is {top}, expected 1 or more")
    top = BEST if top is None and classes > LISTED else top
    return None if top is None or top >= classes else top


def _best(probabilities: NDArray[np.float32], top: int) -> NDArray[np.int64]:
    """The `top` most probable classes of each input (n, top), the first of ties first."""
    part = np.sort(np.argpartition(-probabilities, top - 1, axis=1)[:, :top], axis=1)
    order = np.argsort(-np.take_along_axis(probabilities, part, 1), axis=1, kind="stable")
    return np.take_along_axis(part, order, 1)


def _csv(parts: Parts, classes: Sequence[str], top: int | None) -> Iterator[str]:
    names = np.array(classes, object)
    for first, table, probabilities in parts:
        lists = {name: table[name].str.join(" | ") for name in ("set", "alarm") if name in table}
        flags = {name: table[name].map({True: "yes", False: "no"}) for name in FLAGS if name in table}
        table = table.assign(**lists, **flags)
        if top is None:
            shares = pd.DataFrame(probabilities, columns=[f"p({name})" for name in classes])
        else:
            best = _best(probabilities, top)
            values = np.take_along_axis(probabilities, best, 1)
            columns: dict[str, Any] = {}
            for i in range(top):
                columns |= {f"class {i + 1}": names[best[:, i]], f"p {i + 1}": values[:, i]}
            shares = pd.DataFrame(columns)
        whole = pd.concat([table, shares], axis=1)
        yield whole.to_csv(index=False, header=first, float_format="%.6f", lineterminator="\n")


def _json(parts: Parts, classes: Sequence[str], top: int | None) -> Iterator[str]:
    for first, table, probabilities in parts:
        records = table.to_dict("records")
        chosen = None if top is None else _best(probabilities, top)
        for i, (record, said) in enumerate(zip(records, probabilities.tolist(), strict=True)):
            own = range(len(classes)) if chosen is None else chosen[i].tolist()
            record["probabilities"] = {classes[c]: said[c] for c in own}
        yield ("[" if first else ",") + json.dumps(records, indent=1, ensure_ascii=False)[1:-2]


CSV, JSON = Format(_csv), Format(_json, "\n]\n")
