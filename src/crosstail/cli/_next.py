"""The command that follows another, complete and ready to paste."""

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from crosstail.workflows._output import unused_path


def pasted(verb: str, *words: Any) -> str:
    """A command of ours, quoted for the shell."""
    return shlex.join(["crosstail", verb, *(str(word) for word in words)])


def say_all(console: Console, label: str, lines: Iterable[str], *, wrap: bool = False) -> None:
    """Print lines of one kind, such as notes; without `wrap`, a path stays whole."""
    for line in lines:
        console.print(f"{label}: {line}", markup=False, highlight=False, soft_wrap=not wrap)


def say_predict(console: Console, run: Path, inputs: Sequence[str]) -> None:
    """Print the command that classifies files, or, without any, the one that exports the model."""
    from crosstail.prediction.export import suggested_suffix
    from crosstail.reports.run.command import export_words

    if not inputs:
        say_next(console, *export_words(run, unused_path(f"model{suggested_suffix()}")))
        return
    console.print("Classify new files: name yours in the place of these.")
    say_next(console, "predict", run, *inputs, "--out", unused_path("classes.csv"))


def say_next(console: Console, verb: str, *words: Any) -> None:
    """Print the command that follows."""
    console.print(f"Next: {pasted(verb, *words)}", markup=False, highlight=False, soft_wrap=True)
