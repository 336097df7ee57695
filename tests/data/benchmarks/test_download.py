"""Downloads: resumed, verified, with fallback to the next mirror; servers are local."""

import hashlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from crosstail.data.benchmarks import _download
from crosstail.data.benchmarks._download import DownloadError, download, verify
from crosstail.data.benchmarks._sheet import Archive

CONTENT = np.random.default_rng(0).bytes(3 * _download.CHUNK + 17)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
MD5 = hashlib.md5(CONTENT).hexdigest()


@dataclass
class Server:
    """What the server does, and what it was asked for."""

    url: str = ""
    content: bytes = CONTENT
    knows_ranges: bool = True
    kind: str = "application/zip"
    breaks_after: list[int] = field(default_factory=list)  # bytes of the next answers, after which it hangs up
    answers: list[int] = field(default_factory=list)  # codes of the next answers, instead of the file
    says_length: bool = True
    asked: list[str | None] = field(default_factory=list)  # the Range of each request
    stalls_after: int = 0  # sends that many bytes and waits
    go_on: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers["Range"]
            state.asked.append(wanted)
            if state.answers:
                self.send_error(state.answers.pop(0))
                return
            first = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and state.knows_ranges else 0
            total = len(state.content)
            if first >= total:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{total}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206 if first else 200)
            if first:
                self.send_header("Content-Range", f"bytes {first}-{total - 1}/{total}")
            if state.says_length:
                self.send_header("Content-Length", str(total - first))
            self.send_header("Content-Type", state.kind)
            self.end_headers()
            last = first + state.breaks_after.pop(0) if state.breaks_after else total
            if state.stalls_after:
                self.wfile.write(state.content[first : first + state.stalls_after])
                state.go_on.wait(30)
                return
            self.wfile.write(state.content[first:last])

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        state.url = f"http://127.0.0.1:{running.server_port}/set.zip"
        yield state
        state.go_on.set()
        running.shutdown()
        thread.join(5)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def archive(*mirrors: str, **known) -> Archive:
    return Archive(file="set.zip", mirrors=mirrors, **known)


def get(wanted: Archive, folder, **options):
    return download(wanted, folder, timeout=5, pause=0, **options)


@pytest.mark.parametrize("known", [{}, {"size": len(CONTENT)}, {"sha256": SHA256}, {"md5": MD5}])
def test_whole_file(server, tmp_path, known):
    seen = []
    path = get(archive(server.url, **known), tmp_path / "new", progress=lambda *now: seen.append(now))
    assert path == tmp_path / "new" / "set.zip" and path.read_bytes() == CONTENT
    assert [file.name for file in path.parent.iterdir()] == ["set.zip"]
    assert seen[-1] == ("set.zip", len(CONTENT), len(CONTENT)) and len(seen) > 3


def test_file_that_is_there_is_not_fetched_again(server, tmp_path):
    (tmp_path / "set.zip").write_bytes(CONTENT)
    get(archive(server.url, sha256=SHA256), tmp_path)
    assert server.asked == []


def test_wrong_file_that_is_there_is_named_and_kept(server, tmp_path):
    (tmp_path / "set.zip").write_bytes(b"mine")
    with pytest.raises(DownloadError, match=r"set\.zip: has 4 bytes, expected 786,449; delete it and start again"):
        get(archive(server.url, size=len(CONTENT)), tmp_path)
    assert (tmp_path / "set.zip").read_bytes() == b"mine"


@pytest.mark.parametrize("known", [{}, {"sha256": SHA256, "size": len(CONTENT)}])
@pytest.mark.parametrize(
    ("habits", "asked"),
    [
        ({"breaks_after": [300_000, 200_000]}, [None, "bytes=300000-", "bytes=500000-"]),
        ({"breaks_after": [300_000], "knows_ranges": False}, [None, "bytes=300000-"]),
        ({"says_length": False}, [None]),
        ({"answers": [503, 429]}, [None, None, None]),  # busy
        ({"answers": [404]}, [None, None]),  # from the next mirror
    ],
)
def test_a_difficult_server(server, tmp_path, known, habits, asked):
    vars(server).update(deepcopy(habits))
    found = get(archive(server.url, server.url + "?copy", **known), tmp_path)
    assert found.read_bytes() == CONTENT and server.asked == asked


def test_next_mirror_goes_on_with_the_part_of_the_first(server, tmp_path):
    server.breaks_after = [100_000]
    first, second = server.url, server.url + "?copy"
    assert get(archive(first, second, sha256=SHA256), tmp_path, attempts=1).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=100000-"]


@pytest.mark.parametrize("known", [{}, {"sha256": SHA256}])
def test_a_later_call_goes_on(server, tmp_path, known):
    server.breaks_after = [100_000, 0, 0]
    with pytest.raises(DownloadError) as error:
        get(archive(server.url, **known), tmp_path)
    assert "100,000 bytes are kept in set.zip.part" in str(error.value)
    assert str(tmp_path) in str(error.value)
    assert get(archive(server.url, **known), tmp_path).read_bytes() == CONTENT
    assert server.asked[-1] == "bytes=100000-" and not list(tmp_path.glob("*.part*"))


KILLED = """
import sys
from pathlib import Path
from crosstail.data.benchmarks._download import download
from crosstail.data.benchmarks._sheet import Archive
download(Archive(file="set.zip", mirrors=(sys.argv[1],), sha256=sys.argv[2]), Path(sys.argv[3]), timeout=30)
"""


def test_process_that_was_killed_midway_goes_on(server, tmp_path):
    server.stalls_after = 2 * _download.CHUNK
    part = tmp_path / "set.zip.part"
    with subprocess.Popen([sys.executable, "-c", KILLED, server.url, SHA256, str(tmp_path)]) as process:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (part.exists() and part.stat().st_size):
            time.sleep(0.02)
        process.kill()
    server.stalls_after = 0
    have = part.stat().st_size
    assert process.returncode == -signal.SIGKILL and 0 < have < len(CONTENT)
    assert get(archive(server.url, sha256=SHA256), tmp_path).read_bytes() == CONTENT
    assert server.asked == [None, f"bytes={have}-"]


def test_part_that_is_already_whole(server, tmp_path):
    for name, known in (("one", {}), ("other", {"size": len(CONTENT)})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "set.zip.part").write_bytes(CONTENT)
        assert get(archive(server.url, sha256=SHA256, **known), tmp_path / name).read_bytes() == CONTENT


def test_part_of_another_file_is_not_gone_on_with(server, tmp_path):
    """Where a checksum is known it tells; where none is known, only a part from the same address is used."""
    (tmp_path / "set.zip.part").write_bytes(b"x" * 1000)
    assert get(archive(server.url), tmp_path).read_bytes() == CONTENT
    assert server.asked == [None]
    for name, size in (("known", 1000), ("long", len(CONTENT) + 1)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "set.zip.part").write_bytes(b"x" * size)
        assert get(archive(server.url, sha256=SHA256), tmp_path / name).read_bytes() == CONTENT


def test_wrong_checksum(server, tmp_path):
    with pytest.raises(DownloadError) as error:
        get(archive(server.url, sha256="0" * 64), tmp_path)
    assert f"has the sha256 {SHA256}, expected {'0' * 64}" in str(error.value)
    assert server.url in str(error.value) and not list(tmp_path.iterdir())
    assert len(server.asked) == 1  # the same bytes would come again


@pytest.mark.parametrize(
    ("habits", "known", "message"),
    [
        ({}, {"size": 5}, "has 786,449 bytes, expected 5"),  # which is seen before it is fetched
        ({"kind": "text/html; charset=utf-8"}, {}, "answered with a web page instead of the file"),
    ],
)
def test_what_is_not_the_file_leaves_nothing(server, tmp_path, habits, known, message):
    vars(server).update(deepcopy(habits))
    with pytest.raises(DownloadError, match=message):
        get(archive(server.url, **known), tmp_path)
    assert not list(tmp_path.iterdir())


def test_all_mirrors_fail(server, tmp_path):
    server.answers = [403, 404]
    with pytest.raises(DownloadError) as error:
        get(archive(server.url, server.url + "?copy", "ftp://example.invalid/set.zip"), tmp_path)
    message = str(error.value)
    assert "answered 403 Forbidden" in message and "answered 404 Not Found" in message
    assert "is neither http nor https" in message
    with pytest.raises(DownloadError, match=r"set\.zip"):
        get(archive(), tmp_path)


def test_nobody_listens(tmp_path):
    start = time.monotonic()
    with pytest.raises(DownloadError, match=r"broke off \(.*refused.*\), 3 attempts"):
        get(archive("http://127.0.0.1:9/set.zip"), tmp_path)
    assert time.monotonic() - start < 5


def test_full_disk_is_not_the_mirrors_fault(server, tmp_path):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left on device"):
        get(archive(server.url), tmp_path, progress=full)
    assert len(server.asked) == 1


def test_verify_compares_what_is_known(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    assert verify(archive(), path) == ""
    assert verify(archive(size=4), path) == "has 3 bytes, expected 4"
    assert verify(archive(md5="900150983cd24fb0d6963f7d28e17f72"), path) == ""
    assert verify(archive(md5="0" * 32), path).startswith("has the md5 9001")


def test_google_drive_is_asked_where_no_confirmation_is_needed(tmp_path, monkeypatch):
    asked = []

    def urlopen(request, timeout):
        asked.append(request.full_url)
        raise ConnectionResetError

    monkeypatch.setattr(_download, "urlopen", urlopen)
    with pytest.raises(DownloadError):
        get(archive("https://drive.google.com/uc?id=abc"), tmp_path, attempts=1)
    assert asked == ["https://drive.usercontent.google.com/download?id=abc&export=download&confirm=t"]
