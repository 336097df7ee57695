"""A protocol is one file: found by its name, offered on the command line, and followed by runs, sweeps and pages."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from crosstail import cli
from crosstail.data import DataSpec, load_source, protocols
from crosstail.sweeps.plan import make
from crosstail.training import RunSpec

BY_DATE = '''
"""Train on the years before one, and test on that year."""

from dataclasses import replace

import numpy as np

from crosstail.data.protocols import Protocol


def parts(spec, source):
    return [replace(spec, unseen=year) for year in source.domains[1:]]


def split(dataset, spec):
    year = dataset.domains.index(spec.unseen)
    earlier = np.where(np.arange(len(dataset)) % 4, "train", "val")
    of_year = np.where(dataset.domain == year, "test", "none")
    return replace(dataset, split=np.where(dataset.domain < year, earlier, of_year))


PROTOCOL = Protocol(parts=parts, split=split, unseen_domains=True, selects_on="worst_pair", last_of_ties=True)
'''


@pytest.fixture
def by_date(tmp_path: Path, monkeypatch) -> Path:
    """Vectors of three years, and a folder that adds the protocol."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "by_date.py").write_text(BY_DATE)
    monkeypatch.setattr(protocols, "__path__", [*protocols.__path__, str(tmp_path / "own")])
    monkeypatch.setitem(sys.modules, f"{protocols.PACKAGE}.by_date", None)
    monkeypatch.delitem(sys.modules, f"{protocols.PACKAGE}.by_date")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y, year = np.tile([0, 1], 60), np.repeat([0, 1, 2], 40)
    x = rng.normal(size=(120, 4)).astype(np.float32) + 3 * y[:, None]
    np.savez("v.npz", x=x, y=y, domain=year, domains=["2021", "2022", "2023"])
    return tmp_path


def test_it_is_listed_and_explained_in_the_help(by_date: Path, capsys) -> None:
    cli.main(["list", "protocols", "--json"])
    listed = {row["name"]: row["what"] for row in json.loads(capsys.readouterr().out)}
    assert listed["by_date"] == "Train on the years before one, and test on that year." and {"dg", "mdlt"} < set(listed)
    assert protocols.summary("by_date") == "train on the years before one, and test on that year"


def test_its_parts_and_splits_are_those_of_a_spec(by_date: Path) -> None:
    spec = DataSpec(dataset="v.npz", protocol="by_date", data_seed=3)
    source = load_source(spec)
    parts = protocols.parts(spec, source)
    assert [part.unseen for part in parts] == ["2022", "2023"] and parts[0].data_seed == 3
    first, second = (protocols.split(source, part) for part in parts)
    assert first.counts("train").tolist() == [[10, 20], [0, 0], [0, 0]] and first.counts("test")[1:].sum(
        1
    ).tolist() == [40, 0]
    assert second.counts("train").sum(1).tolist() == [30, 30, 0] and second.counts("test").sum(1).tolist() == [0, 0, 40]
    thinned = DataSpec(dataset="v.npz", protocol="by_date", unseen="2023", labels=("step:10",))
    assert protocols.split(source, thinned).counts("train").tolist() == [[10, 2], [10, 2], [0, 0]]


def test_a_spec_reads_its_declarations(by_date: Path) -> None:
    spec = RunSpec(dataset="v.npz", protocol="By-Date")
    assert spec.unseen_domains and spec.selected_on == "worst_pair"
    with pytest.raises(ValueError, match=r"the protocol by_date .* --folds"):
        RunSpec(dataset="v.npz", protocol="by_date", folds=3)
    with pytest.raises(ValueError, match="unknown protocol 'by_dat': did you mean 'by_date'"):
        RunSpec(dataset="v.npz", protocol="by_dat")


def test_a_sweep_has_one_search_for_each_part_as_its_split_does_not_depend_on_the_seed(by_date: Path) -> None:
    spec = RunSpec(dataset="v.npz", backbone="mlp", steps=2, protocol="by_date")
    plan = make(spec, ["erm"], trials=2, seeds=3)
    assert [(one.unseen, one.seeds, one.shared.seed) for one in plan.searches] == [(("2022",), 3, 0), (("2023",), 3, 0)]
    assert plan.redrawn == () and plan.runs_per_method == 2 * (2 + 3 - 1)


def test_fit_trains_every_part_and_writes_the_pages(by_date: Path, capsys) -> None:
    words = "fit v.npz --algorithm erm --protocol BY_DATE --steps 20 --evaluations 2 --width 8 --out run"
    cli.main([*words.split(), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [run["spec"]["unseen"] for run in found["runs"]] == ["2022", "2023"]
    assert {run["spec"]["protocol"] for run in found["runs"]} == {"by_date"}
    assert found["test"]["shots"] == {} or set(found["test"]["shots"].values()) == {None}
    assert "2022" in (by_date / "run" / "report.html").read_text()
    assert "by_date" in (by_date / "run" / "2023" / "report.html").read_text()
