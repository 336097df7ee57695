"""The cache folder, for what can be recomputed: folder listings, decoded images, embeddings."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def cache_folder() -> Path:
    """$CROSSTAIL_CACHE, or crosstail/ in the user's cache folder."""
    if "CROSSTAIL_CACHE" in os.environ:
        return Path(os.environ["CROSSTAIL_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "crosstail"


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Write a cache file atomically; on a full or read-only disk, do without it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(partial)
        partial.replace(path)
    except OSError:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
