"""From an image file to pixels: whatever the format, RGB in 8 bits, upright, and never silently half a picture."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

Pixels = NDArray[np.uint8]

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm"})
# Named, so that no file can start a program: Pillow would hand PostScript to Ghostscript.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
MAX_PIXELS = 200_000_000
VERSION = 1  # of what `read_image` makes of a file; part of the key of every cache of pixels

_ORIENTATION = 0x0112  # the EXIF tag, and what undoes each of its values
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class BrokenImage(ValueError):
    """An image that cannot be used: its path, and what is wrong with it."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem} (--skip-broken goes on without it)"


def read_image(source: Path | str | bytes, *, at_least: int | None = None, name: str | None = None) -> Pixels:
    """The pixels (H, W, 3) of a file or of its bytes; what is wrong with it is said of `name`.

    Grey, palette, CMYK and 16-bit images become 8-bit RGB, transparency shows white, an animation its first
    frame, a photo taken sideways stands upright. With `at_least`, a larger image is reduced by a whole factor
    while it is decoded, so that its shorter side keeps that many pixels, and one that is more than twice as
    long as wide is cut to its middle: no view of ours shows more (see `evaluation_view` and `Augment`).
    """
    name = name or ("image" if isinstance(source, bytes) else str(source))
    with _problems_of(source, name):
        with _open(source) as image:
            if image.width * image.height > MAX_PIXELS:
                raise _too_large(name, image.width * image.height)
            if image.format != "PNG":
                return _decode(image, at_least, name)
            # Pillow decodes a damaged PNG without a word, to other pixels or to none from there on: its checksums tell.
            image.verify()
        with _open(source) as image:  # again, for nothing else can be done with it after that
            return _decode(image, at_least, name)


def read_bytes(source: Path | bytes, name: str) -> bytes:
    """The content of a file; what is wrong with it is said of `name`."""
    with _problems_of(source, name):
        return source if isinstance(source, bytes) else source.read_bytes()


def _open(source: Path | str | bytes) -> Image.Image:
    # Pillow's own limit warns, by thread-unsafe means, where ours still decodes.
    if Image.MAX_IMAGE_PIXELS is not None and Image.MAX_IMAGE_PIXELS < MAX_PIXELS:
        Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    return Image.open(BytesIO(source) if isinstance(source, bytes) else source, formats=FORMATS)


@contextmanager
def _problems_of(source: Path | str | bytes, name: str) -> Iterator[None]:
    """Turn whatever goes wrong into a BrokenImage."""
    try:
        yield
    except BrokenImage:
        raise
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise _too_large(name) from None
    except FileNotFoundError:
        raise BrokenImage(name, "there is no such file") from None
    except UnidentifiedImageError:
        empty = not source if isinstance(source, bytes) else not Path(source).stat().st_size
        raise BrokenImage(name, "is empty" if empty else f"is none of {', '.join(FORMATS)}") from None
    except Exception as error:  # decoders raise whatever the bytes lead them to
        raise BrokenImage(name, f"cannot be decoded: {' '.join(str(error).split()) or type(error).__name__}") from error


def _too_large(name: str, pixels: int | None = None) -> BrokenImage:
    found = f"has {pixels / 1e6:.0f} megapixels" if pixels else "is too large"
    return BrokenImage(name, f"{found}, expected at most {MAX_PIXELS // 10**6} megapixels")


def _decode(image: Image.Image, at_least: int | None, name: str) -> Pixels:
    if at_least:
        image.draft("RGB", (at_least, at_least))  # a JPEG decodes at 1/2, 1/4 or 1/8 for a fraction of the price
    try:
        orientation = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # the pixels of a file with broken metadata are fine
        orientation = 1
    image = _rgb(image, name)
    if at_least and min(image.size) >= 2 * at_least:
        image = image.reduce(min(image.size) // at_least)
    if orientation in _UPRIGHT:
        image = image.transpose(_UPRIGHT[orientation])
    pixels = np.asarray(image)
    return _middle(pixels) if at_least else pixels


def _rgb(image: Image.Image, name: str) -> Image.Image:
    image.load()
    if image.mode.startswith("I"):
        return _from_16_bits(image, name).convert("RGB")
    if image.mode == "F":
        raise BrokenImage(name, "has pixels in floating point, expected whole numbers of 8 or 16 bits")
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        white = Image.new("RGBA", image.size, "white")
        white.alpha_composite(image.convert("RGBA"))
        return white.convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")


def _from_16_bits(image: Image.Image, name: str) -> Image.Image:
    """Pillow's own conversion cuts off at 255 instead of scaling."""
    values = np.asarray(image)
    if values.min() < 0 or values.max() > 65535:
        raise BrokenImage(name, "has pixels of 32 bits, expected 8 or 16 bits")
    return Image.fromarray(((values.astype(np.uint32) + 128) // 257).astype(np.uint8))


def _middle(pixels: Pixels) -> Pixels:
    height, width = pixels.shape[:2]
    rows, columns = min(height, 2 * width), min(width, 2 * height)
    top, left = (height - rows) // 2, (width - columns) // 2
    return pixels[top : top + rows, left : left + columns]


def resize(pixels: Pixels, size: int) -> Pixels:
    """An image (H, W, 3) as (size, size, 3): bilinear, with antialiasing where it shrinks.

    >>> resize(np.full((5, 9, 3), 7, np.uint8), 4).shape
    (4, 4, 3)
    """
    # A contiguous copy in the layout of the file takes torch's vectorised path for 8-bit channels-last images,
    # four times as fast as Pillow, and on this thread alone. It also keeps read-only memory away from torch.
    image = torch.from_numpy(np.array(pixels, order="C"))[None].permute(0, 3, 1, 2)  # (1, 3, H, W)
    if image.shape[2:] != (size, size):
        image = F.interpolate(image, size=(size, size), mode="bilinear", antialias=True)
    return image[0].permute(1, 2, 0).numpy()


def base_size(resolution: int) -> int:
    """The shorter side down to which an image is reduced before any view of it is taken: 8/7 of the resolution.

    >>> base_size(224)
    256
    """
    return -(-resolution * 8 // 7)


def evaluation_view(pixels: Pixels, resolution: int) -> Pixels:
    """What a model is evaluated on: the middle square of 7/8 of the shorter side, at the resolution.

    That is the ImageNet convention: shorter side to 256, the middle 224, in one step.
    """
    # Differs from the paper: its reference code squeezes the whole image into the square.
    height, width = pixels.shape[:2]
    side = max(1, round(min(height, width) * 7 / 8))
    top, left = (height - side) // 2, (width - side) // 2
    return resize(pixels[top : top + side, left : left + side], resolution)
