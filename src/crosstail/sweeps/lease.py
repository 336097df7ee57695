"""The right to work on a run, with a heartbeat that needs no synchronised clocks."""

import os
import threading
from functools import cache
from itertools import count
from pathlib import Path

UNKNOWN = "?"  # the machine, on systems without /proc


class Lease:
    """A folder that this process works in: a file in it changes every few seconds as long as the process lives.

    A process that takes over moves the folder, so a previous holder that was merely suspended finds it gone and can
    no longer write to it. The file is named after the token of the folder: written before the move, it is valid from
    then on.
    """

    def __init__(self, folder: Path, beat: float) -> None:
        self.folder = folder
        self.lost = False
        self._file = sign_of(folder)
        self._beat = beat
        self._ended = threading.Event()
        for file in folder.glob("lease.*"):
            if file != self._file:  # of previous holders, and of processes that lost the race for it
                file.unlink(missing_ok=True)
        self._thread = threading.Thread(target=self._live, name="crosstail-lease", daemon=True)
        self._thread.start()

    def _live(self) -> None:
        for number in count(1):
            if self._ended.wait(self._beat):
                return
            try:
                with self._file.open("r+b", buffering=0) as file:  # never creates it
                    file.write(_text(number))
            except FileNotFoundError:
                self.lost = True
                return
            except OSError:
                continue  # the run itself reports disk errors

    def end(self) -> None:
        """Stop the signs of life; the file stays."""
        self._ended.set()
        self._thread.join()

    def give_back(self) -> None:
        """Release the folder to other processes."""
        self.end()
        self._file.unlink(missing_ok=True)


def sign_of(folder: Path) -> Path:
    """The file with the signs of life of a folder's holder."""
    return folder / f"lease.{folder.name.partition('.')[2]}"


def sign(folder: Path, token: str) -> None:
    """Write the first sign of life into a folder that is about to get this token."""
    (folder / f"lease.{token}").write_bytes(_text(0))


def is_dead(text: bytes) -> bool:
    """Whether a sign of life is from a process on this machine that has ended; False for other machines."""
    machine, process, start = (*text.decode(errors="replace").split(), "", "", "")[:3]
    return machine == _machine() != UNKNOWN and process.isdigit() and _start(int(process)) != start


def _text(number: int) -> bytes:
    return f"{_machine()} {os.getpid()} {_start(os.getpid())} {number:012d}\n".encode()


@cache
def _machine() -> str:
    """Identify the running system and its process table: a container on the same machine has its own."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return UNKNOWN


def _start(process: int) -> str:
    """Start time of a living process in clock ticks since boot; empty for a dead one."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
