"""The command line: one file per verb, imported when that verb is used."""

import signal
import sys
import threading
from collections.abc import Sequence
from itertools import pairwise
from typing import NoReturn, get_args

from cyclopts import App, CycloptsError, Parameter
from cyclopts.exceptions import (
    CoercionError,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)
from rich.console import Console
from rich.text import Text

from crosstail import __version__, discovery

LONGEST = 900  # characters of an error
VERBS = (
    *("demo", "audit", "data", "fit", "embed", "evaluate", "predict", "label", "compare", "graph", "export"),
    *("sweep", "reproduce", "race", "status", "select", "report", "list", "new"),
)
_PLACES = {"list": "list_:list_", "sweep": "sweep:app"}  # where the file's function is not named after its verb
_RESUMED = {
    "demo": "",
    "fit": "",
    "embed": "",
    "sweep": "",
    "reproduce": "",
    "race": "",
    "predict": "--out",
    "data": "--download",
}
"""The verbs that resume after a stop, with the option that some of them need for it."""


def _shown(default: object) -> object:
    """Hide the default of a flag that is off and of an option that is empty."""
    return None if default is False or default in ({}, ()) else default


app = App(
    name="crosstail",
    help="Classifiers for data from several domains, each with its own long tail of classes.",
    help_format="markdown",
    version=__version__,
    version_flags=["--version"],
    suppress_keyboard_interrupt=False,
    result_action="return_value",
    default_parameter=Parameter(negative=(), show_default=_shown, allow_repeating=True),  # the last one counts
)
for _order, _verb in enumerate(VERBS):
    _place = _PLACES.get(_verb, f"{_verb}:{_verb}")
    app.command(f"crosstail.cli.{_place}", name=_verb, sort_key=_order)  # imported on use


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line: exit code 0 on success, 1 on a failed job, Ctrl-C or SIGTERM, 2 on wrong input."""
    words = sys.argv[1:] if argv is None else list(argv)
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if words[:1] in ([], ["--help"], ["-h"]):
            app.resolved_commands()  # the overview shows the first line of every verb's help
        _run(words)
    except CycloptsError as error:
        _fail(2, _message(error, words))
    except (ValueError, FileNotFoundError) as error:
        if place := discovery.own_place(error):
            _fail(2, f"{place}: {error}")
        missing = getattr(error, "filename", None)  # the error comes from the system
        _fail(2, f"{missing}: no such file or folder" if missing else str(error))
    except MemoryError as error:
        _fail(1, str(error) or "out of memory")
    except OSError as error:
        _fail(1, f"{error.strerror or error}: {error.filename or ''}".rstrip(": "), soft_wrap=True)
    except KeyboardInterrupt:
        _fail(1, ": run the same command again to resume" if _resumes(words) else "", "stopped")
    except Exception as error:
        if isinstance(error, RuntimeError):
            from crosstail.training.loop import Diverged  # here, because importing torch takes seconds

            if isinstance(error, Diverged):
                _fail(1, str(error))
        if not (place := discovery.own_place(error)):
            raise
        _fail(2, f"{place}: {type(error).__name__}: {' '.join(str(error).split())}")
    if not words:  # the help was shown
        sys.exit(2)


def _run(words: Sequence[str]) -> None:
    """Run a command; choices match whatever their case."""
    try:
        app(words, console=Console(), print_error=False, exit_on_error=False)  # as wide as the terminal is now
    except CoercionError as error:
        typed = error.token.value if error.token else ""
        spelled = discovery.same_name(typed, [str(choice) for choice in get_args(error.target_type)])
        if spelled in (None, typed):
            raise
        _run([f"{word.removesuffix(typed)}{spelled}" if f"={word}".endswith(f"={typed}") else word for word in words])


def _resumes(words: Sequence[str]) -> bool:
    """Whether repeating a stopped command resumes it."""
    option = _RESUMED.get(words[0]) if words else None
    return option is not None and any(word.startswith(option) for word in words)


def _message(error: CycloptsError, words: Sequence[str]) -> str:
    """What is wrong with a command line, in one sentence that names the option."""
    if isinstance(error, UnknownCommandError):
        return f"unknown command {words[0]!r}: {discovery.suggestion(words[0], list(VERBS))}"
    verb = " ".join(["crosstail", *(error.command_chain or ())])
    if isinstance(error, UnknownOptionError):
        option, _, value = error.token.value.partition("=")
        if option in ("--data", "--dataset", "--source"):
            typed = value or "".join(words[words.index(option) + 1 :][:1])
            return f"DATA comes first, without {option}: {verb} {typed}"
    if isinstance(error, UnusedCliTokensError):
        return f"unexpected argument {(error.unused_tokens or words)[0]!r}; see {verb} --help"
    if isinstance(error, MissingArgumentError):
        assert error.argument is not None
        name = error.keyword or error.argument.name
        given = any(word.partition("=")[0] == name for word in words)
        plan = "".join(f", also in {word}" for option, word in pairwise(words) if option == "--plan")
        return f"{name} needs a value" if given else f"{name} is missing{plan}; see {verb} --help"
    text = str(error)
    return text[:1].lower() + text[1:]


def _fail(code: int, text: str, label: str = "error: ", soft_wrap: bool = False) -> NoReturn:
    if len(text) > LONGEST:  # a cell of a table or a name may have megabytes
        text = f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"
    Console(stderr=True).print(Text.assemble((label, "bold red"), text), soft_wrap=soft_wrap)
    sys.exit(code)
