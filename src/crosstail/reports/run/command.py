"""The command line that repeats a run, derived from the fields of its spec."""

import shlex
from collections.abc import Container, Iterator
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

from crosstail.data import DataSpec, DomainDataset, as_inputs
from crosstail.data.spec import READ
from crosstail.prediction.critical import Recalls, critical_words
from crosstail.prediction.export import SUFFIXES
from crosstail.training import RunSpec

SPELLED = {"hparams": "--hp", "columns": "--column"}
NEGATIVE = {"augment": "--no-augment"}


def command(spec: RunSpec, out: Path, critical: Recalls | None = None) -> str:
    """The command line of a run, with every option whose default may change.

    >>> command(RunSpec(dataset="my photos", algorithm="boda", hparams={"lr": 0.01}), Path("run"))[:66]
    "crosstail fit 'my photos' --algorithm boda --protocol mdlt --data-"
    """
    options = words(**{field.name: getattr(spec, field.name) for field in fields(spec) if field.name != "dataset"})
    return shlex.join(
        ["crosstail", "fit", spec.dataset, *options, *words(critical=critical_words(critical or {})), "--out", str(out)]
    )


def short_command(verb: str, spec: RunSpec, out: str, *flags: str) -> str:
    """A command on the same data with another verb or protocol; a `fit` also has the method, the rest is the default.

    >>> short_command("fit", RunSpec(dataset="a.csv", algorithm="boda", columns={"domain": "site"}), "run", "--refit")
    'crosstail fit a.csv --algorithm boda --column domain=site --refit --out run'
    """
    named = [*READ, "labels", *["data_seed"] * (spec.data_seed != RunSpec.data_seed)]
    if verb == "fit":
        named = [
            "algorithm",
            "second_stage",
            *["protocol"] * (spec.protocol != RunSpec.protocol),
            "folds",
            *["tune"] * (spec.stages > 0),
            *named,
        ]
    options = words(**{name: getattr(spec, name) for name in named})
    return shlex.join(["crosstail", verb, spec.dataset, *options, *flags, "--out", out])


def words(**options: Any) -> list[str]:
    """Options with their values, by their names in Python.

    >>> words(group_by="patient", skip_broken=True, columns={"domain": "site"})
    ['--group-by', 'patient', '--skip-broken', '--column', 'domain=site']
    """
    return [word for name, value in options.items() for word in _option(name, value)]


def options(spec: DataSpec, only: Container[str] | None = None) -> list[str]:
    """The options of a spec that differ from the defaults, or `only` some of these.

    >>> options(RunSpec(dataset="a", columns={"domain": "site"}, seed=3), only=("columns", "tune"))
    ['--column', 'domain=site']
    """
    plain = type(spec)(dataset=spec.dataset)
    changed = [f.name for f in fields(spec) if getattr(spec, f.name) != getattr(plain, f.name)]
    return words(**{name: getattr(spec, name) for name in changed if only is None or name in only})


def inputs_of(spec: DataSpec, dataset: DomainDataset) -> list[str]:
    """Labelled data as `predict` reads them, or one of their images; empty if there is none."""
    if found := as_inputs(spec.dataset, spec.columns):
        return [*found, *["--skip-broken"] * spec.skip_broken]
    root = dataset.kind.root(dataset.x)
    files = () if root is None else (root / name for name in dataset.names())
    return [str(file) for file in islice((file for file in files if file.is_file()), 1)]  # they may be in other files


def export_words(run: Path, out: Path) -> list[str]:
    """The words of an `export` to a file, whose suffix says in which format."""
    return ["export", str(run), *["--format", "torch"] * (out.suffix == SUFFIXES["torch"]), "--out", str(out)]


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
