"""Faults: no finished run is lost or counted twice, and the tables end up the same."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from tests.sessions import gone

from crosstail import cli
from crosstail.sweeps import drive
from crosstail.sweeps.launchers import _launcher, local
from crosstail.sweeps.launchers._launcher import Resources, launcher
from crosstail.sweeps.plan import make
from crosstail.sweeps.store import Store

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "sweep")


def progress_of(store):
    """How much there is on disk: grows when any run makes progress."""
    size = len(list((store.path / "runs").glob("*"))) * 10**6
    for file in (store.path / "work").glob("*/records.jsonl"):
        try:
            size += file.stat().st_size
        except FileNotFoundError:
            return size + 1  # it has just changed hands
    return size


class Killer(threading.Thread):
    """Kills workers of a launcher at random moments, about every time that a run made progress."""

    def __init__(self, crew, store, chance, most):
        super().__init__(daemon=True)
        self.crew, self.store, self.chance, self.most = crew, store, chance, most
        self.kills, self.ended = 0, threading.Event()

    def run(self):
        last = -1
        while not self.ended.wait(self.chance.uniform(0, 0.15)) and self.kills < self.most:
            now = progress_of(self.store)
            if now == last and self.chance.random() < 0.9:
                continue
            last = now
            worker = self.chance.choice(self.crew._crew or [None])
            if worker is not None and worker.process.is_alive():
                os.kill(worker.process.pid, signal.SIGKILL)
                self.kills += 1


def sweep_with_kills(plan, store, chance, most):
    with launcher("local", store, Resources(workers=2)) as crew:
        killer = Killer(crew, store, chance, most)
        killer.start()
        try:
            outcomes = [outcome for _, outcome in drive.sweep(plan, store, crew)]
        finally:
            killer.ended.set()
            killer.join()
    assert [outcome for outcome in outcomes if outcome.how != "done"] == []
    assert len({outcome.key for outcome in outcomes}) == len(outcomes) == 8
    return killer.kills


def test_local_gives_what_inline_gives(small, store, run, undisturbed, outcome_of):
    assert set(run(small, store, "local", workers=2).values()) == {"done"}
    assert outcome_of(store) == undisturbed
    assert store.unfinished() == {} and store.failures() == {}
    assert set(run(small, store, "local", workers=2).values()) == {"kept"}
    assert set(run(small, store, "inline").values()) == {"kept"}


@pytest.mark.slow
@pytest.mark.parametrize("least", [5, pytest.param(100, marks=pytest.mark.storm)])
def test_random_kills(small, tmp_path, undisturbed, outcome_of, monkeypatch, least, record_property):
    monkeypatch.setattr(_launcher, "DEATHS", 10**9)
    record_property("kills", least)
    chance, kills, sweeps = random.Random(0), 0, 0
    while kills < least:
        store = Store(tmp_path / str(sweeps))
        kills += sweep_with_kills(small, store, chance, most=least - kills)
        sweeps += 1
        assert outcome_of(store) == undisturbed
        assert store.failures() == {} and not (store.path / "damaged").exists()


def test_a_run_that_kills_every_worker_fails_and_the_others_do_not(shared, own, store, run, monkeypatch):
    monkeypatch.setattr(_launcher, "DEATHS", 3)
    deadly = own("deadly", "os.kill(os.getpid(), signal.SIGKILL)")
    plan = make(shared, ["erm", deadly], trials=1, seeds=2)
    outcomes = run(plan, store, "local", workers=2)
    (dead,) = [spec.key for spec in plan.runs(deadly, plan.drawn[deadly][0])]
    assert outcomes.pop(dead) == "failed" and set(outcomes.values()) == {"done"} and len(outcomes) == 2
    failure = store.failures()[dead]
    assert (failure.kind, failure.attempts) == ("died", 1) and "3 times" in failure.error[0]


def test_workers_that_cannot_start_are_an_error_and_not_an_endless_loop(small, store, run, monkeypatch):
    monkeypatch.setattr(local, "work", os._exit)  # which takes no such arguments: it ends at once
    monkeypatch.setattr(_launcher, "DEATHS", 3)
    with pytest.raises(OSError, match=r"3 workers.*--launcher inline"):
        run(small, store, "local", workers=1)


def test_a_run_that_hangs_is_ended_by_the_time_limit(shared, own, store, run):
    hang = own("hang", f"time.sleep(0 if os.path.exists({str(store.path / 'wake')!r}) else 10**6)")
    plan = make(shared, ["erm", hang], trials=1, seeds=2)
    began = time.monotonic()
    outcomes = run(plan, store, "local", workers=2, time_limit=4.0)
    assert time.monotonic() - began < 60
    (key,) = [spec.key for spec in plan.runs(hang, plan.drawn[hang][0])]
    assert outcomes.pop(key) == "failed" and set(outcomes.values()) == {"done"} and len(outcomes) == 2
    failure = store.failures()[key]
    assert (failure.kind, failure.attempts) == ("time limit", 1) and "4 s" in failure.error[0]
    (store.path / "wake").touch()
    assert sorted(run(plan, store, "local", workers=1).values()) == ["done", "done", "kept", "kept"]


def test_runs_that_raise_or_give_nan_leave_the_others_alone(shared, own, store, run, outcome_of):
    methods = [own("bad", "raise RuntimeError('bad')"), "erm", own("nan", "loss = loss * float('nan')")]
    plan = make(shared, methods, trials=2, seeds=2)
    outcomes = run(plan, store, "local", workers=2)
    assert sorted(outcomes.values()) == ["done"] * 3 + ["failed"] * 4
    bad, erm, nan = outcome_of(store)["choices"]
    assert (bad["trial"], nan["trial"], erm["finished"]) == (None, None, 2)
    again = run(plan, store, "inline")
    assert sorted(again.values()) == ["failed"] * 4 + ["kept"] * 3
    assert {failure.attempts for failure in store.failures().values()} == {2}


def test_two_drivers_on_one_folder_do_each_run_once(shared, own, tmp_path, run, outcome_of, undisturbed, small):
    log = tmp_path / "log"
    counted = own("counted", f"self.step == 0 and note({str(log)!r})")
    plan = make(shared, [counted, "erm"], trials=4, seeds=3)
    stores = [Store(tmp_path / "sweep") for _ in range(2)]
    outcomes = [None, None]

    def drive_one(number):
        outcomes[number] = run(plan, stores[number], "local", workers=1)

    threads = [threading.Thread(target=drive_one, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log.read_text().splitlines() == ["one run"] * 6  # by workers that do without torch's compiler
    for found in outcomes:
        assert set(found.values()) <= {"done", "kept"} and len(found) == 12
    assert outcome_of(stores[0]) == outcome_of(stores[1])
    alone = Store(tmp_path / "alone")
    run(plan, alone)
    assert outcome_of(alone) == outcome_of(stores[0])


def test_a_driver_waits_for_others_and_takes_over_when_they_fall_silent(small, tmp_path, run, undisturbed, outcome_of):
    store = Store(tmp_path, patience=2.0)
    spec = small.runs("erm", small.drawn["erm"][0])[0]
    place = store.path / "work" / f"{spec.key}.elsewhere"
    place.mkdir(parents=True)
    (place / "lease.elsewhere").write_bytes(b"another/1 17 12345 000000000001\n")
    began = time.monotonic()
    outcomes = run(small, store, "local", workers=2)
    assert time.monotonic() - began > 2.0
    assert set(outcomes.values()) == {"done"} and outcome_of(store) == undisturbed


def test_a_failure_of_another_driver_is_not_tried_again_at_once(small, tmp_path, run):
    store = Store(tmp_path)
    spec = small.runs("erm", small.drawn["erm"][0])[0]
    lease = Store(tmp_path).claim(spec)
    timer = threading.Timer(1.5, lambda: Store(tmp_path).fail(lease, "error", ["elsewhere"]))
    timer.start()
    outcomes = run(small, store)
    timer.join()
    assert outcomes[spec.key] == "failed" and store.failures()[spec.key].attempts == 1
    assert run(small, store)[spec.key] == "done"


@pytest.mark.parametrize("jumps", [(0.0, 4e9, 1e3), (2e9, -1e9, 5e9)])
def test_a_clock_that_jumps(small, store, run, undisturbed, outcome_of, monkeypatch, jumps):
    chance = random.Random(0)
    monkeypatch.setattr(time, "time", lambda: chance.choice(jumps))
    assert set(run(small, store).values()) == {"done"}
    for path in store.path.rglob("*.json"):
        when = max(0, chance.choice(jumps))
        os.utime(path, (when, when))
    assert set(run(small, store).values()) == {"kept"}
    assert outcome_of(store) == undisturbed


def test_garbage_in_any_file_of_a_sweep(small, store, run, undisturbed, outcome_of):
    """Half of the files of a stopped sweep are truncated or filled with noise: its results are the same."""
    chance = random.Random(3)
    for number in range(4):
        with launcher("inline", store, Resources()) as crew:
            for done, _ in enumerate(drive.sweep(small, store, crew)):
                if done == 2 * number:
                    break  # as Ctrl-C does
        kept = {store.path / "data.json", *(store.path / "plans").iterdir()}
        for path in sorted(p for p in store.path.rglob("*") if p.is_file() and p not in kept):
            if chance.random() < 0.5:
                content = path.read_bytes()
                path.write_bytes(chance.choice([b"", content[: len(content) // 2], chance.randbytes(200)]))
    outcomes = run(small, store)
    assert set(outcomes.values()) <= {"done", "kept"} and len(outcomes) == 8
    assert outcome_of(store) == undisturbed


def remove_rows(file, number=6):
    """Remove rows of an .npz, as if samples had been withdrawn."""
    with np.load(file) as arrays:
        kept = {name: values[number:] if len(values) > number else values for name, values in arrays.items()}
    np.savez(file, **kept)


@pytest.mark.parametrize("protocol", ["mdlt", "dg"])
@pytest.mark.parametrize("done", [1, 2, None])
def test_a_sweep_whose_data_have_changed_is_not_continued(shared, data, tmp_path, run, protocol, done):
    copy = shutil.copy(data, tmp_path / "copy.npz")
    plan = make(replace(shared, dataset=str(copy), protocol=protocol), ["erm"], trials=2, seeds=2)
    store = Store(tmp_path / "sweep")
    with launcher("inline", store, Resources()) as crew:
        events = drive.sweep(plan, store, crew)
        for _ in islice(events, done):
            pass
        events.close()
    remove_rows(copy)
    before = set(store.results())
    with pytest.raises(ValueError, match=rf"copy\.npz has changed.*{store.path}.*--out"):
        run(plan, store)
    assert set(store.results()) == before


def test_nothing_is_embedded_or_built_when_nothing_is_left_to_do(small, store, run, monkeypatch):
    run(small, store)
    monkeypatch.setattr(drive, "check", None)
    assert set(run(small, store).values()) == {"kept"}


def test_a_damaged_checksum_is_named(small, store, run):
    store.path.mkdir()
    (store.path / "data.json").write_text("{")
    with pytest.raises(ValueError, match=rf"data\.json.*{small.shared.dataset}"):
        run(small, store)


def test_a_full_disk(small, tmp_path, run, undisturbed, outcome_of):
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", disk], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"cannot mount a small file system here: {done.stderr.strip()}")
    try:
        store = Store(disk / "sweep")
        outcomes = run(small, store, "local", workers=2)
        assert "failed" in outcomes.values()
        finished = {key for key, how in outcomes.items() if how == "done"}
        assert set(Store(store.path).results()) == finished
        subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
        again = run(small, store, "local", workers=2)
        assert {key for key, how in again.items() if how == "kept"} == finished
        assert set(again.values()) <= {"kept", "done"} and outcome_of(store) == undisturbed
    finally:
        subprocess.run(["umount", disk], check=True)


def command(plan, out):
    """The program that does `small`."""
    options = f"sweep {plan.shared.dataset} --algorithm erm --algorithm boda:retrain --trials 3 --seeds 2 "
    options += f"--width 8 --steps 12 --batch-size 4 --evaluations 3 --workers 2 --out {out}"
    return [str(Path(sys.executable).parent / "crosstail"), *options.split()]


@pytest.fixture
def started(small, store, in_terminal):
    """The program in a process of its own, when so many runs are finished."""

    def started(finished):
        process = in_terminal(command(small, store.path), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while process.poll() is None and len(list((store.path / "runs").glob("*"))) < finished:
            time.sleep(0.01)
        assert process.poll() is None, process.stderr.read()
        return process

    return started


@pytest.mark.slow
@pytest.mark.parametrize("moments", [(3,), pytest.param((1, 2, 3), marks=pytest.mark.storm)])
def test_a_driver_that_is_killed(small, store, started, run, undisturbed, outcome_of, moments, record_property):
    record_property("kills", len(moments))
    for finished in moments:
        process = started(finished)
        time.sleep(random.Random(finished).uniform(0, 0.1))
        process.kill()
        process.communicate()
        assert gone(process.pid), "its workers go on without it"
    before = set(Store(store.path).results())
    assert moments[-1] <= len(before) < 8
    outcomes = run(small, store)  # another launcher goes on where it was
    assert {key for key, how in outcomes.items() if how == "kept"} == before
    assert outcome_of(store) == undisturbed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("send", "number"),
    [
        (os.killpg, signal.SIGINT),  # as a terminal does
        (os.kill, signal.SIGTERM),
        pytest.param(os.killpg, signal.SIGTERM, marks=pytest.mark.storm),  # as a service manager does
    ],
)
def test_a_stop_is_clean_and_the_same_command_goes_on(small, store, started, undisturbed, outcome_of, send, number):
    process = started(2)
    send(process.pid, number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1 and err.splitlines()[-1].startswith("stopped: "), err
    assert "Traceback" not in err and out == ""
    assert gone(process.pid)
    assert not list((store.path / "work").rglob("lease.*")) and store.failures() == {}
    cli.main(command(small, store.path)[1:])
    assert outcome_of(store) == undisturbed


def test_a_worker_gets_its_share_of_threads_and_gpus(store, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    assert local.gpus() == ["2", "5"] and launcher("local", store, Resources()).workers == 2
    seen = []
    monkeypatch.setattr(local, "Worker", lambda context, store, threads, device: seen.append((threads, device)))
    monkeypatch.setattr(local, "cores", lambda: 6)
    for number in range(3):
        launcher("local", store, Resources(3))._hire(number)
    assert seen == [(2, "2"), (2, "5"), (2, "2")]
    seen.clear()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert local.gpus() == [] and launcher("local", store, Resources()).workers == 6
    for workers, cores in ((1, 6), (2, 6), (4, 6), (8, 6)):
        monkeypatch.setattr(local, "cores", lambda cores=cores: cores)
        launcher("local", store, Resources(workers))._hire(0)
    assert seen == [(6, None), (3, None), (1, None), (1, None)]


@pytest.mark.parametrize(
    ("name", "resources", "message"),
    [
        ("locl", {}, "'locl'.*'local'"),
        ("local", {"workers": 0}, "--workers is 0, expected 1 or more"),
        ("inline", {"workers": 2}, "inline.*--workers"),
        ("inline", {"time_limit": 2}, "inline.*--time-limit"),
    ],
)
def test_a_mistake_is_named(store, name, resources, message):
    with pytest.raises(ValueError, match=message):
        launcher(name, store, Resources(**resources))


def test_a_plan_that_cannot_work_on_the_data_is_refused_before_any_run(shared, store, run):
    for changes, message in (
        ({"backbone": "small_cnn"}, "small_cnn"),
        ({"width": 0}, "width is 0"),
    ):
        with pytest.raises(ValueError, match=message):
            run(make(replace(shared, **changes), ["erm"], trials=2), Store(store.path / message[:5]))
        assert not (store.path / message[:5] / "work").exists()
