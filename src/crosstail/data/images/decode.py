"""Image files to pixels: 8-bit RGB, upright, whatever the format; a damaged file is refused, never half decoded."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from io import BytesIO
from pathlib import Path
from stat import S_ISREG
from typing import IO

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import ExifTags, Image, UnidentifiedImageError

Pixels = NDArray[np.uint8]

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm"})
# Listed explicitly, so that no file can start a program: Pillow would hand PostScript to Ghostscript.
FORMATS: tuple[str, ...] = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
HEIC = (".heic", ".heif")  # photos taken by phones
HEIC_REMEDY = "pip install pillow-heif, or convert them to JPEG"
with suppress(ImportError):
    import_module("pillow_heif").register_heif_opener()
    SUFFIXES, FORMATS = SUFFIXES | {*HEIC}, (*FORMATS, "HEIF")
MAX_PIXELS = 200_000_000
VERSION = 3  # of `read_image` and `evaluation_view`; part of the key of every cache of pixels and features

_IN_MEMORY = 256 << 20  # bytes; smaller files are read before decoding, so that an I/O error is seen as one
_JPEG = b"\xff\xd8"
_TURNS = ("FLIP_LEFT_RIGHT", "ROTATE_180", "FLIP_TOP_BOTTOM", "TRANSPOSE", "ROTATE_270", "TRANSVERSE", "ROTATE_90")
_UPRIGHT = {value: Image.Transpose[turn] for value, turn in enumerate(_TURNS, 2)}  # EXIF orientation → what undoes it
_SIDEWAYS = range(5, 9)  # orientations that swap width and height


class BrokenImage(ValueError):
    """An image that is missing or cannot be decoded, for a reason of its own: I/O errors are raised unchanged."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem} (--skip-broken leaves it out)"


def read_image(source: Path | str | bytes, *, at_least: int | None = None, name: str | None = None) -> Pixels:
    """Decode a file, or its bytes, to pixels (H, W, 3); errors refer to it as `name`.

    Grey, palette, CMYK and 16-bit images become 8-bit RGB. Transparency becomes white, an animation its first frame,
    and EXIF orientation is applied. With `at_least`, a larger image is reduced by a whole factor while it is decoded,
    so that its shorter side keeps at least that many pixels, and an image more than twice as long as wide is cropped
    to its middle: no view shows more (see `evaluation_view` and `Augment`).
    """
    name = name or ("image" if isinstance(source, bytes) else str(source))
    with _errors_named(name), _opened(source) as stream:
        if not (start := stream.read(len(_JPEG))):
            raise BrokenImage(name, "is empty")
        if start == _JPEG and isinstance(stream, BytesIO):
            # Zeros decode to grey pixels. After the end of an image they are padding; without its end it is cut short.
            stream = BytesIO(stream.getbuffer().tobytes().rstrip(b"\0"))
        with _open(stream) as image:
            if image.width * image.height > MAX_PIXELS:
                raise _too_large(name, f"has {image.width * image.height / 1e6:.0f} megapixels")
            if image.format != "PNG":
                return _decode(image, at_least, name)
            # Pillow silently decodes a damaged PNG to wrong or missing pixels, so check its checksums.
            image.verify()
        with _open(stream) as image:  # verify() leaves an image unusable
            return _decode(image, at_least, name)


def header(content: bytes, name: str) -> tuple[tuple[int, int], str, str]:
    """Size (width, height) of an image when it stands upright, and its stored mode and format."""
    with _errors_named(name):
        if not content:
            raise BrokenImage(name, "is empty")
        with _open(BytesIO(content)) as image:
            width, height = image.size
            size = (height, width) if _orientation(image) in _SIDEWAYS else (width, height)
            return size, image.mode, image.format or ""


def read_bytes(source: Path | bytes, name: str) -> bytes:
    """The content of a file; errors refer to it as `name`."""
    with _errors_named(name):
        if isinstance(source, bytes):
            return source
        with _opened(source) as stream:
            return stream.read()


def _opened(source: Path | str | bytes) -> IO[bytes]:
    if isinstance(source, bytes):
        return BytesIO(source)
    path = Path(source)
    found = path.stat()
    if not S_ISREG(found.st_mode):  # a folder; or a pipe or device, which may have no end
        raise BrokenImage(str(source), "is not a file")
    return path.open("rb") if found.st_size > _IN_MEMORY else BytesIO(path.read_bytes())


def _open(stream: IO[bytes]) -> Image.Image:
    # Pillow's own limit is lower than ours, and its warning is not thread-safe.
    if Image.MAX_IMAGE_PIXELS is not None and Image.MAX_IMAGE_PIXELS < MAX_PIXELS:
        Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    stream.seek(0)
    return Image.open(stream, formats=FORMATS)


@contextmanager
def _errors_named(name: str) -> Iterator[None]:
    try:
        yield
    except BrokenImage:
        raise
    except FileNotFoundError:
        raise BrokenImage(name, "there is no such file") from None
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise _too_large(name) from None
    except UnidentifiedImageError:
        remedy = f": {HEIC_REMEDY}" if name.lower().endswith(HEIC) and "HEIF" not in FORMATS else ""
        raise BrokenImage(name, f"is not one of {', '.join(FORMATS)}{remedy}") from None
    except Exception as error:  # decoders raise all kinds of exceptions on damaged bytes
        if isinstance(error, OSError) and error.errno is not None:  # an error of a decoder has no number
            raise OSError(error.errno, error.strerror, name) from error
        if isinstance(error, MemoryError) or "out of memory" in str(error):
            raise MemoryError(f"{name}: not enough memory to decode it") from error
        raise BrokenImage(name, f"cannot be decoded: {' '.join(str(error).split()) or type(error).__name__}") from error


def _too_large(name: str, found: str = "is too large") -> BrokenImage:
    return BrokenImage(name, f"{found}, expected at most {MAX_PIXELS // 10**6} megapixels")


def _decode(image: Image.Image, at_least: int | None, name: str) -> Pixels:
    if at_least:
        image.draft("RGB", (at_least, at_least))  # decodes a JPEG at 1/2, 1/4 or 1/8, in a fraction of the time
    image.load()  # first, as Pillow turns a TIFF upright when it loads it, and then clears the tag
    orientation = _orientation(image)
    image = _rgb(image, name)
    if at_least and min(image.size) >= 2 * at_least:
        image = image.reduce(min(image.size) // at_least)
    if orientation in _UPRIGHT:
        image = image.transpose(_UPRIGHT[orientation])
    pixels = np.asarray(image)
    height, width = pixels.shape[:2]
    return _centre(pixels, min(height, 2 * width), min(width, 2 * height)) if at_least else pixels


def _orientation(image: Image.Image) -> int:
    """The EXIF orientation."""
    try:
        return int(image.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:  # broken metadata does not spoil the pixels
        return 1


def _rgb(image: Image.Image, name: str) -> Image.Image:
    if image.mode.startswith("I"):
        return _from_16_bits(image, name).convert("RGB")
    if image.mode == "F":
        raise BrokenImage(name, "has floating-point pixels, expected 8-bit or 16-bit integers")
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        white = Image.new("RGBA", image.size, "white")
        white.alpha_composite(image.convert("RGBA"))
        return white.convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")


def _from_16_bits(image: Image.Image, name: str) -> Image.Image:
    """Scale to 8 bits; Pillow's own conversion clips at 255."""
    values = np.asarray(image)
    if values.min() < 0 or values.max() > 65535:
        raise BrokenImage(name, "has 32-bit pixels, expected 8-bit or 16-bit integers")
    return Image.fromarray(((values.astype(np.uint32) + 128) // 257).astype(np.uint8))


def _centre(pixels: Pixels, height: int, width: int) -> Pixels:
    top, left = (pixels.shape[0] - height) // 2, (pixels.shape[1] - width) // 2
    return pixels[top : top + height, left : left + width]


def resize(pixels: Pixels, size: int) -> Pixels:
    """Resize an image (H, W, 3) to (size, size, 3): bilinear, with antialiasing when it shrinks."""
    # A contiguous channels-last copy takes torch's vectorised 8-bit path, four times as fast as Pillow and
    # single-threaded. It also keeps read-only memory away from torch.
    image = torch.from_numpy(np.array(pixels, order="C"))[None].permute(0, 3, 1, 2)  # (1, 3, H, W)
    if image.shape[2:] != (size, size):
        image = F.interpolate(image, size=(size, size), mode="bilinear", antialias=True)
    return image[0].permute(1, 2, 0).numpy()


def base_size(resolution: int) -> int:
    """The shorter side to which an image is reduced before any view of it is taken, such as 256 for 224."""
    return -(-resolution * 8 // 7)


def evaluation_view(pixels: Pixels, resolution: int, *, whole: bool = False) -> Pixels:
    """The view that models are evaluated on, resized: the central square as large as the shorter side, or all of it."""
    if whole:
        return resize(pixels, resolution)
    side = min(pixels.shape[:2])
    return resize(_centre(pixels, side, side), resolution)
