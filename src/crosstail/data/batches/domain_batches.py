"""Batches with the same number of samples from every domain, as a pure function of the seed and the step."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crosstail.data.batches.batch import DomainBatch, to_input
from crosstail.data.batches.buffers import BufferPool
from crosstail.data.batches.row_streams import VIEWS, Rows, class_balanced_stream, drawn_stream, instance_stream
from crosstail.data.dataset import DomainDataset
from crosstail.data.images.augment import Augment, Draws
from crosstail.data.images.files import default_workers

_AHEAD = 3  # batches that are decoded while one is trained on
_PIECE = 8  # images of a batch that one thread decodes: few enough that all threads finish at about the same time


class DomainBatches:
    """Batches of `batch_size` samples from each non-empty domain, in the order of the domains, with no state to save.

    Each domain is reshuffled after every pass over its samples, independently of the others. With `class_balanced`,
    a domain cycles through its classes instead, in a new random order each time, and each class through its samples.
    With `replacement`, every sample, or every class and one of its samples, is drawn independently.
    `share=(i, n)` gives process i of n its part of every domain's samples in the same batches. Of embeddings with
    several views, each sample of a batch shows one at random.
    """

    def __init__(
        self,
        dataset: DomainDataset,
        *,
        split: str = "train",
        batch_size: int,
        class_balanced: bool = False,
        replacement: bool = False,
        seed: int = 0,
        augment: Augment | None = None,
        workers: int | None = None,
        share: tuple[int, int] = (0, 1),
    ) -> None:
        if augment is not None and not dataset.kind.picture:
            raise ValueError(f"{dataset.name}: {dataset.kind.noun}s cannot be augmented, only images can (see --views)")
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}, expected 1 or more samples per domain")
        process, processes = share
        if batch_size % processes:
            raise ValueError(f"a batch of {batch_size} per domain cannot be shared evenly by {processes} processes")
        rows, pair = dataset.cells(split)
        if not len(rows):
            raise ValueError(f"{dataset.name}: the split {split!r} has no samples in any domain")
        self.dataset = dataset
        self.seed = seed
        self.batch_size = batch_size
        self.augment = augment
        self.workers = workers or default_workers()  # threads that decode and augment
        self._uses_threads = augment is not None or dataset.kind.decodes
        self._y = np.asarray(dataset.y, np.int64)
        self._domain = np.asarray(dataset.domain, np.int64)
        stream = partial(drawn_stream, class_balanced) if replacement else instance_stream
        if class_balanced and not replacement:
            stream = class_balanced_stream
        domain, label = np.divmod(pair, dataset.num_classes)
        present = np.unique(domain)
        self._streams = [stream(rows[domain == d], label[domain == d], seed, int(d)) for d in present]
        places = np.arange(len(present) * batch_size).reshape(len(present), processes, -1)
        self._mine = places[:, process].ravel()

    def batch_rows(self, step: int) -> Rows:
        """Row numbers of a step's samples in all processes, (domains present · batch_size,)."""
        if step < 0:
            raise ValueError(f"step is {step}, expected 0 or more")
        return np.concatenate([rows.take(step * self.batch_size, self.batch_size) for rows in self._streams])

    def at(self, step: int) -> DomainBatch:
        """The batch of a step."""
        if not self._uses_threads:
            whole = self.batch_rows(step)
            rows = whole[self._mine]
            shown: Any = rows
            if views := self.dataset.kind.views(self.dataset.x):  # the one that each sample shows
                generator = np.random.default_rng([self.seed, step, 0, VIEWS])
                shown = rows, generator.integers(views, size=len(whole))[self._mine]
            return self._batch(rows, to_input(np.asarray(self.dataset.x[shown])))
        return next(self.stream(step, step + 1))

    def stream(self, start: int, stop: int) -> Iterator[DomainBatch]:
        """The batches `at(start)` to `at(stop - 1)`, prepared ahead on other threads, whose errors are raised here."""
        if not self._uses_threads:
            yield from map(self.at, range(start, stop))
            return
        steps, buffers = iter(range(start, stop)), BufferPool(_AHEAD + 1)
        with ThreadPoolExecutor(self.workers, "crosstail-batch") as pool:
            try:
                begun = deque(self._begin(step, pool, buffers) for step in islice(steps, _AHEAD))
                while begun:
                    batch = begun.popleft()()
                    begun.extend(self._begin(step, pool, buffers) for step in islice(steps, 1))
                    yield batch
                    del batch  # so that its memory can be reused for the next one
            finally:
                pool.shutdown(cancel_futures=True)

    def _begin(self, step: int, pool: ThreadPoolExecutor, buffers: BufferPool) -> Callable[[], DomainBatch]:
        """Start preparing a batch; the function returned waits for it."""
        whole = self.batch_rows(step)
        rows = whole[self._mine]
        size = self.dataset.x.shape[1:3] if self.augment is None else (self.augment.resolution,) * 2
        out = buffers.take((len(rows), *size, 3))
        draws = self.augment.draw(step, len(whole)).part(self._mine) if self.augment else None
        pieces = [slice(i, i + _PIECE) for i in range(0, len(rows), _PIECE)]
        futures = [pool.submit(self._make, rows[p], draws.part(p) if draws else None, out[p]) for p in pieces]

        def finish() -> DomainBatch:
            for future in futures:
                future.result()
            return self._batch(rows, torch.from_numpy(out).permute(0, 3, 1, 2))

        return finish

    def _make(self, rows: Rows, draws: Draws | None, out: NDArray[np.float32]) -> None:
        x, pixels = self.dataset.x, self.dataset.kind.pixels
        if self.augment is None or draws is None or pixels is None:
            np.divide([x[row] for row in rows.tolist()], np.float32(255), out=out)
        else:
            views = np.stack([self.augment.crop(pixels(x, row), draws, i) for i, row in enumerate(rows.tolist())])
            self.augment.recolour(views, draws, out)

    def _batch(self, rows: Rows, x: Tensor) -> DomainBatch:
        return DomainBatch(x, torch.from_numpy(self._y[rows]), torch.from_numpy(self._domain[rows]))
