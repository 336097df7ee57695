"""Whether samples are the same, look alike or are broken: asked here, and nowhere else."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail.cache import cache_folder, write_atomically
from crosstail.data.images.look_alike import VERSION, alike
from crosstail.data.inputs import kind_of
from crosstail.data.inputs._examined import CONTENT, HEADER, PIXELS, Examined, equal
from crosstail.data.inputs._files import store_numbers, stored_numbers
from crosstail.progress import Progress

__all__ = ["CONTENT", "HEADER", "PIXELS", "Examined", "equal", "examine", "find_broken", "look_alikes"]


def examine(x: Any, detail: int = CONTENT, progress: Progress | None = None) -> Examined:
    """What is found out about the samples x, in some detail; files are read once per process, unless they change.

    >>> examine(np.array([[1.0], [2.0], [1.0]])).same()
    [[0, 2]]
    """
    return kind_of(x).examined(x, detail, progress)


def look_alikes(x: Any, progress: Progress | None = None) -> NDArray[np.int64]:
    """One number per image (N,), the same for images that look alike; files are compared once for all runs."""
    fingerprint = kind_of(x).fingerprint
    file = None if fingerprint is None else cache_folder() / "alike" / f"{fingerprint(x)}-{VERSION}"
    if file is not None and (stored := stored_numbers(file, len(x))) is not None:
        return stored
    found = examine(x, PIXELS, progress)
    groups = alike(found.thumbnails, progress)
    if file is not None and not found.unread:
        store_numbers(file, groups)
    return groups


def find_broken(x: Any, progress: Progress | None = None) -> list[tuple[str, str]]:
    """The names of images that cannot be decoded, and why; the answer is cached until a file changes.

    An I/O error ends the search and is not cached: a good image must not count as broken because a disk, a network or
    the number of open files failed once.
    """
    kind = kind_of(x)
    if kind.fingerprint is None or kind.names is None:
        return []
    path = cache_folder() / "checked" / f"{kind.fingerprint(x)[:32]}.json"
    try:
        return [(str(name), str(problem)) for name, problem in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError):
        pass
    problems = examine(x, PIXELS, progress).problems
    names = kind.names(x, np.array(list(problems), np.int64))
    found = list(zip(names, problems.values(), strict=True))
    write_atomically(path, lambda file: file.write_text(json.dumps(found), encoding="utf-8"))
    return found
