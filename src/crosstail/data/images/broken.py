"""Finding the images that cannot be decoded."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from crosstail.cache import cache_folder, write_atomically
from crosstail.data.images.decode import BrokenImage, read_image
from crosstail.data.images.files import ImageFiles


def check_images(files: ImageFiles, progress: Callable[[int, int], None] | None = None) -> list[tuple[str, str]]:
    """Decode every image once, at a small size, and return path and problem of each broken one.

    The answer is cached until a file changes. An I/O error ends the check and is not cached: a good image must not
    count as broken because a disk, a network or the number of open files failed once.
    """
    path = cache_folder() / "checked" / f"{files.fingerprint()[:32]}.json"
    try:
        return [(str(name), str(problem)) for name, problem in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError):
        pass
    found: list[tuple[str, str]] = []
    with ThreadPoolExecutor(files.workers, "crosstail-check") as pool:
        for start in range(0, len(files), 256):  # a part at a time: half a million futures would take memory
            rows = range(start, min(start + 256, len(files)))
            problems = zip(files.paths(list(rows)), pool.map(partial(problem_of, files), rows), strict=True)
            found += [(path, problem) for path, problem in problems if problem]
            if progress:
                progress(rows.stop, len(files))
    write_atomically(path, lambda file: file.write_text(json.dumps(found), encoding="utf-8"))
    return found


def problem_of(files: ImageFiles, i: int) -> str | None:
    """Why row i cannot be decoded, or None."""
    source, name = files.source(i)
    try:
        read_image(source, at_least=32, name=name)  # even at 1/8 a JPEG is read to its end
    except BrokenImage as error:
        return error.problem
    return None
