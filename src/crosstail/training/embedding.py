"""Frozen features: every image is embedded once and cached by its content."""

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import PIL
import torch
from numpy.typing import NDArray
from torch import Tensor

from crosstail.backbones import Backbone
from crosstail.backbones._feature_store import Features, FeatureStore
from crosstail.backbones._frozen import FrozenNetwork
from crosstail.cache import cache_folder
from crosstail.data import Augment, DomainDataset, kind_of, to_input
from crosstail.data.images.decode import VERSION
from crosstail.data.images.files import Samples, default_workers


class _View(NamedTuple):
    key: bytes
    features: Features | None
    pixels: NDArray[Any] | None = None


class Embedder:
    """Features of images by a pretrained backbone, each embedded once and kept in the cache.

    The first view is not augmented. The augmentation of the others depends on the image's content alone. Unless the
    cache is `required`, features that cannot be written to it are not kept.
    """

    def __init__(
        self, x: Samples, backbone: Backbone, *, views: int = 0, batch_size: int = 32, required: bool = True
    ) -> None:
        self.x, self.views, self.batch_size = x, views, batch_size
        made_by = f"{backbone.signature} {x.shape[1:]} {VERSION} {PIL.__version__}"
        made_by += " whole" * getattr(x, "whole", False)
        folder = cache_folder() / "features" / hashlib.sha256(made_by.encode()).hexdigest()[:32]
        self.store = FeatureStore(folder, backbone.num_features, required=required)
        self.network = FrozenNetwork(backbone, len(x))

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
            made = self.network(_batch([view.pixels for view in waiting[v].values()]))
            features[list(waiting[v]), v] = made
            self.store.add([view.key for view in waiting[v].values()], made)
            waiting[v].clear()
            if progress:
                progress(done, len(rows))

        looked = _in_threads(lambda i: _look(self.x, int(rows[i]), self.views, self.store), len(rows), self.batch_size)
        for i, found in enumerate(looked):
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


def _look(x: Samples, i: int, views: int, store: FeatureStore) -> list[_View]:
    kind = kind_of(x)
    content = kind.content(x, i)
    digest = hashlib.sha256(content).digest()
    augment = Augment(resolution=x.shape[1], seed=int.from_bytes(digest))
    keys = [digest, *(hashlib.sha256(f"{augment} {v}".encode()).digest() for v in range(1, views + 1))]
    known = [_View(key, store.get(key)) for key in keys]
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
