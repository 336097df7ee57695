"""Unpacking zip and tar files without trusting what is in them."""

import gzip
import re
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Generator
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import IO

IGNORED = ("__MACOSX", ".DS_Store")
Member = tuple[str, IO[bytes]]


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a .zip or .tar file into a folder; nothing is left there of an archive that turns out to be bad.

    Members that would land outside, links and devices are refused with a ValueError.
    """
    members = _zip_members if zipfile.is_zipfile(archive) else _tar_members
    staging = folder / f".unpacking-{archive.name}"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        with closing(members(archive)) as found:
            for name, content in found:
                path = staging / _inside(archive, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("wb") as out:
                    shutil.copyfileobj(content, out, 1 << 20)
        _merge(staging, folder)
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error, RuntimeError) as error:
        raise ValueError(f"{archive}: is no zip or tar file, or is cut short ({error})") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _zip_members(archive: Path) -> Generator[Member, None, None]:
    with zipfile.ZipFile(archive) as file:
        for info in file.infolist():
            if stat.S_ISLNK(info.external_attr >> 16):
                raise ValueError(f"{archive}: {info.filename!r} is a link, refused")
            if not info.is_dir() and not _is_ignored(info.filename):
                with file.open(info) as content:
                    yield info.filename, content


def _tar_members(archive: Path) -> Generator[Member, None, None]:
    with tarfile.open(archive) as file:
        for info in file:
            if not (info.isfile() or info.isdir()):
                raise ValueError(f"{archive}: {info.name!r} is a link or a device, refused")
            if info.isfile() and not _is_ignored(info.name):
                content = file.extractfile(info)
                assert content is not None
                with content:
                    yield info.name, content


def _inside(archive: Path, name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or re.match("[A-Za-z]:", name) or not path.parts:
        raise ValueError(f"{archive}: {name!r} would be unpacked outside of its folder, refused")
    return path


def _is_ignored(name: str) -> bool:
    """Whether a file is only there because the archive was made on a Mac."""
    parts = PurePosixPath(name).parts
    return any(part in IGNORED for part in parts) or (bool(parts) and parts[-1].startswith("._"))


def _merge(source: Path, target: Path) -> None:
    """Move everything in a folder into another one, over what is there."""
    for path in source.iterdir():
        to = target / path.name
        if path.is_dir() and to.is_dir():
            _merge(path, to)
        else:
            path.replace(to)
