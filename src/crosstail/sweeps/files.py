"""Moving folders: of several processes that try, one succeeds."""

import errno
import os
from pathlib import Path


def move(folder: Path, to: Path) -> bool:
    """Move a folder to an unused path; False if another process was first."""
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.rename(to)
    except FileNotFoundError:
        return to.exists()  # a network file system may retry a move whose reply was lost
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def names(folder: Path) -> list[str]:
    """The names in a folder, sorted; none if the folder does not exist."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries)
    except FileNotFoundError:
        return []
