"""The cache folder, for what can be recomputed: folder listings, decoded images, embeddings."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from crosstail.storage import replacing


def cache_folder() -> Path:
    """$CROSSTAIL_CACHE, or crosstail/ in the user's cache folder."""
    if own := os.environ.get("CROSSTAIL_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "crosstail"


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Write a cache file atomically; on a full or read-only disk, do without it."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            write(partial)
