"""One bad input: how it is made, the command that meets it, and what the command made of it."""

import io
import os
import shlex
import signal
import traceback
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, chdir, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from crosstail import cli

HANDLED = "handled"
CLEAR = "clear error"
TRACEBACK = "traceback"
HANG = "hang"
UNNAMED = "error that does not name the file"
WRONG = "wrong result"
OUTCOMES = (HANDLED, CLEAR, TRACEBACK, HANG, UNNAMED, WRONG)
BAD = OUTCOMES[2:]

PATIENCE = 20  # how many times its processor time a command may take
LONGEST = 1000  # characters of an error: a user reads it, so it is not a dump of the input


class Hang(BaseException):
    """A command took longer than its limit."""


def _correct(out: str) -> str:
    """What is wrong with the output of a command that succeeded, if anything."""
    return "NaN or infinity" if any(word in out for word in ("NaN", "Infinity")) else ""


@dataclass(frozen=True)
class Case:
    """A command on a bad input."""

    what: str
    command: str
    names: tuple[str, ...]
    """An error has to contain one of these."""
    spoil: Callable[[Path], object]
    """Makes the bad input in a folder that has the good ones; the command is run there."""
    wrong: Callable[[str], str] = _correct
    during: Callable[[], AbstractContextManager[object]] = nullcontext
    """What is different in the process while the command runs, such as a file that vanishes."""
    limit: int = 20
    """Seconds of processor time."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case."""

    kind: str
    detail: str = ""


def run(case: Case, folder: Path) -> Outcome:
    """Spoil the input, run the command in this process, and judge how it ended."""
    case.spoil(folder)
    out, err = io.StringIO(), io.StringIO()
    try:
        with case.during():
            code = _run(shlex.split(case.command), folder, out, err, case.limit)
    except Hang:
        return Outcome(HANG, f"more than {case.limit} s of processor time, or {PATIENCE * case.limit} s in all")
    except Exception as error:
        places = [place for place in traceback.extract_tb(error.__traceback__) if "crosstail" in place.filename]
        place = f"{Path(places[-1].filename).name}:{places[-1].lineno}" if places else "?"
        return Outcome(TRACEBACK, f"{type(error).__name__} at {place}: {error}"[:300])
    message = err.getvalue().strip()
    if code == 0:
        wrong = case.wrong(out.getvalue())
        return Outcome(WRONG, wrong) if wrong else Outcome(HANDLED)
    if not any(name in message for name in case.names):
        return Outcome(UNNAMED, message[-300:])
    return Outcome(CLEAR, message) if len(message) < LONGEST else Outcome(WRONG, f"{len(message)} characters of error")


def _run(words: list[str], folder: Path, out: io.StringIO, err: io.StringIO, limit: int) -> int:
    """The exit code of a command."""

    def stop(*_: object) -> None:
        raise Hang

    before = {one: signal.signal(one, stop) for one in (signal.SIGPROF, signal.SIGALRM)}
    columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100000"  # messages are not wrapped, so that names are found in them
    signal.setitimer(signal.ITIMER_PROF, limit)  # of processor time: the machine may be busy with other things
    signal.alarm(PATIENCE * limit)  # in all, for what waits
    try:
        with chdir(folder), redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)  # NaN from somewhere
            cli.main(words)
    except SystemExit as ended:
        return int(ended.code or 0)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        for one, handler in before.items():
            signal.signal(one, handler)
        os.environ.pop("COLUMNS") if columns is None else os.environ.update(COLUMNS=columns)
    return 0
