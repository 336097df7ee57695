"""Images in memory: an array (N, H, W, 3) of uint8."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crosstail.data.inputs._examined import CONTENT, PIXELS, Examined, Look, are_blank, thumbnail
from crosstail.data.inputs._hashes import hashes_of_rows
from crosstail.data.inputs._kind import InputKind, Shape
from crosstail.progress import Progress

_ROWS = 256  # looked at between reports of progress


def _tensor(x: NDArray[Any]) -> Tensor:
    # NumPy divides on this thread. Torch would use several, which on a busy machine wait for each other longer
    # than the division takes. The result is channels-last, which suits convolutions.
    return torch.from_numpy(np.divide(x, np.float32(255))).permute(0, 3, 1, 2)


def _example(generator: np.random.Generator, shape: Shape) -> NDArray[Any]:
    return generator.integers(0, 256, (shape[0], *shape[2:], 3), dtype=np.uint8)


def _prepared(shape: Shape) -> str:
    return (
        "From an image file: decode to 8-bit RGB, upright (EXIF orientation), transparency on white; crop the "
        f"central square; resize it to {shape[1]} by {shape[1]} pixels, bilinear with antialiasing. Pixels are 0 to "
        "255: scaling is part of the model."
    )


def _examined(x: NDArray[Any], detail: int, progress: Progress | None) -> Examined:
    looks: list[Look] = []
    for start in range(0, len(x), _ROWS) if detail > CONTENT else ():
        images = np.asarray(x[start : start + _ROWS])
        for image, blank in zip(images, are_blank(images).tolist(), strict=True):
            grey = thumbnail(image) if detail == PIXELS else None
            looks.append(Look((x.shape[2], x.shape[1]), "RGB", "array", grey, blank))
        if progress:
            progress("reading images", len(looks), len(x))
    return Examined(hashes_of_rows(x), looks)


KIND = InputKind(
    holds=lambda x: x.dtype == np.uint8 and x.ndim == 4 and x.shape[3] == 3,
    expects="uint8 images (N, H, W, 3)",
    noun="image",
    backbone="small_cnn",
    rank=3,
    shape=lambda x: (3, *x.shape[1:3]),
    tensor=_tensor,
    scaled=lambda x: x.permute(0, 3, 1, 2) / 255,
    example=_example,
    described=lambda shape: f"images of {shape[1]} × {shape[2]} pixels",
    prepared=_prepared,
    examined=_examined,
    pixels=lambda x, row, content=None: x[row],
)
