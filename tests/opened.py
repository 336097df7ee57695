"""The files that are opened, by which a test sees what is read again."""

import sys
from contextlib import contextmanager
from pathlib import Path

_LISTS: list[list[Path]] = []


def _note(event, given):
    if event == "open" and isinstance(given[0], str):
        for found in _LISTS:
            found.append(Path(given[0]))


sys.addaudithook(_note)  # once, because it cannot be removed


@contextmanager
def opened():
    """A list of the files that Python opens in this context, in their order."""
    found: list[Path] = []
    _LISTS.append(found)
    try:
        yield found
    finally:
        _LISTS.remove(found)
