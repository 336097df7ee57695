"""Small files that are there whole or not at all, and folders of which one mover gets hold."""

import errno
import json
import os
from pathlib import Path
from typing import Any


def write_whole(path: Path, text: str) -> None:
    """Write beside the place, then move there: a reader sees the old content or all of the new."""
    partial = path.with_name(f".{path.name}.{token()}.part")
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_object(path: Path, record: dict[str, Any]) -> None:
    """Write a JSON object."""
    write_whole(path, json.dumps(record, indent=1) + "\n")


def read_object(path: Path) -> dict[str, Any] | None:
    """A JSON object, or None where there is no such file or no such thing in it."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def move(folder: Path, to: Path) -> bool:
    """Move a folder to a name that is not in use; False if somebody else was first."""
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.rename(to)
    except FileNotFoundError:
        # Over a network, a move whose answer was lost is tried again, and then finds nothing to move.
        return to.exists()
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def names(folder: Path) -> list[str]:
    """What is in a folder, sorted; nothing if there is no such folder."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries)
    except FileNotFoundError:
        return []


def token() -> str:
    """Eight digits that nobody else has."""
    return os.urandom(4).hex()
