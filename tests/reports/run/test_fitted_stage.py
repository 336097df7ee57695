import pytest

from crosstail.reports.document.model import Chart, Text
from crosstail.reports.run.certainty_data import Certainty
from crosstail.reports.run.how_trained import fitted, length, stopped
from crosstail.reports.run.page import run_document
from crosstail.testing import save_separable
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.refit import refit_spec, with_estimate


@pytest.fixture
def make(tmp_path):
    save_separable(tmp_path / "v.npz", [[30, 8, 2], [0, 12, 5]])

    def make(**changes):
        size = {"steps": 12, "batch_size": 4, "evaluations": 4, "trace": True}
        spec = RunSpec(dataset=str(tmp_path / "v.npz"), algorithm="erm", second_stage="ncm", **size, **changes)
        run = train_run(spec, tmp_path / "run")
        return run, with_estimate(train_run(refit_spec([run.result]), tmp_path / "final"), [run])

    return make


def drawn(run):
    return {block.name for block in run_document(run, Certainty.of(run)).blocks if isinstance(block, Chart)}


def test_after_a_trained_stage_one_it_says_which_step_the_features_are_of(make):
    run, final = make(backbone="mlp", width=8, hparams={"lr": 0.03})
    first = run.result.selected_steps[0]
    assert first > 0 and "12 steps" in length(run.result) and not stopped(run.result)
    assert "ncm" in fitted(run.result) and f"step {first} of stage one" in fitted(run.result)
    assert {"accuracy", "losses"} <= drawn(run)
    assert "ncm" in fitted(final.result) and f"after step {first}, the median" in fitted(final.result)
    texts = [block.text for block in run_document(run, Certainty.of(run)).blocks if isinstance(block, Text)]
    assert any(fitted(run.result) in text for text in texts)


def test_without_any_step_there_are_no_curves(make):
    run, final = make(backbone="identity")
    for one in (run, final):
        assert "No training steps" in length(one.result) and "ncm" in fitted(one.result)
        assert not stopped(one.result) and not {"accuracy", "losses"} & drawn(one)
