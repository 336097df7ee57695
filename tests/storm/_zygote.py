"""A process that has imported what commands need, and forks one that runs a command whenever it is asked to.

A line of standard input is a request in JSON: a command to start, or a process to wait for. The answer, a line too, is
its process id, or its exit code, negative for a signal.
"""

import json
import os
import signal
import sys
import time

import vl_convert  # noqa: F401

import crosstail.prediction.export
import crosstail.reports.compare.page
import crosstail.reports.run.page
import crosstail.training.embedding
import crosstail.training.fit  # noqa: F401
from crosstail import cli

CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.link", "os.truncate")


def die_before(change: int) -> None:
    """Kill this process just before its n-th change of a file; opening one for writing is a change."""
    made = 0

    def count(event: str, given: tuple[object, ...]) -> None:
        nonlocal made
        writes = event == "open" and isinstance(given[2], int) and given[2] & (os.O_WRONLY | os.O_RDWR)
        if (writes or event in CHANGES) and str(given[0]) != os.devnull:
            made += 1
            if made == change:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def start(words: list[str], place: str, environment: dict[str, str], change: int | None = None) -> int:
    """Fork a process, the first of its session, that runs a command in a folder and writes to output.txt there."""
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(place)
    os.environ.update(environment)
    output = os.open(f"{place}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1), os.dup2(output, 2), os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    code = 0
    if change is not None:
        die_before(change)
    try:
        cli.main(words)
    except SystemExit as error:
        code = int(error.code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 70
    sys.stdout.flush(), sys.stderr.flush()
    os._exit(code)


def wait(pid: int, seconds: float) -> int:
    """The exit code of a process; one that takes too long is killed, with the exit code of `timeout`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return 124


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        answer = start(**request) if "words" in request else wait(request["wait"], request["seconds"])
        print(answer, flush=True)
