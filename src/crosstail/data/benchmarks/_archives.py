"""The files of a data sheet, downloaded, verified and unpacked safely."""

import gzip
import os
import re
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from crosstail.data.benchmarks._download import BytesProgress, download
from crosstail.data.benchmarks._sheet import DataSheet

MAC_ONLY = ("__MACOSX", ".DS_Store")


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


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a .zip or .tar file; one with links, devices or paths that lead out is refused, and leaves nothing."""
    extract = _extract_zip if zipfile.is_zipfile(archive) else _extract_tar
    staging = folder / f".unpacking-{archive.name}"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        extract(archive, staging)
        shutil.copytree(staging, folder, copy_function=os.replace, dirs_exist_ok=True)
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error, RuntimeError) as error:
        raise ValueError(f"{archive}: is not a zip or tar file, or is truncated ({error})") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _extract_zip(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as file:
        for info in file.infolist():
            if stat.S_ISLNK(info.external_attr >> 16):
                raise ValueError(f"{archive}: {info.filename!r} is a link, refused")
            if not info.is_dir() and _is_wanted(archive, info.filename):
                file.extract(info, folder)


def _extract_tar(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as file:
        for info in file:
            if not (info.isfile() or info.isdir()):
                raise ValueError(f"{archive}: {info.name!r} is a link or a device, refused")
            if info.isfile() and _is_wanted(archive, info.name):
                file.extract(info, folder, filter="data")


def _is_wanted(archive: Path, name: str) -> bool:
    """Whether to unpack a member: not a file that only macOS uses. Paths that lead out of the folder are refused."""
    # Both libraries are safe, but by renaming some of these members, differently on each operating system.
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or re.match("[A-Za-z]:", name) or not path.parts:
        raise ValueError(f"{archive}: {name!r} would be unpacked outside its folder, refused")
    return not any(part in MAC_ONLY for part in path.parts) and not path.name.startswith("._")
