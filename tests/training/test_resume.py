"""A run that is interrupted at any point, any number of times, gives the same result bit for bit."""

import contextlib
import math
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from tests.interruption import stop

from crosstail import algorithms, cli, storage
from crosstail.losses import PairStatistics
from crosstail.testing import save_separable
from crosstail.training import RunSpec
from crosstail.training import folder as folder_module
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder
from crosstail.training.loop import Diverged
from crosstail.training.result import RunResult

fit_module = sys.modules[train_run.__module__]

STEPS = 12
FOR_READERS = {"report.html", "model_card.md", "metrics.csv", "audit.json"}


def outcome(folder):
    """All that a finished run leaves, but the time that it took and what the command makes of it for readers."""

    def timeless(record):
        return {key: value for key, value in msgspec.to_builtins(record).items() if key != "seconds"}

    here = RunFolder(folder)
    return {
        "files": sorted(path.name for path in folder.iterdir() if path.name not in FOR_READERS),
        "spec": here.spec(),
        "result": timeless(here.result()),
        "records": [timeless(record) for record in here.records()],
        "weights": {name: value.numpy().tobytes() for name, value in here.load("model.pt").items()},
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with vectors in 2 domains × 3 classes, one pair without training samples, and some small images."""
    place = tmp_path_factory.mktemp("resume")
    save_separable(place / "vectors.npz", [[30, 8, 2], [0, 9, 25]])
    rng = np.random.default_rng(0)
    y, domain = np.tile([0, 1, 2], 20), np.repeat([0, 1], 30)
    x = (60 * y[:, None, None, None] + 30 * domain[:, None, None, None] + rng.integers(0, 60, (60, 8, 8, 3))).astype(
        np.uint8
    )
    split = np.where(np.arange(60) % 30 < 15, "train", np.where(np.arange(60) % 30 < 21, "val", "test"))
    np.savez(place / "images.npz", x=x, y=y, domain=domain, split=split)
    return place


def vectors(place, **changes):
    common = {"steps": STEPS, "batch_size": 4, "evaluations": 4, "width": 8, "seed": 3}
    return RunSpec(**{"dataset": str(place / "vectors.npz"), "backbone": "mlp", "algorithm": "boda"} | common | changes)


VARIANTS = {
    "boda": {"second_stage": "retrain"},
    "boda with full passes": {"second_stage": "retrain", "hparams": {"refresh": 5, "warmup": 2, "weight_decay": 0.01}},
    "boda_m": {"algorithm": "boda_m", "second_stage": "retrain"},
    "evaluations at odd steps": {"second_stage": "retrain", "evaluations": 5, "steps": 13},
}


@pytest.fixture(scope="module")
def whole(place):
    """What an uninterrupted run of a spec leaves, run once."""
    found = {}

    def get(spec):
        if spec.key not in found:
            train_run(spec, place / spec.key)
            found[spec.key] = outcome(place / spec.key)
        return found[spec.key]

    return get


@pytest.mark.parametrize(
    "point",
    [("stage 1", 1), ("stage 1", 3), ("stage 1", 8), ("stage 1", 12), ("stage 2", 1), ("stage 2", 7), ("stage 2", 12)],
    ids=lambda point: f"{point[0]}, step {point[1]}",
)
@pytest.mark.parametrize("variant", VARIANTS)
def test_stopped_once(place, tmp_path, whole, variant, point):
    spec = vectors(place, **VARIANTS[variant])
    stop(spec, tmp_path, *point)
    torch.rand(5)  # a new process has another random state
    train_run(spec, tmp_path)
    assert outcome(tmp_path) == whole(spec)


@pytest.mark.parametrize("variant", VARIANTS)
def test_stopped_again_and_again(place, tmp_path, whole, variant):
    spec = vectors(place, **VARIANTS[variant])
    for point in [(1, 2), (1, 2), (1, 4), (1, 5), (1, 11), (2, 1), (2, 1), (2, 6), (2, 12)]:
        stop(spec, tmp_path, f"stage {point[0]}", point[1])
    train_run(spec, tmp_path)
    assert outcome(tmp_path) == whole(spec)


@pytest.mark.parametrize("stage", [None, "retrain"])
def test_small_cnn_on_images(place, tmp_path, whole, stage):
    spec = vectors(place, dataset=str(place / "images.npz"), backbone="small_cnn", second_stage=stage)
    for point in [("stage 1", 5), ("stage 1", 10)] + [("stage 2", 4)] * (stage is not None):
        stop(spec, tmp_path, *point)
    train_run(spec, tmp_path)
    assert outcome(tmp_path) == whole(spec)


NOISY = '''
import torch
import torch.nn.functional as F
from crosstail.algorithms._algorithm import Algorithm

class Noisy(Algorithm):
    """Draws random numbers while it trains (Anyone, 2024)."""

    def losses(self, z, batch):
        return {"cross_entropy": F.cross_entropy(self.head(z + torch.randn_like(z)), batch.y)}
'''


def test_random_numbers_go_on_where_they_were(place, tmp_path, whole, monkeypatch):
    (tmp_path / "noisy.py").write_text(NOISY)
    monkeypatch.setattr(algorithms, "__path__", [*algorithms.__path__, str(tmp_path)])
    spec = vectors(place, algorithm="noisy")
    for step in (4, 8):
        stop(spec, tmp_path / "run", "stage 1", step)
        torch.rand(7)
    train_run(spec, tmp_path / "run")
    assert outcome(tmp_path / "run") == whole(spec)


class Crash(BaseException):
    """What no handler expects: the process is gone."""


class Disk:
    """Counts what a run writes, and crashes half-way through one of the writes or after it."""

    def __init__(self, monkeypatch, at=None, when="after"):
        self.writes, self.at, self.when = 0, at, when
        for module in (folder_module, storage):
            monkeypatch.setattr(module, "write_whole", self.watched(storage.write_whole, self.half_whole))
        append = self.watched(RunFolder.append_record, self.half_record)
        monkeypatch.setattr(RunFolder, "append_record", append)

    def watched(self, real, half):
        def write(*args):
            crash = self.writes == self.at
            self.writes += 1
            if crash and self.when == "half-way":
                half(*args)
                raise Crash
            real(*args)
            if crash:
                raise Crash

        return write

    def half_whole(self, path, content):
        path.with_name(f".1.part.{path.name}").write_bytes(bytes(content)[:50])

    def half_record(self, folder, record):
        with (folder.path / "records.jsonl").open("ab") as file:
            file.write(msgspec.json.encode(record)[:50])


@pytest.mark.parametrize("when", ["half-way", "after"])
def test_a_crash_at_any_write(place, tmp_path, whole, monkeypatch, when):
    spec = vectors(place, second_stage="retrain", evaluations=1)
    expected = whole(spec)
    with monkeypatch.context() as patch:
        disk = Disk(patch)
        train_run(spec, tmp_path / "count")
    assert disk.writes >= 14
    for number in range(disk.writes):
        folder = tmp_path / f"{when} {number}"
        with monkeypatch.context() as patch:
            Disk(patch, number, when)
            with pytest.raises(Crash):
                train_run(spec, folder)
        train_run(spec, folder)
        found = outcome(folder)
        assert found == expected, f"crash {when} write {number}"


def test_a_finished_run_returns_at_once(place, tmp_path):
    spec = vectors(place, second_stage="retrain")
    result = train_run(spec, tmp_path).result
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.iterdir()}
    assert train_run(spec, tmp_path, progress=lambda *report: pytest.fail("trains again")).result == result
    assert {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.iterdir()} == before


def test_a_resumed_run_does_not_repeat_what_is_done(place, tmp_path):
    spec = vectors(place, second_stage="retrain")  # evaluations at 0, 3, 6, 9 and 12
    stop(spec, tmp_path, "stage 2", 8)
    reports = []
    train_run(spec, tmp_path, progress=lambda *report: reports.append(report))
    assert reports == [("stage 2", step, STEPS) for step in range(7, 13)]


def test_a_run_resumes_with_fewer_gpus_than_it_had(place, tmp_path, monkeypatch):
    """The checkpoint has the random state of two, of which one is left."""
    spec, restored = vectors(place), []
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: [torch.get_rng_state()] * 2)
    stop(spec, tmp_path, "stage 1", 8)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: restored.append(device))
    train_run(spec, tmp_path)
    assert restored == [0]


def test_another_spec_in_the_folder_of_an_unfinished_run_is_refused(place, tmp_path):
    spec = vectors(place)
    stop(spec, tmp_path, "stage 1", 5)
    with pytest.raises(ValueError, match="holds another run: its seed is 3, not 4"):
        train_run(replace(spec, seed=4), tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"algorithm": "bodda"}, "unknown algorithm 'bodda'"),
        ({"hparams": {"rate": 1.0}}, "unknown hyperparameter 'rate'"),
        ({"backbone": "small_cnn"}, "backbone 'small_cnn' takes images"),
        ({"width": 0}, "width is 0"),
        ({"dataset": "digitz"}, "unknown data set 'digitz'"),
        ({"labels": ("sideways:3",)}, "sideways"),
    ],
)
def test_a_mistake_leaves_no_folder_that_refuses_its_correction(place, tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        train_run(vectors(place, **changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_damaged_files_are_named_and_removing_them_is_enough(place, tmp_path, whole):
    spec = vectors(place, second_stage="retrain")
    for name, point in (
        ("checkpoint.pt", ("stage 1", 8)),
        ("checkpoint.pt", ("stage 2", 8)),
        ("stage_one.pt", ("stage 2", 8)),
    ):
        stop(spec, tmp_path, *point)
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[: len(content) // 2])
        with pytest.raises(ValueError, match=f"{name} is damaged. Remove it and run the same command again"):
            train_run(spec, tmp_path)
        (tmp_path / name).unlink()
    train_run(spec, tmp_path)
    assert outcome(tmp_path) == whole(spec)


def test_lost_records_are_named(place, tmp_path):
    spec = vectors(place)
    stop(spec, tmp_path, "stage 1", 12)
    (tmp_path / "records.jsonl").unlink()
    state = RunFolder(tmp_path).load("checkpoint.pt")
    state["selected"]["step"] = 0  # whatever the run selects, make it one of those that were lost
    state["selected"]["score"] = 2.0
    RunFolder(tmp_path).save("checkpoint.pt", state)
    with pytest.raises(ValueError, match=r"records\.jsonl lacks step 0 of stage 1: remove the folder"):
        train_run(spec, tmp_path)


@pytest.mark.parametrize("evaluations", [1, 4])
@pytest.mark.parametrize("algorithm", ["erm", "boda", "boda_m"])
@pytest.mark.parametrize("stage", [None, "retrain"])
def test_a_divergent_run_names_the_loss_term_and_the_steps(place, tmp_path, algorithm, evaluations, stage):
    """Also where the features are already NaN before the next evaluation."""
    hparams = {"lr": 1e30}
    spec = vectors(place, algorithm=algorithm, hparams=hparams, evaluations=evaluations, second_stage=stage)
    message = (
        r"the loss term '(cross_entropy|alignment)' became (nan|inf) between steps \d+ and \d+\. Try a smaller learning"
    )
    with pytest.raises(Diverged, match=message):
        train_run(spec, tmp_path)
    assert not (tmp_path / "result.json").exists()
    with pytest.raises(Diverged, match=message):  # and again
        train_run(spec, tmp_path)


@pytest.mark.parametrize(
    ("hparams", "named"),
    [
        ({}, r"'alignment' became nan between steps 1 and 2"),
        ({"refresh": 1, "warmup": 0}, r"step 1: z\[0, 0\] is NaN or infinite"),
    ],
)
def test_non_finite_features_right_after_an_evaluation_are_a_divergence(place, tmp_path, monkeypatch, hparams, named):
    """A full pass names the features; a batch shows in its loss term at the next evaluation."""
    update, calls = PairStatistics.update, []

    def spoilt(self, z, y, domain, **options):
        calls.append(len(z))
        update(self, z * math.inf if len(calls) > 1 else z, y, domain, **options)

    monkeypatch.setattr(PairStatistics, "update", spoilt)
    with pytest.raises(Diverged, match=f"{named}.*Try a smaller learning rate"):
        train_run(vectors(place, algorithm="boda", hparams=hparams, evaluations=STEPS), tmp_path)


def mounted(path, size):
    """A file system of this size, or a reason why there is none."""
    path.mkdir()
    try:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], capture_output=True, text=True
        )
    except OSError as error:
        return str(error)
    return done.stderr.strip() if done.returncode else ""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a tmpfs")
def test_a_full_disk_is_one_clear_line_and_the_same_command_goes_on_when_there_is_room(
    place, tmp_path, whole, monkeypatch, capfd
):
    spec = vectors(place, second_stage="retrain", width=128, seed=0, algorithm="boda")
    expected = whole(spec)
    disk = tmp_path / "disk"
    problem = mounted(disk, "4m")
    if problem:
        pytest.skip(f"cannot mount a small file system here: {problem}")
    words = f"fit {spec.dataset} --algorithm boda --backbone mlp --width 128 --steps {STEPS} --batch-size 4"
    words += f" --evaluations 4 --second-stage retrain --out {disk / 'run'}"
    monkeypatch.setattr(sys, "argv", ["crosstail", *words.split()])
    monkeypatch.setenv("COLUMNS", "300")
    try:
        ballast = disk / "ballast"
        failed = []
        for room in (0, 2_000, 50_000):  # for nothing, for the spec, for a checkpoint but not for the next one
            free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
            ballast.write_bytes(bytes(max(0, free - room)))
            with pytest.raises(SystemExit) as ended:
                cli.main()
            ballast.unlink()
            lines = capfd.readouterr().err.splitlines()
            assert ended.value.code == 1 and len(lines) == 1
            assert lines[0].startswith(f"error: No space left on device: {disk / 'run'}")
            failed.append(lines[0].rpartition("/")[2])
            assert not list((disk / "run").glob("*.part.*"))
        assert failed[-1] == "checkpoint.pt", failed
        with contextlib.suppress(SystemExit):
            cli.main()
        assert outcome(disk / "run") == expected
    finally:
        subprocess.run(["umount", str(disk)], check=True)


SLOWED = '''
import time
from crosstail.algorithms.boda import BoDA

class Slowed(BoDA):
    """BoDA, so slow that it can be killed between two evaluations (Nobody, 2024)."""

    def losses(self, z, batch):
        time.sleep(0.01)
        return super().losses(z, batch)
'''


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.storm)])
def test_kill_9_at_random_moments_of_the_command(place, tmp_path, monkeypatch, capsys, kills, record_property):
    record_property("kills", kills)
    (tmp_path / "slowed.py").write_text(SLOWED)
    words = f"fit {place / 'vectors.npz'} --algorithm {tmp_path / 'slowed.py'} --seed 0 --out A"
    words += " --steps 300 --evaluations 20 --width 8 --batch-size 4"
    command = [str(Path(sys.executable).parent / "crosstail"), *words.split()]
    folder, chance = tmp_path / "A", random.Random(0)
    records = folder / "records.jsonl"
    known = b""
    for _ in range(kills):
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and (not records.exists() or len(records.read_bytes()) <= len(known)):
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.3))
        process.kill()
        assert process.wait() == -signal.SIGKILL, "it ended before it was killed"
        known = records.read_bytes()
    assert not (folder / "result.json").exists()
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    cli.main([*command[1:], "--json"])
    assert msgspec.json.decode(capsys.readouterr().out, type=RunResult) == RunFolder(folder).result()
    train_run(RunFolder(folder).spec(), tmp_path / "whole")
    assert outcome(folder) == outcome(tmp_path / "whole")
