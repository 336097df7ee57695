"""The command line that repeats a run, derived from the fields of its spec."""

import shlex
from collections.abc import Container, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from crosstail.training import RunSpec

SPELLED = {"hparams": "--hp", "columns": "--column"}
NEGATIVE = {"freeze": "--finetune", "augment": "--no-augment"}


def command(spec: RunSpec, out: Path) -> str:
    """The command line of a run, with everything that a default might decide otherwise.

    >>> command(RunSpec(dataset="my photos", algorithm="boda", hparams={"lr": 0.01}), Path("run"))[:66]
    "crosstail fit 'my photos' --algorithm boda --protocol mdlt --data-"
    """
    words = ["crosstail", "fit", spec.dataset]
    for field in fields(spec):
        if field.name != "dataset":
            words += _option(field.name, getattr(spec, field.name))
    return shlex.join([*words, "--out", str(out)])


def options(spec: RunSpec, only: Container[str] | None = None) -> list[str]:
    """The options of a spec that differ from the defaults, or only those of some fields.

    >>> options(RunSpec(dataset="a", columns={"domain": "site"}, seed=3), only=("columns", "freeze"))
    ['--column', 'domain=site']
    """
    plain = RunSpec(dataset=spec.dataset)
    changed = [f.name for f in fields(spec) if getattr(spec, f.name) != getattr(plain, f.name)]
    return [word for name in changed if only is None or name in only for word in _option(name, getattr(spec, name))]


def _option(name: str, value: Any) -> Iterator[str]:
    option = SPELLED.get(name, f"--{name.replace('_', '-')}")
    if isinstance(value, bool):
        if value or name in NEGATIVE:
            yield option if value else NEGATIVE[name]
        return
    values = [f"{k}={v}" for k, v in value.items()] if isinstance(value, dict) else value
    for one in values if isinstance(values, list | tuple) else [] if value is None else [value]:
        text = str(one)
        yield from (f"{option}={text}",) if text.startswith("-") else (option, text)
