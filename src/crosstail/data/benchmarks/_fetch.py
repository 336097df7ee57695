"""All files of a data sheet, fetched and unpacked into one root."""

from collections.abc import Callable
from pathlib import Path

from crosstail.data.benchmarks._download import Progress, download
from crosstail.data.benchmarks._sheet import DataSheet
from crosstail.data.benchmarks._unpack import unpack

Say = Callable[[str], None]


def fetch(sheet: DataSheet, root: Path, *, progress: Progress | None = None, say: Say = lambda text: None) -> None:
    """Fetch what is missing and unpack what is packed; a second call goes on where the first one stopped.

    A file that was put into the root by hand is taken as if it had been fetched. An unpacked archive leaves
    `.NAME.unpacked` behind and may be deleted.
    """
    for archive in sheet.archives:
        mark = root / f".{archive.file}.unpacked"
        present = (root / archive.file).exists()
        if archive.optional and not present:
            continue
        if mark.exists():
            say(f"{archive.file}: unpacked before")
            continue
        path = download(archive, root, progress=progress)
        say(f"{archive.file}: {'was there' if present else 'fetched'}, {_how_sure(archive.checksum)}")
        if archive.is_packed:
            unpack(path, root)
            mark.touch()
            say(f"{archive.file}: unpacked; it may be deleted")


def _how_sure(checksum: tuple[str, str] | None) -> str:
    return f"{checksum[0]} is right" if checksum else "its checksum is unknown, so it was not verified"
