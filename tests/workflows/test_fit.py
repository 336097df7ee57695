"""The verb fit: folds, their final model, and what a call that is repeated does."""

from dataclasses import replace
from pathlib import Path

import pytest

from crosstail import RunSpec, fit
from crosstail.reports.document.model import Document
from crosstail.testing import save_separable
from crosstail.training import loop
from crosstail.training.folder import RunFolder


@pytest.fixture(autouse=True)
def short_page(monkeypatch) -> None:
    """The page of a run is only a title: its charts take longer than the run itself."""
    monkeypatch.setattr("crosstail.reports.run.page.run_document", lambda run, *_: Document(run.result.spec.key, []))


@pytest.fixture
def spec(tmp_path) -> RunSpec:
    save_separable(tmp_path / "v.npz", [[30, 8, 2], [0, 9, 25]])
    short = {"algorithm": "erm", "width": 8, "steps": 6, "batch_size": 4, "evaluations": 3}
    return RunSpec(dataset=str(tmp_path / "v.npz"), **short)


def same_weights(one: Path, other: Path) -> bool:
    weights = [RunFolder(place).weights() for place in (one, other)]
    return all((weights[0][name] == weights[1][name]).all() for name in weights[0])


def test_one_fold_alone_is_the_same_run(spec, tmp_path):
    (alone,) = fit(replace(spec, folds=3, fold=2), tmp_path / "cv" / "fold-2").runs
    before = (alone.folder.path / "result.json").read_bytes()
    assert len(fit(replace(spec, folds=3), tmp_path / "cv").runs) == 3
    assert (alone.folder.path / "result.json").read_bytes() == before


def test_an_interrupted_cross_validation_goes_on_where_it_stopped(spec, tmp_path, monkeypatch):
    spec, trained = replace(spec, folds=3), loop.train
    whole = fit(spec, tmp_path / "whole", refit=True)

    def stop(algorithm, dataset, spec, **options):
        if spec.fold == 2:
            raise KeyboardInterrupt
        return trained(algorithm, dataset, spec, **options)

    parts = tmp_path / "parts"
    with monkeypatch.context() as patch:
        patch.setattr("crosstail.training.fit.train", stop)
        with pytest.raises(KeyboardInterrupt):
            fit(spec, parts, refit=True)
    assert (parts / "fold-1/result.json").exists() and not (parts / "fold-2/result.json").exists()
    first = (parts / "fold-1/result.json").stat().st_mtime_ns
    fit(spec, parts, refit=True)
    assert (parts / "fold-1/result.json").stat().st_mtime_ns == first
    assert same_weights(whole.run.folder.path, parts / "refit")


def test_a_run_that_stops_where_the_final_model_does_has_its_weights(spec, tmp_path):
    spec = replace(spec, folds=3)
    final = fit(spec, tmp_path / "cv", refit=True).final
    again = fit(replace(spec, stop_at=final.result.spec.stop_at), tmp_path / "again").run
    assert again.result.estimate is None and final.result.estimate is not None
    assert same_weights(final.folder.path, again.folder.path)


@pytest.mark.parametrize(("first", "second"), [({"protocol": "dg"}, {}), ({}, {"protocol": "dg"})])
def test_a_page_of_other_runs_is_not_overwritten(spec, tmp_path, first, second):
    out = tmp_path / "runs"
    fit(replace(spec, **first), out)
    page = (out / "report.html").read_bytes()
    with pytest.raises(ValueError, match=r"report\.html .*--out"):
        fit(replace(spec, **second), out)
    assert (out / "report.html").read_bytes() == page
    fit(replace(spec, **first), out)


def test_a_trace_is_kept_where_it_is_asked_for_from_the_start(spec, tmp_path):
    assert not fit(spec, tmp_path / "plain").notes
    assert "without --trace" in fit(replace(spec, trace=True), tmp_path / "plain").notes[-1]
    traced = fit(replace(spec, trace=True), tmp_path / "traced")
    assert not traced.notes and all(record.trace for record in traced.run.folder.records())
