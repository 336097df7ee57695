"""Frozen features and activations: every image is embedded once and cached by its content."""

import hashlib
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import PIL
import torch
from numpy.typing import NDArray
from torch import Tensor

from crosstail.backbones import Backbone, Divided
from crosstail.backbones._feature_store import Features, FeatureStore
from crosstail.backbones._frozen import FrozenNetwork
from crosstail.cache import cache_folder
from crosstail.data import Augment, DomainDataset, kind_of, to_input
from crosstail.data.activations import Activations, Halves
from crosstail.data.images.decode import VERSION
from crosstail.data.images.files import Samples, default_workers


class _View(NamedTuple):
    key: bytes
    features: Features | None
    pixels: NDArray[Any] | None = None


class Embedder:
    """Features of images by a pretrained backbone, each embedded once and kept in the cache.

    The first view is not augmented. The augmentation of the others depends on the image's content alone. Unless the
    cache is `required`, features that cannot be written to it are not kept. Of a backbone that is `divided`, the same
    pass also keeps the activations at the cut.
    """

    def __init__(
        self,
        x: Samples,
        backbone: Backbone,
        *,
        views: int = 0,
        batch_size: int = 32,
        required: bool = True,
        divided: Divided | None = None,
    ) -> None:
        self.x, self.views, self.batch_size = x, views, batch_size
        self.store = _store(x, backbone, required=required)
        self.activations = _store(x, divided.front, dtype=np.float16) if divided else None
        self.network = FrozenNetwork(divided.both if divided else backbone, len(x))
        self.keys: dict[int, list[bytes]] = {}  # of every view of the rows that were embedded

    def __call__(
        self,
        rows: NDArray[np.int64],
        progress: Callable[[int, int], None] | None = None,
        into: Features | None = None,
    ) -> Features:
        """Features (n, 1 + views, F) of some rows, in an array of this shape if there is one."""
        shape = len(rows), 1 + self.views, self.store.num_features
        features = np.empty(shape, np.float32) if into is None else into
        waiting: list[dict[int, _View]] = [{} for _ in range(1 + self.views)]  # per view, those not embedded yet

        def embed_waiting(v: int, done: int) -> None:
            made, *others = self.network.outputs(_batch([view.pixels for view in waiting[v].values()]))
            features[list(waiting[v]), v] = made
            keys = [view.key for view in waiting[v].values()]
            if self.activations is not None:
                self.activations.add(keys, halves(others[0]))
            self.store.add(keys, made)
            waiting[v].clear()
            if progress:
                progress(done, len(rows))

        looked = _in_threads(lambda i: self._look(int(rows[i])), len(rows), self.batch_size)
        for i, found in enumerate(looked):
            self.keys[int(rows[i])] = [view.key for view in found]
            for v, view in enumerate(found):
                if view.features is not None:
                    features[i, v] = view.features
                    continue
                waiting[v][i] = view
                if len(waiting[v]) == self.batch_size:
                    embed_waiting(v, i + 1)
        for v in range(1 + self.views):
            if waiting[v]:
                embed_waiting(v, len(rows))
        return features

    def missing(self, rows: NDArray[np.int64]) -> float:
        """Share of some rows whose plain view is not in the cache."""
        kind = kind_of(self.x)
        keys = [hashlib.sha256(kind.content(self.x, int(i))).digest() for i in rows]
        return float(np.mean([self._known(key) is None for key in keys]))

    def _look(self, i: int) -> list[_View]:
        x, kind = self.x, kind_of(self.x)
        content = kind.content(x, i)
        digest = hashlib.sha256(content).digest()
        augment = Augment(resolution=x.shape[1], seed=int.from_bytes(digest))
        keys = [digest, *(hashlib.sha256(f"{augment} {v}".encode()).digest() for v in range(1, self.views + 1))]
        known = [_View(key, self._known(key)) for key in keys]
        if all(view.features is not None for view in known):
            return known
        assert kind.pixels is not None
        base = kind.pixels(x, i, content)
        return [
            view
            if view.features is not None
            else view._replace(pixels=augment([base], v)[0].permute(1, 2, 0).numpy() if v else kind.view(x, base))
            for v, view in enumerate(known)
        ]

    def _known(self, key: bytes) -> Features | None:
        whole = self.activations is None or self.activations.get(key) is not None
        return self.store.get(key) if whole else None


def _store(x: Samples, backbone: Backbone, **how: Any) -> FeatureStore:
    made_by = f"{backbone.signature} {x.shape[1:]} {VERSION} {PIL.__version__}"
    made_by += " whole" * getattr(x, "whole", False)
    folder = cache_folder() / "features" / hashlib.sha256(made_by.encode()).hexdigest()[:32]
    return FeatureStore(folder, backbone.num_features, **how)


def halves(x: NDArray[np.float32]) -> Halves:
    """The nearest numbers in half precision, whose largest is 65,504."""
    return x.clip(-65504, 65504).astype(np.float16, order="C")


def embed(
    dataset: DomainDataset,
    backbone: Backbone,
    *,
    views: int = 0,
    batch_size: int = 32,
    progress: Callable[[int, int], None] | None = None,
    into: Features | None = None,
) -> Features:
    """Features (N, F) of all images by a pretrained backbone; with augmented `views`, (N, 1 + views, F)."""
    embedder = Embedder(dataset.x, backbone, views=views, batch_size=batch_size)
    with closing(embedder.store):
        features = embedder(np.arange(len(dataset)), progress, into)
    return features if views else features[:, 0]


MEASURED = 8  # images by which it is told what activations cost that are not kept


def activations(
    dataset: DomainDataset,
    backbone: Backbone,
    stages: int,
    *,
    views: int = 0,
    mirrored: bool = False,
    budget: int | None = None,
    least: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Activations:
    """Activations of all images in front of the last stages of a pretrained backbone, and its features.

    They are kept on disk for as many images as fit into a budget in bytes, by default a quarter of the free disk;
    training samples come first. The others are computed whenever they are needed.
    """
    divided, n = backbone.divided(stages), len(dataset)
    embedder = Embedder(dataset.x, backbone, views=views, divided=divided)
    assert embedder.activations is not None
    each = (1 + views) * divided.cut.size
    fit = (_room(embedder.activations.folder) // 4 if budget is None else budget) // each
    if fit < min(least, n):
        raise ValueError(
            f"the budget has room for the activations of {fit} images, {each:,} bytes each, but a batch has {least}: "
            f"give at least --cache {-(-least * each // 10**6)}MB"
        )
    order = np.argsort(dataset.split != "train", kind="stable")
    kept, others = np.sort(order[:fit]), np.sort(order[fit:])
    features = np.empty((n, backbone.num_features), np.float32)
    with closing(embedder.store), closing(embedder.activations):
        features[kept] = embedder(kept, progress and (lambda done, _: progress(done, n)))[:, 0]
    if len(others):
        whole = Embedder(dataset.x, backbone)
        with closing(whole.store):
            features[others] = whole(others, progress and (lambda done, _: progress(len(kept) + done, n)))[:, 0]
    store = _store(dataset.x, divided.front, dtype=np.float16)
    files: dict[int, tuple[int, Halves]] = {}  # by identity
    place = np.full((n, 1 + views, 2), -1)
    for i, keys in embedder.keys.items():
        for v, key in enumerate(keys):
            file, row = store.place(key)
            place[i, v] = files.setdefault(id(file), (len(files), file))[0], row
    images, network, note = dataset.x, FrozenNetwork(divided.front), ""
    if len(others):
        images, began = dataset.kind.cached(images), time.perf_counter()
        network(to_input(images[others[:MEASURED]]))
        seconds = (time.perf_counter() - began) / min(MEASURED, len(others))
        note = (
            f"there was room for the activations of {fit:,} of {n:,} images: those of the others were computed when "
            f"they were needed, about {1000 * seconds:.0f} ms for each; all take {n * each / 1e9:.1f} GB (--cache)"
        )
    return Activations(
        files=[file for _, file in files.values()],
        place=place,
        cut=divided.cut.shape,
        image=dataset.kind.shape(dataset.x),
        features=features,
        rows=np.arange(n),
        computed=lambda rows: halves(network(to_input(images[rows]))),
        mirrored=mirrored and divided.cut.mirrors,
        note=note,
    )


def _room(folder: Path) -> int:
    """Bytes that are free on the disk of a folder, or used by what is in it."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(there).free + sum(file.stat().st_size for file in folder.glob("*.rows"))


def embed_on_ray(
    dataset: DomainDataset,
    backbone: Backbone,
    views: int,
    batch_size: int,
    workers: int | None,
    progress: Callable[[int, int], None],
    into: Features,
) -> Features:
    """The same features as from `embed`, computed by actors that all have the image files and the cache."""
    from crosstail.ray_actors import map_rows  # here, because Ray is an extra

    done = 0
    make = partial(Embedder, dataset.x, backbone, views=views, batch_size=batch_size)
    for rows, made in map_rows(make, len(dataset), batch=batch_size, workers=workers):
        into[rows] = made
        done += len(made)
        progress(done, len(dataset))
    return into if views else into[:, 0]


def _batch(pixels: list[Any]) -> Tensor:
    stacked = np.stack(pixels)
    return to_input(stacked) if stacked.dtype == np.uint8 else torch.from_numpy(stacked).permute(0, 3, 1, 2)


def _in_threads(function: Callable[[int], list[_View]], count: int, batch_size: int) -> Iterator[list[_View]]:
    """Results for 0, 1, 2, … in order, computed up to two batches ahead."""
    with ThreadPoolExecutor(default_workers(), "crosstail-embed") as pool:
        begun: deque[Future[list[_View]]] = deque()
        try:
            for i in range(count):
                begun.append(pool.submit(function, i))
                if len(begun) > 2 * batch_size:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
