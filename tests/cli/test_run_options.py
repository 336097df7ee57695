"""The options of a run are the fields of RunSpec: in the help, in a plan, and in the command that repeats a run."""

import importlib
import re
import shlex
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crosstail
from crosstail import cli, metrics
from crosstail.reports.compare import read_runs as read_runs_module
from crosstail.reports.compare.read_runs import ReportRow
from crosstail.reports.run.command import command
from crosstail.sweeps.plan import Plan
from crosstail.training import spec as spec_module
from crosstail.training.spec import OPTIMIZERS, RunSpec
from crosstail.workflows.race import next_command

WORD = st.text(st.characters(codec="utf-8", exclude_categories=("C",)), min_size=1, max_size=8)
NAME = WORD.filter(lambda text: "=" not in text)
COUNT = st.integers(1, 10**6)
SEED = st.integers(0, 2**63 - 1)
FIELDS: dict[str, Any] = {
    "dataset": WORD.filter(lambda text: not text.startswith("-")),
    "algorithm": WORD,
    "second_stage": st.none() | WORD,
    "average": st.none() | st.sampled_from(["moving", "uniform", "swad"]),
    "protocol": st.sampled_from(["mdlt", "dg"]),
    "unseen": st.none() | WORD,
    "left_out": st.none() | WORD,
    "folds": st.none() | st.integers(9, 99),
    "fold": st.none() | st.integers(1, 9),
    "stop_at": st.none() | st.lists(COUNT, min_size=1, max_size=2).map(tuple),
    "labels": st.none() | st.lists(WORD, min_size=1, max_size=3).map(tuple),
    "columns": st.dictionaries(NAME, WORD, max_size=2),
    "group_by": st.none() | WORD,
    "skip_broken": st.booleans(),
    "names": st.none() | st.sampled_from(["merge", "keep"]),
    "data_seed": SEED,
    "backbone": st.none() | WORD,
    "weights": st.none() | WORD,
    "resolution": st.none() | COUNT,
    "tune": st.none() | st.sampled_from(["none", "last", "last:3", "all"]),
    "tuned_share": st.none() | st.sampled_from([0.0, 0.25, 1.0]),
    "cache": st.sampled_from([None, "20GB", "500MB"]),
    "head": st.none() | st.sampled_from(["mlp", "linear"]),
    "views": st.integers(0, 9),
    "width": st.none() | COUNT,
    "augment": st.none() | st.booleans(),
    "hparams": st.dictionaries(NAME, WORD, max_size=2),
    "seed": SEED,
    "select_on": st.none() | st.sampled_from(metrics.criteria()),
    "steps": st.none() | COUNT,
    "batch_size": st.none() | COUNT,
    "optimizer": st.none() | st.sampled_from([*OPTIMIZERS]),
    "schedule": st.none() | st.sampled_from(["constant", "cosine", "linear"]),
    "warm_up": st.none() | st.integers(0, 9),
    "second_lr": st.none() | st.floats(1e-6, 9),
    "evaluations": COUNT,
    "precision": st.sampled_from(["32", "bf16"]),
    "trace": st.booleans(),
}


def consistent(fields: dict[str, Any]) -> RunSpec:
    """Without fields that others exclude."""
    if fields["stop_at"]:
        fields |= {"unseen": None, "fold": None, "average": fields["average"] and "uniform"}
    if fields["protocol"] == "dg" or not fields["folds"]:
        fields |= {"folds": None, "fold": None}
    if fields["left_out"] == fields["unseen"] or fields["unseen"] is None:
        fields |= {"left_out": None}
    return RunSpec(**fields)


SPECS = st.fixed_dictionaries(FIELDS).map(consistent)


def parsed(line: str) -> RunSpec:
    """The spec that a command line of fit describes, before data-dependent defaults."""
    _, bound, _ = cli.app.parse_args(shlex.split(line)[1:], exit_on_error=False, print_error=False)
    (dataset,) = bound.args
    return bound.kwargs["options"].spec(dataset=dataset) if "options" in bound.kwargs else RunSpec(dataset=dataset)


@settings(deadline=None, max_examples=50)  # parsing reads the help from the source, which takes 50 ms
@given(spec=SPECS)
def test_the_repeat_command_is_parsed_to_the_same_spec(spec):
    assert parsed(command(spec, Path("run"))) == spec


def test_every_field_is_varied():
    assert {f.name for f in fields(RunSpec)} == set(FIELDS)


@pytest.fixture
def wider(monkeypatch):
    """The command line with one more field in RunSpec."""

    @dataclass(frozen=True, kw_only=True)
    class WiderSpec(RunSpec):
        """A run with a temperature."""

        flavour: str = "plain"
        """How the batches taste."""

    monkeypatch.setattr(spec_module, "RunSpec", WiderSpec)
    for name in [name for name in sys.modules if name.startswith("crosstail.cli")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(crosstail, "cli", cli)  # importing sets it, and it must be as before afterwards
    monkeypatch.setattr(sys.modules[__name__], "cli", importlib.import_module("crosstail.cli"))
    yield WiderSpec
    for name in [name for name in sys.modules if name.startswith("crosstail.cli")]:
        del sys.modules[name]  # also verbs that had not been imported before


def test_a_new_field_is_one_line(wider, tmp_path, monkeypatch, capsys):
    """It has an option with help, a key in a plan, a part in the identity, and a place in commands and reports."""
    monkeypatch.setenv("COLUMNS", "80")
    for verb in ("fit", "sweep", "race"):
        cli.main([verb, "--help"])
        shown = capsys.readouterr().out
        assert "--flavour" in shown and "How the batches taste." in shown
    (tmp_path / "plan.toml").write_text('dataset = "d"\nalgorithm = "erm"\nout = "s"\nflavour = "sour"\n')
    _, bound, _ = cli.app.parse_args(["sweep", "--plan", str(tmp_path / "plan.toml")], exit_on_error=False)
    assert bound.kwargs["options"].flavour == "sour"
    spec = wider(dataset="d", flavour="sweet")
    assert [run.flavour for run in Plan(shared=spec, methods=("erm",)).runs("erm", {})] == ["sweet"]
    assert "--flavour sweet" in command(spec, Path("run")) and parsed(command(spec, Path("run"))) == spec
    assert "--flavour sweet" in next_command(spec, "erm", Path("race"))
    assert spec.key != wider(dataset="d").key


def test_a_new_field_tells_settings_apart_in_a_report(wider, tmp_path, monkeypatch):
    def read(folder: Path) -> ReportRow:
        spec = wider(dataset="d", algorithm="erm", flavour=folder.name)
        return ReportRow(folder, spec, *[None] * 10, data=SimpleNamespace(checksum="0", source=None))

    monkeypatch.setattr(read_runs_module, "read_result", read)
    for name in ("sour", "sweet"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "spec.json").touch()
    runs = read_runs_module.read_runs([tmp_path])
    assert runs.table["data"].tolist() == ["d, flavour sour", "d, flavour sweet"] and runs.skipped == ()


@pytest.mark.parametrize("verb", ["audit", "embed", "race"])
def test_a_verb_without_protocol_does_not_mention_dg_or_the_seed_of_a_run(verb, capsys):
    cli.main([verb, "--help"])
    shown = capsys.readouterr().out
    assert "--data-seed" in shown and "--protocol" not in shown
    assert re.search(r"\bdg\b|--seed\b", shown) is None


def test_a_plan_fills_in_what_was_not_typed(tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text(
        'dataset = "d"\nalgorithm = ["erm", "boda:retrain"]\nout = "s"\nbatch-size = 4\ntrials = 9\ntune = "all"\n'
        'labels = "uniform"\ntime_limit = 2.5\n[columns]\ndomain = "site"\n'
    )
    _, bound, _ = cli.app.parse_args(["sweep", "--plan", str(file), "--trials", "2"], exit_on_error=False)
    options = bound.kwargs["options"]
    assert bound.args == ("d",) and bound.kwargs["algorithm"] == ("erm", "boda:retrain")
    assert (bound.kwargs["trials"], bound.kwargs["time_limit"], options.batch_size) == (2, 2.5, 4)
    assert (options.tune, options.labels, options.columns) == ("all", ("uniform",), {"domain": "site"})
