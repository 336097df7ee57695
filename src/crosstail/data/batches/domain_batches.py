"""Batches with the same number of samples from every domain, as a pure function of the seed and the step."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from sys import getrefcount
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crosstail.data.dataset import DomainDataset
from crosstail.data.images.augment import Augment, Draws
from crosstail.data.images.decode import Pixels, evaluation_view
from crosstail.data.images.files import ImageFiles, default_workers

Rows = NDArray[np.int64]

_AHEAD = 3  # batches that are being decoded while one is trained on
_PIECE = 8  # images of a batch that one thread decodes: few enough that all threads end at about the same time


@dataclass(frozen=True, eq=False)
class DomainBatch:
    """Inputs with their class and domain."""

    x: Tensor  # (B, 3, H, W) in [0, 1], or (B, F)
    y: Tensor  # (B,) int64
    domain: Tensor  # (B,) int64

    def __len__(self) -> int:
        return len(self.y)

    def by_domain(self, values: Tensor) -> Tensor:
        """One value per sample (B, …) → (K, B / K, …) for the K domains of this batch, in their order.

        >>> batch = DomainBatch(torch.zeros(4, 2), torch.zeros(4), torch.tensor([0, 0, 2, 2]))
        >>> batch.by_domain(torch.arange(4)).tolist()
        [[0, 1], [2, 3]]
        """
        groups = len(torch.unique_consecutive(self.domain))
        return values.reshape(groups, len(self) // groups, *values.shape[1:])

    def parts(self) -> "list[DomainBatch]":
        """One batch for each of its domains, in their order."""
        return [DomainBatch(*part) for part in zip(*map(self.by_domain, (self.x, self.y, self.domain)), strict=True)]

    def to(self, device: torch.device | str) -> "DomainBatch":
        """The same batch on another device."""
        return DomainBatch(self.x.to(device), self.y.to(device), self.domain.to(device))


def to_input(x: NDArray[Any]) -> Tensor:
    """What a backbone takes: uint8 images (B, H, W, 3) → (B, 3, H, W) in [0, 1], embeddings (B, F) → float32.

    Of embeddings of several views (B, V, F) it takes the first, plain one.

    >>> to_input(np.full((2, 4, 5, 3), 255, np.uint8)).shape
    torch.Size([2, 3, 4, 5])
    """
    if x.ndim == 4 and x.dtype == np.uint8:
        # NumPy divides on this thread; torch would use several, and on a busy machine they wait for each
        # other for longer than the work takes. The result is channels-last, which suits convolutions.
        return torch.from_numpy(np.divide(x, np.float32(255))).permute(0, 3, 1, 2)
    if x.ndim == 3 and x.dtype.kind == "f":
        x = x[:, 0]
    if x.ndim == 2:
        return torch.tensor(x, dtype=torch.float32)
    raise ValueError(f"x is {x.dtype} {x.shape}, expected uint8 images (B, H, W, 3) or embeddings (B, F)")


class DomainBatches:
    """Batches of `batch_size` samples from each domain that has any, in the order of the domains.

    Each domain passes through all of its samples in a new random order, again and again, whatever its size.
    With `class_balanced`, it passes through its classes in a new random order, again and again, and each
    class through its samples. Process i of n gets, with `share=(i, n)`, the i-th part of each domain's samples in the
    same batches. There is no state to save: the position is the step, for the samples as well as for
    what `augment` makes of them. Of embeddings of several views, each sample of a batch shows one at random.

    >>> x, y = np.zeros((6, 2), np.float32), np.array([0, 0, 1, 0, 1, 1])
    >>> split = np.array(["train"] * 6)
    >>> dataset = DomainDataset("tiny", x, y, np.array([0, 0, 0, 0, 1, 1]), split, ("a", "b"), ("p", "q"))
    >>> batches = DomainBatches(dataset, batch_size=4)
    >>> sorted(batches.batch_rows(0).tolist())
    [0, 1, 2, 3, 4, 4, 5, 5]
    >>> batches.at(7).domain.tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """

    def __init__(
        self,
        dataset: DomainDataset,
        *,
        split: str = "train",
        batch_size: int,
        class_balanced: bool = False,
        seed: int = 0,
        augment: Augment | None = None,
        workers: int | None = None,
        share: tuple[int, int] = (0, 1),
    ) -> None:
        if augment is not None and not dataset.is_image:
            raise ValueError(f"{dataset.name}: embeddings cannot be augmented, only images can (see --views)")
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}, expected 1 or more samples per domain")
        process, processes = share
        if batch_size % processes:
            raise ValueError(f"a batch of {batch_size} per domain cannot be shared evenly by {processes} processes")
        rows = dataset.rows(split)
        if not len(rows):
            raise ValueError(f"{dataset.name}: the split {split!r} has no samples in any domain")
        self.dataset = dataset
        self.seed = seed
        self.batch_size = batch_size
        self.augment = augment
        self.workers = workers or default_workers()  # threads that decode and augment
        self._y = np.asarray(dataset.y, np.int64)
        self._domain = np.asarray(dataset.domain, np.int64)
        stream = class_balanced_stream if class_balanced else _instance_stream
        present = np.unique(self._domain[rows])
        self._streams = [stream(rows[self._domain[rows] == d], self._y, seed, int(d)) for d in present]
        places = np.arange(len(present) * batch_size).reshape(len(present), processes, -1)
        self._mine = places[:, process].ravel()

    def batch_rows(self, step: int) -> Rows:
        """Row numbers of a step's samples (domains present · batch_size,) in all processes, whatever came before."""
        if step < 0:
            raise ValueError(f"step is {step}, expected 0 or more")
        size = self.batch_size
        return np.concatenate([stream.take(step * size, size) for stream in self._streams])

    def at(self, step: int) -> DomainBatch:
        """The batch of a step."""
        if not self._made_by_threads:
            whole = self.batch_rows(step)
            rows = whole[self._mine]
            shown: Any = rows
            if self.dataset.x.ndim == 3:
                shown = rows, self._views(step, len(whole))[self._mine]
            return self._batch(rows, to_input(np.asarray(self.dataset.x[shown])))
        with ThreadPoolExecutor(self.workers, "crosstail-batch") as pool:
            try:
                return self._begin(step, pool, _Buffers())()
            finally:
                pool.shutdown(cancel_futures=True)

    def stream(self, start: int, stop: int) -> Iterator[DomainBatch]:
        """The batches of the steps from `start` to before `stop`, the next ones being made while one is in use.

        They are those of `at`. What goes wrong in a thread is raised here; closing the stream ends the threads.
        """
        if not self._made_by_threads:
            yield from map(self.at, range(start, stop))
            return
        steps, buffers = iter(range(start, stop)), _Buffers()
        with ThreadPoolExecutor(self.workers, "crosstail-batch") as pool:
            try:
                begun = deque(self._begin(step, pool, buffers) for step in islice(steps, _AHEAD))
                while begun:
                    batch = begun.popleft()()
                    begun.extend(self._begin(step, pool, buffers) for step in islice(steps, 1))
                    yield batch
                    del batch  # so that its memory is free for the next one
            finally:
                pool.shutdown(cancel_futures=True)

    @property
    def _made_by_threads(self) -> bool:
        return self.augment is not None or isinstance(self.dataset.x, ImageFiles)

    def _views(self, step: int, count: int) -> Rows:
        """Which view each sample of a step shows."""
        generator = np.random.default_rng(np.random.SeedSequence([self.seed, step, 0, _VIEWS]))
        return generator.integers(self.dataset.x.shape[1], size=count)

    def _begin(self, step: int, pool: ThreadPoolExecutor, buffers: "_Buffers") -> Callable[[], DomainBatch]:
        """Start to make a batch; what is returned waits for it."""
        whole = self.batch_rows(step)
        rows = whole[self._mine]
        size = self.dataset.x.shape[1:3] if self.augment is None else (self.augment.resolution,) * 2
        out = buffers.take((len(rows), *size, 3))
        draws = self.augment.draw(step, len(whole)).part(self._mine) if self.augment else None
        pieces = [slice(i, i + _PIECE) for i in range(0, len(rows), _PIECE)]
        futures = [pool.submit(self._make, rows[p], draws.part(p) if draws else None, out[p]) for p in pieces]
        return partial(self._finish, rows, out, futures)

    def _finish(self, rows: Rows, out: NDArray[np.float32], futures: list[Future[None]]) -> DomainBatch:
        for future in futures:
            future.result()
        return self._batch(rows, torch.from_numpy(out).permute(0, 3, 1, 2))

    def _make(self, rows: Rows, draws: Draws | None, out: NDArray[np.float32]) -> None:
        """Decode and augment a piece of a batch into `out` (b, S, S, 3), on one thread."""
        views = np.empty(out.shape, np.uint8)
        for i, row in enumerate(rows):
            views[i] = self._view(int(row), draws, i)
        if self.augment is None or draws is None:
            np.divide(views, np.float32(255), out=out)
        else:
            self.augment.recolour(views, draws, out)

    def _view(self, row: int, draws: Draws | None, i: int) -> Pixels:
        x = self.dataset.x
        base = x.base(row) if isinstance(x, ImageFiles) else x[row]
        if self.augment is None or draws is None:
            return evaluation_view(base, x.shape[1])
        return self.augment.crop(base, draws, i)

    def _batch(self, rows: Rows, x: Tensor) -> DomainBatch:
        return DomainBatch(x, torch.from_numpy(self._y[rows]), torch.from_numpy(self._domain[rows]))


class _Buffers:
    """Memory for batches, used again once nobody holds the last batch in it.

    A batch of 96 photos takes 58 MB; to get them from the system and give them back costs as much time as a crop.
    """

    def __init__(self) -> None:
        self._arrays: list[NDArray[np.float32]] = []

    def take(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        for array in self._arrays:
            # The list, this variable and the argument; a tensor of this memory, or a view of it, would be one more.
            if array.shape == shape and getrefcount(array) == 3:
                return array
        self._arrays = [*self._arrays[-_AHEAD - 1 :], np.empty(shape, np.float32)]
        return self._arrays[-1]


class _Stream:
    """An endless sequence of blocks of one length, each a function of its number; the last one is kept."""

    def __init__(self, length: int, make: Callable[[int], Rows]) -> None:
        self.length = length
        self._make = make
        self._kept: tuple[int, Rows] | None = None

    def block(self, number: int) -> Rows:
        if self._kept is None or self._kept[0] != number:
            self._kept = number, self._make(number)
        return self._kept[1]

    def take(self, start: int, count: int) -> Rows:
        first, offset = divmod(start, self.length)
        if offset + count <= self.length:
            return self.block(first)[offset : offset + count]
        last = (start + count - 1) // self.length
        return np.concatenate([self.block(b) for b in range(first, last + 1)])[offset : offset + count]


# SeedSequence fills up with zeros, so [seed, d, 3] and [seed, d, 3, 0] are one stream: the fourth number, 0
# for epochs, 1 for rounds, 2 for pairs, 3 for augmentation and 4 for views, keeps the uses of a seed apart.
_ROUNDS, _PAIR, _VIEWS = 1, 2, 4


def _instance_stream(rows: Rows, y: Rows, seed: int, d: int) -> _Stream:
    """Epochs: block e is a permutation of the domain's rows."""
    return _Stream(len(rows), partial(_epoch, rows, seed, d))


def _epoch(rows: Rows, seed: int, d: int, e: int) -> Rows:
    return np.random.default_rng(np.random.SeedSequence([seed, d, e])).permutation(rows)


def class_balanced_stream(rows: Rows, y: Rows, seed: int, d: int) -> _Stream:
    """Rounds: each is a permutation of the domain's classes, with the next sample of each of them."""
    classes = np.unique(y[rows])
    pairs = [_pair_stream(rows[y[rows] == c], seed, d, int(c)) for c in classes]
    rounds = -(-1024 // len(pairs))  # per block: enough to make the cost of a block small
    return _Stream(rounds * len(pairs), partial(_rounds, pairs, rounds, seed, d))


def _rounds(pairs: list[_Stream], rounds: int, seed: int, d: int, block: int) -> Rows:
    samples = np.stack([pair.take(block * rounds, rounds) for pair in pairs], axis=1)  # (rounds, classes)
    generator = np.random.default_rng(np.random.SeedSequence([seed, d, block, _ROUNDS]))
    return generator.permuted(samples, axis=1).ravel()


def _pair_stream(rows: Rows, seed: int, d: int, c: int) -> _Stream:
    """Permutations of a pair's rows, several to a block when there are few rows."""
    repeats = -(-256 // len(rows))
    return _Stream(repeats * len(rows), partial(_permutations, rows, repeats, seed, d, c))


def _permutations(rows: Rows, repeats: int, seed: int, d: int, c: int, block: int) -> Rows:
    generator = np.random.default_rng(np.random.SeedSequence([seed, d, block, _PAIR, c]))
    return generator.permuted(np.tile(rows, (repeats, 1)), axis=1).ravel()
