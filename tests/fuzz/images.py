"""Folders of images: damaged files, odd formats and names, and files that vanish while they are read."""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
from PIL import Image
from tests.fuzz._case import Case
from tests.fuzz._good import SHORT
from tests.fuzz.arrays import damaged

from crosstail.data.images import decode

COMMANDS = (
    *4 * ("audit photos --json", "predict run-p photos --json", "evaluate run-p photos --split test --json"),
    *("audit photos", "audit photos --out a.html", "predict run-p photos --skip-broken --json"),
    f"fit photos --algorithm erm --backbone small_cnn --resolution 16 {SHORT} --out run-n",
    f"fit photos --skip-broken --algorithm erm --backbone small_cnn --resolution 16 {SHORT} --out run-n",
    "embed photos --resolution 32 --out e.npz",
    "graph run-p --json --out g.csv",
)
BROKEN = ("cut at", "zeros from")  # ways after which an image must not pass as intact


def case(random: Random, good: Path) -> Case:
    """A folder with one odd file."""
    if random.random() < 0.25:
        return _vanishing(random)
    if random.random() < 0.25:
        return _named(random)
    how, name, content = _image(random)
    file = f"photos/clinic/cat/{name}"
    command = random.choice(COMMANDS)
    if command.startswith("graph"):
        command = "audit photos"
    single = random.random() < 0.3
    if single:
        command = f"predict run-p {file} --json"
    wrong: dict[str, Any] = {}
    if how.startswith(BROKEN) and (single or command == "audit photos --json"):
        wrong = {"wrong": partial(_passed, name)}
    return Case(f"{file}: {how}", command, (name,), lambda folder: (folder / file).write_bytes(content), **wrong)


def _passed(name: str, out: str) -> str:
    """Whether a damaged image passed as intact: a report on the data has to name it, a prediction must not exist."""
    found = '"broken"' in out and name in out.partition('"broken"')[2]
    return "" if found else "a damaged image passes as intact"


def _pixels(size: tuple[int, int] = (96, 80)) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))


def _saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    content = io.BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()


def _image(random: Random) -> tuple[str, str, bytes]:
    """What is odd, the name and the content of an image."""
    if random.random() < 0.5:
        kind, suffix, options = random.choice(
            (
                ("JPEG", "jpg", {"quality": 90}),
                ("JPEG", "jpeg", {"progressive": True}),
                ("JPEG", "jpg", {"restart_marker_rows": 1}),
                ("PNG", "png", {}),
                ("GIF", "gif", {}),
                ("BMP", "bmp", {}),
                ("TIFF", "tif", {}),
                ("TIFF", "tiff", {"compression": "tiff_lzw"}),
                ("WEBP", "webp", {}),
                ("PPM", "ppm", {}),
            )
        )
        content = _saved(_pixels(), kind, **options)
        start = random.randrange(len(content) // 3, len(content) * 9 // 10)
        if random.random() < 0.3:
            return f"cut at {start} of {len(content)}", f"z.{suffix}", content[:start]
        if random.random() < 0.5:
            named = "zeros" if kind == "JPEG" else "ending in zeros"
            return (
                f"{named} from {start} of {len(content)}",
                f"z.{suffix}",
                content[:start] + bytes(len(content) - start),
            )
        how, content = damaged(content, random)
        return how, f"z.{suffix}", content
    frames = [Image.new("RGB", (20, 20), colour) for colour in ("red", "blue")]
    ways: dict[str, Callable[[], tuple[str, bytes]]] = {
        "one pixel": lambda: ("z.png", _saved(_pixels((1, 1)), "PNG")),
        "one column": lambda: ("z.jpg", _saved(_pixels((1, 999)), "JPEG")),
        "CMYK": lambda: ("z.jpg", _saved(_pixels().convert("CMYK"), "JPEG")),
        "16 bits": lambda: ("z.png", _saved(Image.fromarray(np.full((9, 9), 40_000, np.uint16)), "PNG")),
        "floats": lambda: ("z.tif", _saved(Image.fromarray(np.full((9, 9), np.nan, np.float32)), "TIFF")),
        "one bit": lambda: ("z.png", _saved(_pixels().convert("1"), "PNG")),
        "a palette": lambda: ("z.png", _saved(_pixels().convert("P"), "PNG")),
        "transparent": lambda: ("z.png", _saved(_pixels().convert("RGBA"), "PNG")),
        "Lab": lambda: ("z.tif", _saved(_pixels().convert("LAB"), "TIFF")),
        "animated": lambda: ("z.gif", _saved(frames[0], "GIF", save_all=True, append_images=frames[1:])),
        "another suffix": lambda: ("z.png", _saved(_pixels(), "JPEG")),
        "text": lambda: ("z.jpg", b"hello"),
        "a web page": lambda: ("z.jpg", b"<html>404</html>"),
        "PostScript": lambda: ("z.jpg", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"),
        "broken metadata": lambda: ("z.jpg", _saved(_pixels(), "JPEG", exif=b"Exif\0\0" + random.randbytes(40))),
        "a colour profile of rubbish": lambda: ("z.jpg", _saved(_pixels(), "JPEG", icc_profile=random.randbytes(99))),
        "bytes after the end": lambda: ("z.jpg", _saved(_pixels(), "JPEG") + bytes(500)),
    }
    how = random.choice(sorted(ways))
    return how, *ways[how]()


def _named(random: Random) -> Case:
    """An entry of the folder that is no plain image, or has an odd name."""
    content = _saved(_pixels((20, 20)), "JPEG")

    def write(folder: Path, name: bytes) -> None:
        path = os.fsencode(folder / "photos/clinic") + b"/" + name
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 - a name of bytes
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(content)

    ways: dict[str, Callable[[Path], object]] = {
        "a folder called z.jpg": lambda folder: (folder / "photos/clinic/cat/z.jpg").mkdir(),
        "a link to nothing": lambda folder: (folder / "photos/clinic/cat/z.jpg").symlink_to("nothing"),
        "a link to itself": lambda folder: (folder / "photos/clinic/cat/z.jpg").symlink_to("z.jpg"),
        "a link to a folder above": lambda folder: (folder / "photos/clinic/cat/z").symlink_to("../.."),
        "a link to a device": lambda folder: (folder / "photos/clinic/cat/z.jpg").symlink_to("/dev/zero"),
        "a pipe": lambda folder: os.mkfifo(folder / "photos/clinic/cat/z.jpg"),
        "a name with a line break": lambda folder: write(folder, b"cat/z\nz.jpg"),
        "a class with a line break": lambda folder: write(folder, b"c\nat/z.jpg"),
        "a name that is not UTF-8": lambda folder: write(folder, b"cat/z\xff.jpg"),
        "a class that is not UTF-8": lambda folder: write(folder, b"c\xffat/z.jpg"),
        "a name of 255 characters": lambda folder: write(folder, b"cat/" + b"z" * 251 + b".jpg"),
        "a class of 255 characters": lambda folder: write(folder, b"c" * 255 + b"/z.jpg"),
        "a name with markup": lambda folder: write(folder, b"cat/[bold]z[/bold].jpg"),
        "a class with markup": lambda folder: write(folder, b"[red]<b>cat/z.jpg"),
        "a name with control characters": lambda folder: write(folder, b"cat/z\x1b[31m\r.jpg"),
        "a class of spaces": lambda folder: write(folder, b"   /z.jpg"),
        "a name with quotes and commas": lambda folder: write(folder, b"cat/z\",'.jpg"),
        "a class in NFD": lambda folder: write(folder, "é/z.jpg".encode()) or write(folder, "e\u0301/z.jpg".encode()),
        "a class in other case": lambda folder: write(folder, b"CAT/z.jpg"),
        "a suffix only": lambda folder: write(folder, b"cat/.jpg"),
        "a class with one image": lambda folder: write(folder, b"zebra/z.jpg"),
    }
    how = random.choice(sorted(ways))
    return Case(f"photos: {how}", random.choice(COMMANDS), ("z", "photos"), ways[how])


def _vanishing(random: Random) -> Case:
    """A file that is listed, and is gone or empty when it is read."""
    after = random.choice((0, 0, 1, 5, 25))  # how often it can be read before
    to = random.choice(("nothing", "an empty file", "a folder", "half of it"))

    @contextmanager
    def during() -> Iterator[None]:
        opened, left = decode._opened, [after]

        def open_(source: Path | str | bytes) -> Any:
            if not isinstance(source, bytes) and Path(source).name == "3.jpg":
                left[0] -= 1
                if left[0] == -1:
                    content = Path(source).read_bytes()
                    Path(source).unlink()
                    if to == "a folder":
                        Path(source).mkdir()
                    elif to != "nothing":
                        Path(source).write_bytes(b"" if to == "an empty file" else content[: len(content) // 2])
            return opened(source)

        with patch.object(decode, "_opened", open_):
            yield

    what = f"photos/*/*/3.jpg: becomes {to} after it was read {after} times"
    return Case(what, random.choice(COMMANDS), ("3.jpg", "photos"), lambda _: None, during=during)
