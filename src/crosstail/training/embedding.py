"""Frozen features: every input is embedded once, and kept on disk under a key of everything that made it."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from crosstail.backbones import Backbone
from crosstail.data import DomainDataset, ImageFiles, to_input
from crosstail.data.cache import cache_folder


def embed(
    dataset: DomainDataset,
    backbone: Backbone,
    *,
    batch_size: int = 64,
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[np.float32]:
    """The features (N, F) of all samples by a pretrained backbone, computed once."""
    key = hashlib.sha256(f"{type(backbone).__qualname__} {backbone.weights} {dataset.x.shape}".encode())
    if isinstance(dataset.x, ImageFiles):
        key.update(dataset.x.fingerprint().encode())
    else:
        key.update(np.ascontiguousarray(dataset.x).data)
    path = cache_folder() / f"{key.hexdigest()[:32]}.safetensors"
    cached = _read(path, (len(dataset), backbone.num_features))
    if cached is not None:
        return cached
    features = np.empty((len(dataset), backbone.num_features), np.float32)
    backbone.eval()
    with torch.inference_mode():
        for i in range(0, len(dataset), batch_size):
            features[i : i + batch_size] = backbone(to_input(dataset.x[i : i + batch_size])).numpy()
            if progress:
                progress(min(i + batch_size, len(dataset)), len(dataset))
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.part")
    try:
        save_file({"features": features}, partial, metadata={"sha256": hashlib.sha256(features.data).hexdigest()})
    except SafetensorError as error:  # what it makes of a full disk
        raise OSError(f"cannot keep embeddings in {path.parent} ({error}); $CROSSTAIL_CACHE names another") from None
    partial.replace(path)
    return features


def _read(path: Path, shape: tuple[int, int]) -> NDArray[np.float32] | None:
    """Features from the cache, or None if they are not there or damaged (they are then computed again)."""
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            checksum = (file.metadata() or {}).get("sha256")
        features: NDArray[np.float32] = load_file(path)["features"]
    except (SafetensorError, OSError, KeyError):
        return None
    if features.shape != shape or hashlib.sha256(features.data).hexdigest() != checksum:
        return None
    return features
