"""Downloading a file from several mirrors: resumable and verified."""

import errno
import hashlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from crosstail.data.benchmarks._sheet import Archive

BytesProgress = Callable[[str, int, int], None]  # file, bytes done, bytes in total as far as is known
CHUNK = 1 << 18
# HTTP errors that are worth a retry; any other one rules the mirror out.
TRANSIENT = (408, 425, 429, 500, 502, 503, 504)
_DRIVE = re.compile(r"^https://drive\.google\.com/uc\?(id=[\w-]+(?:&resourcekey=[\w-]+)?)$")


class DownloadError(OSError):
    """A file that could not be downloaded; the message names every mirror tried and its answer."""


class _MirrorError(Exception):
    """A mirror that cannot be used, and why."""


def download(
    archive: Archive,
    folder: Path,
    *,
    progress: BytesProgress | None = None,
    attempts: int = 3,
    timeout: float = 30,
    pause: float = 2,
) -> Path:
    """Download a file and verify it: each mirror in turn, up to `attempts` times, resuming an unfinished `.part`."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / archive.file
    if target.is_file():
        if wrong := verify(archive, target):
            raise DownloadError(f"{target}: {wrong}; delete it and start again")
        return target
    part = _Part(target.with_name(target.name + ".part"))
    failures = []
    for url in archive.mirrors:
        try:
            _from_mirror(archive, url, part, progress, attempts, timeout, pause)
            part.path.replace(target)
            part.discard()
            return target
        except _MirrorError as error:
            failures.append(f"  {url}\n    {error}")
    tried = "\n".join(failures) or "  no mirror is known"
    raise DownloadError(f"{archive.file} could not be downloaded:\n{tried}\nDownload it by hand into {folder}.")


def verify(archive: Archive, path: Path) -> str:
    """What is wrong with a file, or ""; a size or checksum that the data sheet lacks is not checked."""
    size = path.stat().st_size
    if archive.size is not None and size != archive.size:
        return f"has {size:,} bytes, expected {archive.size:,}"
    if archive.checksum:
        kind, expected = archive.checksum
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, kind).hexdigest()
        if found != expected:
            return f"has the {kind} {found}, expected {expected}"
    return ""


@dataclass(frozen=True)
class _Part:
    """An unfinished download, and a note of the mirror that it comes from."""

    path: Path

    @property
    def origin(self) -> Path:
        return self.path.with_name(self.path.name + ".from")

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self.origin.unlink(missing_ok=True)


def _from_mirror(
    archive: Archive, url: str, part: _Part, progress: BytesProgress | None, attempts: int, timeout: float, pause: float
) -> None:
    # Without a checksum nothing would reveal that the two halves come from different files.
    if not archive.checksum and not (part.origin.exists() and part.origin.read_text() == url):
        part.discard()
    resumed = part.path.exists()
    for attempt in range(attempts):
        if attempt:
            time.sleep(pause * 2 ** (attempt - 1))
        try:
            _receive(archive, url, part, progress, timeout)
        except HTTPError as error:
            error.close()
            problem = f"answered {error.code} {error.reason}"
            if error.code not in TRANSIENT:
                raise _MirrorError(problem) from None
        except (HTTPException, OSError) as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES):
                raise  # a problem of this machine, not of the mirror
            problem = f"broke off ({getattr(error, 'reason', None) or error or type(error).__name__})"
        else:
            wrong = verify(archive, part.path)
            if not wrong:
                return
            part.discard()
            problem = f"the downloaded file {wrong}"
            if not resumed:
                raise _MirrorError(problem)
            resumed = False  # the part of an earlier call may have been wrong: start over once
    kept = f"; {part.size:,} bytes are kept in {part.path.name}" if part.path.exists() else ""
    raise _MirrorError(f"{problem}, {attempts} attempts{kept}")


def _receive(archive: Archive, url: str, part: _Part, progress: BytesProgress | None, timeout: float) -> None:
    if not url.startswith(("https://", "http://")):
        raise _MirrorError("is neither http nor https")
    have = part.size
    if have and have == archive.size:
        return
    headers = {"User-Agent": "crosstail", "Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    # Google Drive asks to confirm the download of a large file, except at this address.
    direct = _DRIVE.sub(r"https://drive.usercontent.google.com/download?\1&export=download&confirm=t", url)
    try:
        response: HTTPResponse = urlopen(Request(direct, headers=headers), timeout=timeout)
    except HTTPError as error:
        if error.code != 416:
            raise
        error.close()  # nothing follows our bytes: they are the whole file, or part of another one
        if error.headers["Content-Range"] == f"bytes */{have}":
            return
        part.discard()
        raise ConnectionError(f"has fewer than {have:,} bytes") from None
    with response:
        if response.status != 206:
            have = 0  # a server without range support sends the whole file
        elif not (response.headers["Content-Range"] or "").startswith(f"bytes {have}-"):
            raise _MirrorError(f"was asked for the bytes from {have:,} and sent others")
        if response.headers.get_content_type() == "text/html":
            raise _MirrorError("answered with a web page instead of the file (a quota or a login, perhaps)")
        length = response.headers["Content-Length"] or ""
        total = have + int(length) if length.isdecimal() else None
        if total is not None and archive.size not in (None, total):
            raise _MirrorError(f"has {total:,} bytes, expected {archive.size:,}")
        part.origin.write_text(url)
        with part.path.open("ab" if have else "wb") as stream:
            while chunk := response.read(CHUNK):
                stream.write(chunk)
                have += len(chunk)
                if progress:
                    progress(archive.file, have, archive.size or total or have)
    if total is not None and have < total:
        raise ConnectionError(f"after {have:,} of {total:,} bytes")
