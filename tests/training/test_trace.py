"""The trace of a run: how its pairs lie at every evaluation, at no cost to its figures, and the same after a stop."""

import json
from dataclasses import replace

import numpy as np
import pytest

from crosstail.testing import save_separable
from crosstail.training import RunSpec, run
from crosstail.training.fit import fit
from crosstail.training.folder import RunFolder


@pytest.fixture
def spec(tmp_path):
    save_separable(tmp_path / "v.npz", [[30, 8, 2], [0, 9, 25]])
    common = {"steps": 12, "batch_size": 4, "evaluations": 4, "width": 8}
    return RunSpec(dataset=str(tmp_path / "v.npz"), backbone="mlp", algorithm="boda", decouple=True, **common)


def timeless(folder):
    return [{name: value for name, value in r.items() if name != "seconds"} for r in RunFolder(folder).records()]


def test_only_stage_one_is_traced_and_nothing_else_changes(spec, tmp_path):
    plain, traced = fit(spec, tmp_path / "plain"), fit(spec, tmp_path / "traced", trace=True)
    assert {**plain, "seconds": 0} == {**traced, "seconds": 0}
    records = timeless(tmp_path / "traced")
    assert [r["step"] for r in records if "trace" in r] == [r["step"] for r in records if r["stage"] == 1]
    for record in records:
        record.pop("trace", None)
    assert records == timeless(tmp_path / "plain")


def test_a_stopped_run_has_the_same_trace(spec, tmp_path):
    fit(spec, tmp_path / "whole", trace=True)
    for step in (4, 8, 12):

        def stop(what, done, total, step=step):
            if done == step:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fit(spec, tmp_path / "stopped", stop, trace=True)
    fit(spec, tmp_path / "stopped", trace=True)
    assert timeless(tmp_path / "stopped") == timeless(tmp_path / "whole")


@pytest.mark.parametrize("average", [False, True])
def test_the_trace_of_what_is_selected_is_the_graph_of_the_model(spec, tmp_path, average):
    spec = replace(spec, algorithm="erm", hparams={"lr": 0.05}, decouple=False, average=average)
    result = fit(spec, tmp_path / "run", trace=True)
    folder = RunFolder(tmp_path / "run")
    assert result["selected_step"] > 0
    trace = next(r["trace"] for r in folder.records() if r["step"] == result["selected_step"])
    assert {name: trace[name] for name in ("alpha", "beta", "gamma")} == result["transferability"]
    dataset = run.load_inputs(spec)
    points = run.graph_of(run.load_model(folder, dataset), dataset).layout()
    np.testing.assert_allclose(trace["points"], points, rtol=1e-3, atol=1e-3)


def test_one_domain_has_no_alpha(spec, tmp_path):
    save_separable(tmp_path / "one.npz", [[9, 9, 9]])
    fit(replace(spec, dataset=str(tmp_path / "one.npz"), algorithm="erm"), tmp_path / "run", trace=True)
    trace = RunFolder(tmp_path / "run").records()[0]["trace"]
    assert trace["alpha"] is None and trace["beta"] > 0 and "NaN" not in json.dumps(trace)


def test_a_trace_of_the_largest_benchmark_is_small(monkeypatch):
    """2,070 pairs and 11 evaluations: below half a megabyte."""

    class Graph:
        statistics = run.TransferStatistics(1 / 3, 2 / 3, 4 / 3)

        def layout(self):
            return 20 * np.random.default_rng(0).normal(size=(2070, 2))

    monkeypatch.setattr(run, "graph_of", lambda *_: Graph())
    assert 11 * len(json.dumps(run._traced(None, None))) < 500_000
