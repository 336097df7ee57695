"""Drawing the three domains of `digits`; every function draws all images of a domain at once."""

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from scipy import ndimage

Floats = NDArray[np.float32]
Range = tuple[float, float]

SIZE = 32  # pixels
CANVAS = 64  # printed digits are drawn at twice the size and resampled, for smooth edges


def handwritten(originals: Floats, rng: Generator) -> NDArray[np.uint8]:
    """Originals (N, 8, 8) in [0, 1] as pale grey ink on a dark ground, (N, 32, 32, 3)."""
    n = len(originals)
    ink = pen_strokes(originals, rng)[..., None]
    ground, pen = rng.uniform(0.0, 0.16, (n, 1, 1, 1)), rng.uniform(0.78, 1.0, (n, 1, 1, 1))
    grey = ground + (pen - ground) * ink + rng.normal(0, 0.015, ink.shape)
    return to_uint8(np.repeat(grey, 3, axis=3))


def textured(originals: Floats, rng: Generator) -> NDArray[np.uint8]:
    """Originals (N, 8, 8) as the difference from a colourful texture, as in MNIST-M (N, 32, 32, 3)."""
    n = len(originals)
    ink = pen_strokes(originals, rng)[..., None]
    background = textures(n, rng)
    return to_uint8(np.abs(background - ink) + rng.normal(0, 0.01, background.shape))


def signs(digits: NDArray[np.int64], rng: Generator) -> NDArray[np.uint8]:
    """Printed digits (N,) as photographed house numbers and street signs (N, 32, 32, 3)."""
    n = len(digits)
    font = ImageFont.load_default(size=62)
    type_ = np.stack([printed(int(digit), font, rng) for digit in digits])
    view = placement(n, rng, scale=(0.85, 1.15), stretch=0.12, angle=10.0, shear=0.22, shift=2.0, perspective=0.006)
    view = np.diag([CANVAS / SIZE, CANVAS / SIZE, 1.0]) @ view  # pixels of the image → pixels of the canvas
    ink = warp(type_[..., None], view, SIZE)

    ground, paint = contrasting_colours(n, rng)
    light = 1 + 0.35 * gradients(n, rng)[..., None]  # one side of a sign is often in shade
    image = (ground + (paint - ground) * ink) * light + 0.10 * (clouds(n, 4, rng) - 0.5)
    sigma = rng.uniform(0.3, 0.95, n)
    for i in range(n):
        image[i] = ndimage.gaussian_filter(image[i], (sigma[i], sigma[i], 0))
    return to_uint8(image + rng.normal(0, 1, image.shape) * rng.uniform(0.005, 0.04, (n, 1, 1, 1)))


def pen_strokes(originals: Floats, rng: Generator) -> Floats:
    """Smooth strokes (N, 32, 32) in [0, 1] from 8×8 originals, each slightly shifted, rotated and slanted."""
    n, side = len(originals), originals.shape[1]
    padded = np.pad(originals, ((0, 0), (1, 1), (1, 1)))
    zoom = 4  # by cubic splines, which are linear in the image: one matrix product for all images
    spline = ndimage.zoom(np.eye(side + 2), (zoom, 1), order=3, grid_mode=True, mode="nearest").astype(np.float32)
    smooth = spline @ padded @ spline.T
    view = placement(n, rng, scale=(0.72, 0.92), stretch=0.08, angle=9.0, shear=0.12, shift=1.3, perspective=0.0)
    border = ((side + 2) * zoom - SIZE) / 2
    view = np.array([[1.0, 0, border], [0, 1, border], [0, 0, 1]]) @ view
    moved = warp(smooth[..., None], view, SIZE)[..., 0]
    # The originals are 8×8 counts of black pixels: a steep curve restores the edge of the stroke.
    middle, width = rng.uniform(0.33, 0.45, (n, 1, 1)), rng.uniform(0.18, 0.28, (n, 1, 1))
    ramp = np.clip((moved - middle) / width + 0.5, 0, 1)
    return np.asarray(ramp * ramp * (3 - 2 * ramp), np.float32)


def textures(n: int, rng: Generator) -> Floats:
    """Colourful backgrounds (N, 32, 32, 3) in [0, 1]: clouds at three scales, stripes and blobs."""
    weight = rng.dirichlet((1.2, 1.2, 0.8), n)[:, :, None, None, None]
    smooth = weight[:, 0] * clouds(n, 3, rng) + weight[:, 1] * clouds(n, 7, rng) + weight[:, 2] * clouds(n, 16, rng)

    turned, along = rng.uniform(0, np.pi, (n, 1, 1)), np.arange(SIZE) / SIZE
    wave = np.cos(turned) * along[None, :, None] + np.sin(turned) * along[None, None, :]
    wave = np.sin(2 * np.pi * (rng.uniform(1.5, 5, (n, 1, 1)) * wave + rng.uniform(0, 1, (n, 1, 1))))
    blob = clouds(n, 6, rng)[..., 0] - 0.5
    mask = np.where(rng.random((n, 1, 1)) < 0.5, wave, 8 * blob)
    mask = 1 / (1 + np.exp(-rng.uniform(1, 5, (n, 1, 1)) * mask))
    tint = rng.uniform(-0.5, 0.5, (n, 1, 1, 3))
    image = 0.5 + 1.5 * (smooth - 0.5) + mask[..., None] * tint
    # |background − ink| has no contrast around 1/2, so backgrounds stay on one side of it.
    image = rng.uniform(0.10, 0.32, (n, 1, 1, 1)) + 0.45 * (image - image.mean(axis=(1, 2, 3), keepdims=True))
    bright = rng.random((n, 1, 1, 1)) < 0.3
    return np.asarray(np.clip(np.where(bright, 1 - image, image), 0, 1), np.float32)


def clouds(n: int, cells: int, rng: Generator) -> Floats:
    """Smooth colour noise (N, 32, 32, 3) in [0, 1] with this many cells along a side."""
    grid = rng.random((n, cells + 1, cells + 1, 3), dtype=np.float32)
    at = np.arange(SIZE)[:, None] * cells / SIZE
    blend = np.maximum(0, 1 - np.abs(at - np.arange(cells + 1))).astype(np.float32)  # (32, cells + 1)
    columns = blend @ grid  # (N, cells + 1, 32, 3)
    return np.asarray(blend @ columns.reshape(n, cells + 1, -1)).reshape(n, SIZE, SIZE, 3)


def gradients(n: int, rng: Generator) -> Floats:
    """A ramp from −1 to 1 across each image, in a random direction (N, 32, 32)."""
    turned, along = rng.uniform(0, 2 * np.pi, (n, 1, 1)), np.linspace(-1, 1, SIZE)
    ramp = np.cos(turned) * along[None, :, None] + np.sin(turned) * along[None, None, :]
    return np.asarray(ramp * rng.uniform(0, 0.8, (n, 1, 1)), np.float32)


def contrasting_colours(n: int, rng: Generator) -> tuple[Floats, Floats]:
    """Ground and paint (N, 1, 1, 3) that differ in brightness by about 0.4 or more, in either direction."""
    dark = rng.uniform(0.05, 0.4, n)
    bright = dark + rng.uniform(0.38, 0.55, n)
    swap = rng.random(n) < 0.35
    level = np.where(swap, [bright, dark], [dark, bright])[..., None]  # (2, N, 1)
    hue = rng.uniform(-0.2, 0.2, (2, n, 3))
    colour = np.clip(level + hue - hue.mean(axis=2, keepdims=True), 0, 1).astype(np.float32)
    return colour[0][:, None, None], colour[1][:, None, None]


def printed(digit: int, font: Any, rng: Generator) -> Floats:
    """A printed digit (64, 64), centred, often with others to its left or right."""
    stroke = int(rng.integers(0, 4))
    canvas = Image.new("L", (CANVAS, CANVAS))
    draw = ImageDraw.Draw(canvas)
    draw.text((CANVAS / 2, CANVAS / 2), str(digit), 255, font, anchor="mm", stroke_width=stroke)
    pitch = font.getlength(str(digit)) + rng.uniform(3, 8) + 2 * stroke
    for side in (-1, 1):
        neighbour, shown = str(rng.integers(10)), rng.random() < 0.35
        if shown:
            draw.text((CANVAS / 2 + side * pitch, CANVAS / 2), neighbour, 255, font, anchor="mm", stroke_width=stroke)
    return np.asarray(np.asarray(canvas) / 255, np.float32)


def placement(
    n: int, rng: Generator, scale: Range, stretch: float, angle: float, shear: float, shift: float, perspective: float
) -> NDArray[np.float64]:
    """Random homographies (N, 3, 3) from image pixels to pixels of the upright original, about the centre."""
    turn = np.deg2rad(rng.uniform(-angle, angle, n))
    size, ratio = rng.uniform(*scale, n), rng.uniform(1 - stretch, 1 + stretch, n)
    slant, move, tilt = (rng.uniform(-a, a, (2, n)) for a in (shear, shift, perspective))
    cos, sin, one, zero = np.cos(turn), np.sin(turn), np.ones(n), np.zeros(n)
    rotate = np.array([[cos, -sin, zero], [sin, cos, zero], [zero, zero, one]])
    lean = np.array([[ratio / size, zero, zero], [slant[0], 1 / (ratio * size), zero], [tilt[0], tilt[1], one]])
    middle = (SIZE - 1) / 2
    to_middle = np.array([[one, zero, -middle + move[0]], [zero, one, -middle + move[1]], [zero, zero, one]])
    back = np.array([[1, 0, middle], [0, 1, middle], [0, 0, 1]])
    rotate, lean, to_middle = (np.moveaxis(m, 2, 0) for m in (rotate, lean, to_middle))
    return np.asarray(back @ rotate @ lean @ to_middle)


def warp(images: NDArray[Any], matrices: NDArray[np.float64], size: int) -> Floats:
    """Sample images (N, H, W, C) bilinearly where homographies (N, 3, 3) map each pixel (row, column, 1)."""
    n, height, width, _ = images.shape
    row, column = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    pixel = np.stack([row.ravel(), column.ravel(), np.ones(size * size)])  # (3, size²)
    r, c, w = np.moveaxis(matrices @ pixel, 1, 0)
    r, c = np.clip(r / w, 0, height - 1.001), np.clip(c / w, 0, width - 1.001)
    r0, c0 = r.astype(np.int64), c.astype(np.int64)
    fr, fc = (r - r0)[..., None].astype(np.float32), (c - c0)[..., None].astype(np.float32)
    i = np.arange(n)[:, None]
    top = images[i, r0, c0] * (1 - fc) + images[i, r0, c0 + 1] * fc
    bottom = images[i, r0 + 1, c0] * (1 - fc) + images[i, r0 + 1, c0 + 1] * fc
    return np.asarray((top * (1 - fr) + bottom * fr).reshape(n, size, size, -1), np.float32)


def to_uint8(image: NDArray[Any]) -> NDArray[np.uint8]:
    """Convert [0, 1] to 0 … 255."""
    return np.asarray(np.clip(np.rint(image * 255), 0, 255), np.uint8)
