"""A log contains a run once, however often it was resumed, and does not change it; TensorBoard reads its own files."""

import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
from tests.interruption import stopping_at

from crosstail.testing import save_separable
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder
from crosstail.training.logs import logged
from crosstail.training.logs.tensorboard import TensorBoard


def read(out):
    found = EventAccumulator(str(out / "tensorboard"), size_guidance={"scalars": 0})
    found.Reload()
    points = [(tag, event.step, event.value) for tag in found.Tags()["scalars"] for event in found.Scalars(tag)]
    session = HParamsPluginData.FromString(found.PluginTagToContent("hparams")["_hparams_/session_start_info"])
    return points, {
        name: value.string_value or value.number_value for name, value in session.session_start_info.hparams.items()
    }


@pytest.fixture
def spec(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_separable(Path("v.npz"), [[30, 8, 2], [0, 9, 25]])
    common = {"steps": 8, "batch_size": 4, "evaluations": 4, "width": 8, "hparams": {"nu": 0.5}, "average": "moving"}
    return RunSpec(dataset="v.npz", backbone="mlp", algorithm="boda", second_stage="retrain", **common)


def run(spec, out, progress=lambda *about: None, kind="tensorboard"):
    with logged(kind, spec, out, progress) as report:
        return train_run(spec, out, progress=report).result


def expected(out):
    """Every point that a log of a run must have, from what the run itself keeps."""
    points = {}
    views = ("average", "worst_domain", "pair_average", "worst_pair", "tenth_percentile", "macro_f1", "log_loss")
    for record in RunFolder(out).records():
        stage, step = f"stage_{record.stage}", record.step
        points[f"{stage}/seconds", step] = record.seconds
        for name, value in record.losses.items():
            points[f"{stage}/loss/{name}", step] = value
        for view in views:
            points[f"{stage}/validation/{view}", step] = getattr(record.validation, view)
            points[f"{stage}/averaged/validation/{view}", step] = getattr(record.averaged.validation, view)
    result = RunFolder(out).result()
    step = result.selected_step
    for split in ("validation", "test"):
        for view in views:
            points[f"final/{split}/{view}", step] = getattr(getattr(result, split), view)
        for shot, value in getattr(result, split).shots.items():
            if value is not None:
                points[f"final/{split}/shots/{shot}", step] = value
    points["final/validation/others/as_they_come", step] = result.validation.others["as_they_come"]
    for name in "alpha", "beta", "gamma":
        points[f"final/transferability/{name}", step] = getattr(result.transferability, name)
    points["final/seconds", step] = result.seconds
    return points


def assert_logged_once(out):
    points, hparams = read(out)
    twice = [key for key, number in Counter(point[:2] for point in points).items() if number > 1]
    assert twice == []
    assert {point[:2]: point[2] for point in points} == pytest.approx(expected(out), rel=1e-6)
    assert float(hparams["hp/nu"]) == 0.5 and float(hparams["hp/momentum"]) == 0.2
    assert hparams["algorithm"] == "boda" and float(hparams["steps"]) == 8
    return points


def timeless(record):
    return msgspec.structs.replace(record, seconds=0)


def test_a_log_has_the_whole_run_and_does_not_change_it(spec):
    out = Path("run")
    assert timeless(run(spec, out)) == timeless(train_run(spec, Path("plain")).result)
    assert [*map(timeless, RunFolder(out).records())] == [*map(timeless, RunFolder(Path("plain")).records())]
    points = assert_logged_once(out)
    assert {name for name, _, _ in points} >= {
        "stage_1/loss/alignment",
        "stage_2/loss/cross_entropy",
        "final/test/average",
    }


@pytest.mark.parametrize("stops", [[("stage 1", 3)], [("stage 1", 5), ("stage 1", 7), ("stage 2", 1), ("stage 2", 8)]])
def test_a_run_that_is_stopped_is_logged_once(spec, stops):
    out = Path("run")
    for point in stops:
        with pytest.raises(KeyboardInterrupt):
            run(spec, out, stopping_at(*point))
    run(spec, out)
    assert_logged_once(out)


def test_a_finished_run_is_logged_afterwards_and_then_no_more(spec):
    out = Path("run")
    train_run(spec, out)
    run(spec, out)
    assert_logged_once(out)
    before = {file: file.read_bytes() for file in Path().rglob("*") if file.is_file()}
    run(spec, out)
    assert before == {file: file.read_bytes() for file in Path().rglob("*") if file.is_file()}


def test_evaluations_are_logged_while_the_run_goes_on(spec):
    seen = []

    def progress(what, done, total):
        if (what, done) == ("stage 1", 6):
            seen.extend(read(Path("run"))[0])

    run(spec, Path("run"), progress)
    assert {step for name, step, _ in seen if name == "stage_1/validation/average"} == {0, 2, 4}


def test_an_evaluation_whose_checkpoint_was_lost_is_logged_once(spec):
    """A kill can come between a record and its checkpoint; the run then makes the record again."""
    out = Path("run")
    with pytest.raises(KeyboardInterrupt):
        run(spec, out, stopping_at("stage 1", 5))
    last = RunFolder(out).records()[-1]
    RunFolder(out).append_record(msgspec.structs.replace(last, step=6, losses={"cross_entropy": 1e9}))
    with logged("tensorboard", spec, out, lambda *about: None) as report:
        report("embedding", 1, 1)  # which comes before the run drops that record
        train_run(spec, out, progress=report)
    assert_logged_once(out)


def test_a_log_that_fails_does_not_stop_the_run(spec, monkeypatch):
    def fail(*about):
        raise PermissionError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(TensorBoard, "write", fail)
        with pytest.raises(OSError, match=r"tensorboard log .*no room"):
            run(spec, Path("run"))
    assert RunFolder(Path("run")).result() is not None
    run(spec, Path("run"))
    assert_logged_once(Path("run"))


def test_a_kind_that_is_not_known_names_the_others(spec):
    with pytest.raises(ValueError, match="unknown log 'tensorbord': did you mean 'tensorboard'"):
        run(spec, Path("run"), kind="tensorbord")


def test_a_package_that_is_missing_is_told_before_the_run(spec, monkeypatch):
    for module in {"tensorboard", *(module for module in sys.modules if module.split(".")[0] == "tensorboard")}:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "crosstail.training.logs.tensorboard", raising=False)
    with pytest.raises(
        ValueError, match=r"--log tensorboard needs TensorBoard: pip install 'crosstail\[tensorboard\]'"
    ):
        run(spec, Path("run"))
    assert not Path("run").exists()
