"""Colour changes of many images at once, in place, with the arithmetic of torchvision's functional ops.

Images are planar floats in [0, 1], (B, 3, N) with N pixels, each with its own factor, (B, 1, 1). NumPy works on one
thread; torch would start one per core under every decoding thread.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_LUMA = np.array([0.2989, 0.587, 0.114], np.float32)  # ITU-R 601-2, in torchvision's rounding


def luma(x: Floats) -> Floats:
    """The luma of every pixel, (B, 1, N)."""
    return np.einsum("bcn,c->bn", x, _LUMA)[:, None]


def brightness(x: Floats, factor: Floats) -> None:
    """Multiply by the factor."""
    x *= factor
    _clip(x, factor)


def contrast(x: Floats, factor: Floats) -> None:
    """Blend with the mean luma of the image; a factor above 1 increases contrast."""
    mean = (x.mean(axis=2) @ _LUMA)[:, None, None]
    x *= factor
    x += (1 - factor) * mean
    _clip(x, factor)


def saturation(x: Floats, factor: Floats) -> None:
    """Blend each pixel with its grey value; a factor above 1 increases saturation."""
    grey = luma(x)
    grey *= 1 - factor
    x *= factor
    x += grey
    _clip(x, factor)


def _clip(x: Floats, factor: Floats) -> None:
    if factor.max() > 1:  # up to 1 the result is between two colours in range
        np.clip(x, 0, 1, out=x)


def hue(x: Floats, shift: Floats) -> None:
    """Rotate the hue by a fraction of the circle, from −1/2 to 1/2, keeping value and chroma.

    In HSV each channel is a trapezoid over the hue: it rises and falls over a sixth of the circle each, and is flat
    for two sixths in between. With D the difference of the other two channels and c the chroma, a shift by 0 ≤ t ≤ 1
    sixths is

        R ← clip(R − soft(D, (1 − t)·c), min, max),    soft(D, λ) = D − clip(D, −λ, λ),

    which needs neither the hue nor a division, and takes a tenth of the time of a conversion to HSV and back. In the
    other direction D changes sign. A whole sixth is the next channel, mirrored between min and max.
    """
    for image, sixths in zip(x, 6 * shift.ravel(), strict=True):
        _turn(image, float(sixths))


def _turn(x: Floats, sixths: float) -> None:
    high, low = np.maximum(x[0], x[1]), np.minimum(x[0], x[1])  # (N,)
    np.maximum(high, x[2], out=high)
    np.minimum(low, x[2], out=low)
    whole = int(sixths)
    turned = _turn_by_sixths(x, high, low, whole)
    part = sixths - whole
    bound = (high - low) * np.float32(1 - abs(part))
    difference = np.empty_like(x)
    for c in range(3):
        one, other = turned[c - 2], turned[c - 1]
        np.subtract(one, other, out=difference[c]) if part > 0 else np.subtract(other, one, out=difference[c])
    np.subtract(turned, difference, out=x)
    np.minimum(difference, bound, out=difference)
    np.maximum(difference, np.negative(bound, out=bound), out=difference)
    x += difference
    np.maximum(x, low, out=x)
    np.minimum(x, high, out=x)


def _turn_by_sixths(x: Floats, high: Floats, low: Floats, count: int) -> Floats:
    # Half a circle mirrors the channels; a third rotates them by one. So one sixth is half a circle less a third.
    if count % 2 == 0:
        return np.roll(x, count // 2, axis=0) if count else x
    ends, turned = high + low, np.empty_like(x)
    for c in range(3):
        np.subtract(ends, x[(c + count) % 3], out=turned[c])
    return turned


def grey(x: Floats) -> None:
    """Set all three channels to the luma."""
    x[:] = luma(x)
