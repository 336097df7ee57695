"""Downloading and unpacking all files of a data sheet."""

from collections.abc import Callable
from pathlib import Path

from crosstail.data.benchmarks._download import BytesProgress, download
from crosstail.data.benchmarks._sheet import DataSheet
from crosstail.data.benchmarks._unpack import unpack


def fetch(sheet: DataSheet, root: Path, *, say: Callable[[str], None], progress: BytesProgress | None = None) -> None:
    """Download missing files and unpack archives, each once; one put into the root by hand counts as downloaded."""
    for archive in sheet.archives:
        mark = root / f".{archive.file}.unpacked"
        present = (root / archive.file).exists()
        if archive.optional and not present:
            continue
        if mark.exists():
            say(f"{archive.file}: already unpacked")
            continue
        path = download(archive, root, progress=progress)
        verified = f"{archive.checksum[0]} is right" if archive.checksum else "not verified: its checksum is unknown"
        say(f"{archive.file}: {'already there' if present else 'downloaded'}, {verified}")
        if archive.is_packed:
            unpack(path, root)
            mark.touch()
            say(f"{archive.file}: unpacked; it may be deleted")
