"""Folders that are moved: of several processes that try, one succeeds."""

import errno
import os
from pathlib import Path


def move(folder: Path, to: Path) -> bool:
    """Move a folder to an unused name; False if another process was first."""
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.rename(to)
    except FileNotFoundError:
        # A network file system retries a move whose reply was lost, and then finds nothing to move.
        return to.exists()
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def names(folder: Path) -> list[str]:
    """The names in a folder, sorted; none if there is no such folder."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries)
    except FileNotFoundError:
        return []


def token() -> str:
    """Eight random hexadecimal digits."""
    return os.urandom(4).hex()
