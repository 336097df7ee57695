"""The paper's augmentation (crop, flip, colour jitter, grey), as a function of the seed and the step."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crosstail.data.images import colour
from crosstail.data.images.decode import Pixels, resize

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

_TRIES = 10  # to find a crop that fits, as in torchvision
_AUGMENT = 3  # keeps this use of a seed apart from others: see batches/row_streams.py
_COLOURS = (colour.brightness, colour.contrast, colour.saturation, colour.hue)
# Pixels recoloured at a time: more do not fit the processor's cache, fewer cost more calls.
_PIXELS = 50_000


@dataclass(frozen=True, eq=False)
class Draws:
    """The random numbers of one batch, drawn without looking at the images."""

    area: Doubles  # (B, 10) of the crop, as a fraction of the image
    ratio: Doubles  # (B, 10) width over height
    place: Doubles  # (B, 2) from the top and from the left, in [0, 1)
    flip: NDArray[np.bool_]  # (B,)
    factors: Floats  # (4, B, 1, 1) of brightness, contrast and saturation; hue shift
    order: NDArray[np.int64]  # (4,) in which these are applied
    grey: NDArray[np.bool_]  # (B,)

    def part(self, rows: slice | NDArray[np.int64]) -> "Draws":
        per_sample = {name: getattr(self, name)[rows] for name in ("area", "ratio", "place", "flip", "grey")}
        return replace(self, **per_sample, factors=self.factors[:, rows])


@dataclass(frozen=True, kw_only=True)
class Augment:
    """Random resized crop, horizontal flip, colour jitter and 10 % grey, as in the paper (and DomainBed).

    The result is in [0, 1]: a backbone normalises its own input. The four colour changes are applied in a random order
    shared by the batch, as in torchvision v2.

    >>> images = np.zeros((2, 40, 30, 3), np.uint8)
    >>> Augment(resolution=24)(images, step=7).shape
    torch.Size([2, 3, 24, 24])
    """

    resolution: int = 224
    seed: int = 0
    scale: tuple[float, float] = (0.7, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    flip: float = 0.5
    jitter: tuple[float, float, float, float] = (0.3, 0.3, 0.3, 0.3)  # brightness, contrast, saturation, hue
    grey: float = 0.1

    def __post_init__(self) -> None:
        if self.resolution < 1:
            raise ValueError(f"resolution is {self.resolution}, expected 1 or more pixels")
        if not 0 <= self.jitter[3] <= 0.5:
            raise ValueError(f"jitter of the hue is {self.jitter[3]}, expected 0 to 0.5")

    def draw(self, step: int, count: int) -> Draws:
        """The random numbers of a step, a function of the seed and the step."""
        rng = np.random.default_rng([self.seed, step, 0, _AUGMENT])
        area = rng.uniform(*self.scale, (count, _TRIES))
        ratio = np.exp(rng.uniform(log(self.ratio[0]), log(self.ratio[1]), (count, _TRIES)))
        place, flip, grey = rng.random((count, 2)), rng.random(count) < self.flip, rng.random(count) < self.grey
        factors = rng.uniform(-1, 1, (4, count, 1, 1)) * np.reshape(self.jitter, (4, 1, 1, 1))
        factors[:3] = np.maximum(factors[:3] + 1, 0)
        return Draws(area, ratio, place, flip, factors.astype(np.float32), rng.permutation(4), grey)

    def crop(self, image: Pixels, draws: Draws, i: int, *, flip: bool = True) -> Pixels:
        """Crop sample i, resize the crop, and flip it if drawn so, unless the device will."""
        h, w = image.shape[:2]
        top, left, height, width = crop_box(h, w, draws.area[i], draws.ratio[i], draws.place[i], self.ratio)
        view = resize(image[top : top + height, left : left + width], self.resolution)
        return view[:, ::-1] if flip and draws.flip[i] else view

    def recolour(self, images: Pixels, draws: Draws, out: Floats) -> None:
        """Jitter the colours of images (B, S, S, 3) and write them, in [0, 1], to `out` of the same shape."""
        pixels, made = (a.reshape(len(images), -1, 3) for a in (images, out))  # (B, N, 3)
        at_once = max(1, _PIXELS // max(1, pixels.shape[1]))
        for start in range(0, len(images), at_once):
            rows = slice(start, start + at_once)
            x = np.divide(pixels[rows].transpose(0, 2, 1), np.float32(255), order="C")  # (b, 3, N)
            for k in draws.order:
                if self.jitter[k]:
                    _COLOURS[k](x, draws.factors[k, rows])
            for i in np.flatnonzero(draws.grey[rows]):
                colour.grey(x[i : i + 1])
            for c in range(3):  # one by one: a transposed copy is slower
                made[rows, :, c] = x[:, c]

    def __call__(self, images: Pixels | Sequence[Pixels], step: int) -> Tensor:
        """Augment images of any size, (H, W, 3) each, to a batch (B, 3, S, S) in [0, 1]."""
        draws = self.draw(step, len(images))
        cropped = np.stack([self.crop(image, draws, i) for i, image in enumerate(images)])
        out = np.empty(cropped.shape, np.float32)
        self.recolour(cropped, draws, out)
        return torch.from_numpy(out).permute(0, 3, 1, 2)


def crop_box(
    height: int, width: int, area: Doubles, ratio: Doubles, place: Doubles, limits: tuple[float, float]
) -> tuple[int, int, int, int]:
    """Top, left, height and width of the first drawn crop that fits, or else of the largest central one."""
    wide = np.rint(np.sqrt(height * width * area * ratio)).astype(np.int64)
    high = np.rint(np.sqrt(height * width * area / ratio)).astype(np.int64)
    fits = np.flatnonzero((wide > 0) & (wide <= width) & (high > 0) & (high <= height))
    if len(fits):
        w, h = int(wide[fits[0]]), int(high[fits[0]])
        return int(place[0] * (height - h + 1)), int(place[1] * (width - w + 1)), h, w
    w = max(1, min(width, round(height * limits[1])))
    h = max(1, min(height, round(width / limits[0])))
    return (height - h) // 2, (width - w) // 2, h, w
