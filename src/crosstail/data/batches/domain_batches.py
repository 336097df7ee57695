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

from crosstail.ahead import Courier, ahead
from crosstail.data.batches.batch import DomainBatch
from crosstail.data.batches.buffers import BufferPool
from crosstail.data.batches.row_streams import VIEWS, Rows, class_balanced_stream, drawn_stream, instance_stream
from crosstail.data.dataset import DomainDataset
from crosstail.data.images.augment import Augment, Draws
from crosstail.data.images.files import default_workers
from crosstail.data.images.on_device import recoloured

_AHEAD = 3  # batches that are decoded while one is trained on
_PIECE = 8  # images of a batch that one thread decodes: few enough that all threads finish at about the same time


class DomainBatches:
    """Batches of `batch_size` samples from each non-empty domain, in the order of the domains, with no state to save.

    Each domain is reshuffled after every pass over its samples, independently of the others. With `class_balanced`,
    a domain cycles through its classes instead, in a new random order each time, and each class through its samples.
    With `replacement`, every sample, or every class and one of its samples, is drawn independently.
    `share=(i, n)` gives process i of n its part of every domain's samples in the same batches. Of embeddings with
    several views, each sample of a batch shows one at random. Images go to a `device` other
    than the CPU as 8-bit crops, a batch ahead, and are flipped, recoloured and scaled there, alike but for rounding.
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
        device: torch.device | None = None,
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
        self.device = device or torch.device("cpu")
        self._finished = self.device.type == "cpu"  # whether batches are finished on the host
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
        return next(self.stream(step, step + 1))

    def stream(self, start: int, stop: int) -> Iterator[DomainBatch]:
        """The batches `at(start)` to `at(stop - 1)`, prepared ahead on other threads, whose errors are raised here."""
        steps = range(start, stop)
        made = self._in_threads(steps) if self._uses_threads else map(self._in_memory, steps)
        if self._finished:
            yield from made
        else:
            courier = Courier(self.device)
            yield from ahead(self._sent(courier, *of_step) for of_step in zip(steps, made, strict=True))

    def _sent(self, courier: Courier, step: int, batch: DomainBatch) -> Callable[[], DomainBatch]:
        """Begin to send a batch to the device; the function returned finishes it there."""
        draws, augment = self._draws(step), self.augment
        drawn = [torch.from_numpy(part) for part in (draws.flip, draws.factors, draws.grey)] if draws else []
        arrive = courier.send([batch.x, batch.y, batch.domain, *drawn])

        def finish() -> DomainBatch:
            x, y, domain, *drawn = arrive()
            if draws and augment:
                x = recoloured(x, *drawn, order=draws.order.tolist(), jitter=augment.jitter)
            elif self.dataset.kind.picture:
                x = self.dataset.kind.scaled(x)
            return DomainBatch(x, y, domain, batch.num_domains)

        return finish

    def _draws(self, step: int) -> Draws | None:
        whole = len(self._streams) * self.batch_size
        return self.augment.draw(step, whole).part(self._mine) if self.augment else None

    def _in_memory(self, step: int) -> DomainBatch:
        whole = self.batch_rows(step)
        rows = whole[self._mine]
        shown: Any = rows
        if views := self.dataset.kind.views(self.dataset.x):  # the one that each sample shows
            generator = np.random.default_rng([self.seed, step, 0, VIEWS])
            shown = rows, generator.integers(views, size=len(whole))[self._mine]
        x = np.asarray(self.dataset.x[shown])
        raw = self.dataset.kind.picture and not self._finished
        return self._batch(rows, torch.from_numpy(x) if raw else self.dataset.kind.tensor(x))

    def _in_threads(self, numbers: range) -> Iterator[DomainBatch]:
        steps, buffers = iter(numbers), BufferPool(_AHEAD + 1)
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
        rows, draws = self.batch_rows(step)[self._mine], self._draws(step)
        size = self.dataset.x.shape[1:3] if self.augment is None else (self.augment.resolution,) * 2
        if self._finished:
            out: NDArray[Any] = buffers.take((len(rows), *size, 3))
            x = torch.from_numpy(out).permute(0, 3, 1, 2)
        else:  # torch reuses pinned memory itself, once it is copied
            x = torch.empty((len(rows), *size, 3), dtype=torch.uint8, pin_memory=self.device.type == "cuda")
            out = x.numpy()
        pieces = [slice(i, i + _PIECE) for i in range(0, len(rows), _PIECE)]
        futures = [pool.submit(self._make, rows[p], draws.part(p) if draws else None, out[p]) for p in pieces]

        def finish() -> DomainBatch:
            for future in futures:
                future.result()
            return self._batch(rows, x)

        return finish

    def _make(self, rows: Rows, draws: Draws | None, out: NDArray[Any]) -> None:
        x, pixels, augment, own = self.dataset.x, self.dataset.kind.pixels, self.augment, rows.tolist()
        if augment is None or draws is None or pixels is None:
            views = np.stack([x[row] for row in own])
        else:
            flip = self._finished
            views = np.stack([augment.crop(pixels(x, row), draws, i, flip=flip) for i, row in enumerate(own)])
        if not self._finished:
            out[:] = views
        elif augment is None or draws is None:
            np.divide(views, np.float32(255), out=out)
        else:
            augment.recolour(views, draws, out)

    def _batch(self, rows: Rows, x: Tensor) -> DomainBatch:
        return DomainBatch(x, torch.from_numpy(self._y[rows]), torch.from_numpy(self._domain[rows]), len(self._streams))
