"""The trace of a run: the graph at every evaluation, without effect on the result, and the same after a stop."""

from dataclasses import replace
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from tests.interruption import stop

from crosstail.testing import save_separable
from crosstail.training import evaluation
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder
from crosstail.training.model import load_model
from crosstail.training.resolve import resolve
from crosstail.training.result import Transferability
from crosstail.training.run_data import load_inputs
from crosstail.transfer import TransferStatistics


@pytest.fixture
def spec(tiny):
    return tiny([[30, 8, 2], [0, 9, 25]], second_stage="retrain")


def timeless(folder):
    return [msgspec.structs.replace(record, seconds=0.0) for record in RunFolder(folder).records()]


def test_only_stage_one_is_traced_and_nothing_else_changes(spec, tmp_path):
    plain = train_run(spec, tmp_path / "plain").result
    traced = train_run(replace(spec, trace=True), tmp_path / "traced").result
    assert plain == msgspec.structs.replace(traced, seconds=plain.seconds, spec=plain.spec)
    records = timeless(tmp_path / "traced")
    assert [r.step for r in records if r.trace] == [r.step for r in records if r.stage == 1]
    assert [msgspec.structs.replace(record, trace=None) for record in records] == timeless(tmp_path / "plain")


def test_a_stopped_run_has_the_same_trace(spec, tmp_path):
    spec = replace(spec, trace=True)
    train_run(spec, tmp_path / "whole")
    for step in (4, 8, 12):
        stop(spec, tmp_path / "stopped", "stage 1", step)
    train_run(spec, tmp_path / "stopped")
    assert timeless(tmp_path / "stopped") == timeless(tmp_path / "whole")


@pytest.mark.parametrize("average", [None, "moving", "swad"])
def test_the_trace_of_what_is_selected_is_the_graph_of_the_model(spec, tmp_path, average):
    spec = replace(spec, algorithm="erm", hparams={"lr": 0.05}, second_stage=None, average=average, trace=True)
    result = train_run(spec, tmp_path / "run").result
    folder = RunFolder(tmp_path / "run")
    assert result.selected_step > 0
    trace = next(r.trace for r in folder.records() if r.step == result.selected_step)
    found = Transferability(alpha=trace.alpha, beta=trace.beta, gamma=trace.gamma)
    assert found == result.transferability
    dataset = load_inputs(resolve(spec)).embedded()
    points = evaluation.graph_of(load_model(folder, dataset), dataset).layout()
    np.testing.assert_allclose(trace.points, points, rtol=1e-3, atol=1e-3)


def test_one_domain_has_no_alpha(spec, tmp_path):
    save_separable(tmp_path / "one.npz", [[9, 9, 9]])
    train_run(replace(spec, dataset=str(tmp_path / "one.npz"), algorithm="erm", trace=True), tmp_path / "run")
    trace = RunFolder(tmp_path / "run").records()[0].trace
    assert trace.alpha is None and trace.beta > 0 and b"NaN" not in msgspec.json.encode(trace)


def test_a_trace_of_the_largest_benchmark_is_small(monkeypatch):
    """2,070 pairs and 11 evaluations: below half a megabyte."""

    class Graph:
        statistics = TransferStatistics(1 / 3, 2 / 3, 4 / 3)
        pairs = np.argwhere(np.ones((6, 345)))
        estimate = standard_errors = None

        def layout(self):
            return 20 * np.random.default_rng(0).normal(size=(2070, 2))

    monkeypatch.setattr(evaluation, "graph_of", lambda *_, **__: Graph())
    dataset = SimpleNamespace(counts=lambda split: np.ones((6, 345), int), kind=SimpleNamespace(light=True))
    trace = evaluation.traced(None, dataset)
    assert len(trace.points) == 2070 and 11 * len(msgspec.json.encode(trace)) < 500_000
