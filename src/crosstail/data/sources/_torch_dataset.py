"""The source "torch": a map-style data set of torch or torchvision, read into memory."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.utils.data import IterableDataset

from crosstail.data.dataset import DomainDataset
from crosstail.data.sources._as_dataset import SourceOptions, as_dataset
from crosstail.data.sources._folder_layout import ONE_DOMAIN
from crosstail.data.sources._natural_order import numbered_names

KEYS = {"x": ("x", "image", "pixel_values"), "y": ("y", "label", "labels"), "domain": ("domain",)}


def load_torch(source: Any, **options: Unpack[SourceOptions]) -> DomainDataset:
    """Load a `torch.utils.data.Dataset` of (x, y, domain), of (x, y), or of dictionaries with these keys.

    `x` is a vector, an image (3, H, W) with values from 0 to 1 or in uint8, or a Pillow image; images have one size.
    The attributes `classes` and `domains`, where the data set has them, are the names.
    """
    name = type(source).__name__
    if isinstance(source, IterableDataset) or not hasattr(source, "__len__"):
        raise ValueError(f"{name}: has no length; expected a data set with __len__ and __getitem__")
    if not len(source):
        raise ValueError(f"{name}: has no samples")
    rows = [_parts(name, row, source[row]) for row in range(len(source))]
    x = _stacked(name, [_array(name, i, row[0]) for i, row in enumerate(rows)])
    y, classes = _codes(name, "y", [row[1] for row in rows], getattr(source, "classes", None))
    given = [row[2] for row in rows]
    notes = [f"read into memory: {len(rows):,} samples of {name}"]
    if all(one is None for one in given):
        notes.append(f"the samples have no domain: all {len(rows):,} are in one, {ONE_DOMAIN!r}")
        given = [ONE_DOMAIN] * len(rows)
    domain, domains = _codes(name, "domain", given, getattr(source, "domains", None))
    return as_dataset(name, x, y, domain, classes, domains, notes=notes, **options)


def _parts(name: str, row: int, sample: Any) -> tuple[Any, Any, Any]:
    if isinstance(sample, Mapping):
        found = {ours: next((sample[key] for key in keys if key in sample), None) for ours, keys in KEYS.items()}
        if found["x"] is not None and found["y"] is not None:
            return found["x"], found["y"], found["domain"]
        seen = f"a dictionary with {', '.join(map(str, sample))}"
    elif isinstance(sample, Sequence) and len(sample) in (2, 3):
        return sample[0], sample[1], sample[2] if len(sample) == 3 else None
    else:
        seen = f"a {type(sample).__name__}"
    raise ValueError(f"{name}: sample {row} is {seen}, expected (x, y, domain), (x, y), or a dictionary of these")


def _array(name: str, row: int, x: Any) -> NDArray[Any]:
    if isinstance(x, Image.Image):
        return np.asarray(x.convert("RGB"))
    found = x.detach().cpu().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)
    if found.ndim == 1 and found.dtype.kind in "fiu":
        return found.astype(np.float32)
    if found.ndim != 3 or found.shape[0] != 3:
        raise ValueError(f"{name}: x of sample {row} has the shape {found.shape}, expected (F,) or (3, H, W)")
    if found.dtype != np.uint8:
        if not (found.min() >= 0 and found.max() <= 1):
            what = f"values from {found.min():g} to {found.max():g}, expected 0 to 1"
            raise ValueError(f"{name}: x of sample {row} has {what}; remove normalisation from its transform")
        found = np.rint(255 * found).astype(np.uint8)
    return np.ascontiguousarray(found.transpose(1, 2, 0))


def _stacked(name: str, samples: list[NDArray[Any]]) -> NDArray[Any]:
    odd = next((i for i, sample in enumerate(samples) if sample.shape != samples[0].shape), None)
    if odd is not None:
        shapes = f"x of sample {odd} has the shape {samples[odd].shape}, sample 0 has {samples[0].shape}"
        raise ValueError(f"{name}: {shapes}; resize them in its transform, or give the folder of the images")
    x = np.stack(samples)
    if x.dtype == np.float32 and not np.isfinite(x).all():
        row = int(np.logical_not(np.isfinite(x)).any(axis=1).argmax())
        raise ValueError(f"{name}: x of sample {row} has a value that is NaN or infinite")
    return x


def _codes(name: str, key: str, values: list[Any], names: Any) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    plain = [value.item() if hasattr(value, "item") else value for value in values]
    if odd := [i for i, value in enumerate(plain) if not isinstance(value, (int, str))]:
        raise ValueError(f"{name}: {key} of sample {odd[0]} is {plain[odd[0]]!r}, expected a number or a name")
    if names is not None and all(isinstance(value, int) for value in plain):
        if wrong := [i for i, value in enumerate(plain) if not 0 <= value < len(names)]:
            raise ValueError(
                f"{name}: {key} of sample {wrong[0]} is {plain[wrong[0]]}, but there are {len(names)} names"
            )
        return np.array(plain), tuple(map(str, names))
    return numbered_names(list(map(str, plain)))
