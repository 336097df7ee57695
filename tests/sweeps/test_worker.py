"""One run of a sweep: the same as `fit`, resumed where another process stopped, and recorded when it fails."""

import shutil
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.opened import opened

from crosstail.sweeps import worker
from crosstail.sweeps.lease import sign_of
from crosstail.sweeps.store import Failure, Store
from crosstail.sweeps.worker import Job, Outcome, Stopped, execute
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder
from crosstail.training.resolve import resolve


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "sweep")


@pytest.fixture(scope="module")
def spec(shared):
    return resolve(replace(shared, algorithm="boda", second_stage="retrain", hparams={}))


def content(folder):
    """All that a run leaves, except how long it took."""
    here = RunFolder(folder)
    result, *records = (msgspec.structs.replace(value, seconds=0.0) for value in (here.result(), *here.records()))
    weights = {name: value.numpy().tobytes() for name, value in here.load("model.pt").items()}
    return sorted(path.name for path in folder.iterdir()), result, records, weights


@pytest.fixture(scope="module")
def whole(spec, tmp_path_factory):
    """The same run by `crosstail fit`."""
    folder = tmp_path_factory.mktemp("whole")
    train_run(spec, folder, keep=False)
    return content(folder)


def stop_after(store, job, steps):
    """Work on a job until so many steps are done."""
    done = iter(range(steps))
    with pytest.raises(Stopped):
        execute(store, job, lambda: next(done, None) is None)


def test_a_run_is_what_fit_gives(store, spec, whole):
    assert execute(store, Job(spec)) == Outcome(spec.key, "done")
    assert content(store.path / "runs" / spec.key) == whole
    assert execute(store, Job(spec)) == Outcome(spec.key, "done")


@pytest.mark.parametrize("steps", [0, 5, 11, 17])
def test_a_stopped_run_goes_on_in_another_process(store, spec, whole, steps):
    stop_after(store, Job(spec), steps)
    (folder,) = store.unfinished()[spec.key]
    assert not sign_of(folder).exists()  # it was given back
    assert execute(Store(store.path), Job(spec)).how == "done"
    assert content(store.path / "runs" / spec.key) == whole


def test_a_run_that_another_process_works_on_is_left_alone(store, spec):
    lease = store.claim(spec)
    assert execute(Store(store.path), Job(spec)) == Outcome(spec.key, "busy")
    assert list(lease.folder.iterdir()) == [sign_of(lease.folder)]
    lease.give_back()


def test_a_run_that_is_taken_away_ends_without_a_trace(store, spec, whole):
    """As after a suspension: another process has finished the run when this one wakes up."""
    taken = []

    def wake_up():
        if not taken:
            (folder,) = store.unfinished()[spec.key]
            taken.append(execute(Store(store.path), Job(spec, lost=(folder.name,))))
        return False

    assert execute(store, Job(spec), wake_up) == Outcome(spec.key, "busy")
    assert taken == [Outcome(spec.key, "done")]
    assert content(store.path / "runs" / spec.key) == whole
    store.tidy()
    assert store.unfinished() == {}


FAILING = {
    "raise": "raise RuntimeError('no such luck')",
    "nan": "loss = loss * float('nan')",
    "wrong": "raise ValueError('a wrong number')",
}


@pytest.mark.parametrize(
    ("what", "last"),
    [
        ("raise", "RuntimeError: no such luck"),
        ("nan", "the loss term 'cross_entropy' is nan at the first step"),
        ("wrong", "a wrong number"),
    ],
)
def test_a_run_that_fails_says_why(store, shared, own, what, last):
    spec = resolve(replace(shared, algorithm=own(what, FAILING[what])))
    for attempt in (1, 2):
        outcome = execute(store, Job(spec))
        assert outcome.how == "failed" and last in outcome.error[-1] and len(outcome.error) <= worker.LINES
        failure = store.failures()[spec.key]
        assert failure == Failure("error", outcome.error, attempt)
    assert not store.has(spec.key) and store.results() == {}


def test_a_failure_on_a_full_disk_is_reported(store, spec, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("crosstail.training.folder.write_json", full)
        patch.setattr("crosstail.sweeps.store.write_json", full)
        outcome = execute(store, Job(spec))
    assert outcome.how == "failed" and "No space left" in outcome.error[-1]
    with monkeypatch.context() as patch:
        patch.setattr(Store, "claim", full)
        assert "No space left" in execute(store, Job(spec)).error[-1]
    assert execute(store, Job(spec)).how == "done"


DAMAGE = {
    "spec.json": [b"", b"{", b"[]", b'{"dataset": "other"}'],
    "checkpoint.pt": [b"", b"PK garbage", None],
    "stage_one.pt": [b"", None],
    "records.jsonl": [b"", b"garbage\n", b"5\n", None],
    "result.json": [b"", b"{}", b"null", b'{"spec": {"dataset": "other"}}'],
    "failure.json": [b"", b"{}"],
}


@pytest.mark.parametrize(
    ("name", "garbage"), [(name, garbage) for name, contents in DAMAGE.items() for garbage in contents]
)
def test_a_damaged_folder_is_put_aside_and_the_run_starts_over(store, spec, whole, name, garbage):
    """None: the second half is missing."""
    stop_after(store, Job(spec), 17)
    (folder,) = store.unfinished()[spec.key]
    file = folder / name
    if garbage is None:
        garbage = file.read_bytes()[: file.stat().st_size // 2]
    file.write_bytes(garbage)
    assert execute(store, Job(spec)).how == "done"
    found = content(store.path / "runs" / spec.key)
    assert found == whole
    if name != "failure.json":
        (aside,) = (store.path / "damaged").iterdir()
        assert (aside / name).read_bytes() == garbage


def test_a_last_record_that_a_kill_cut_short_is_no_damage(store, spec, whole):
    stop_after(store, Job(spec), 6)
    (folder,) = store.unfinished()[spec.key]
    with (folder / "records.jsonl").open("a") as file:
        file.write('{"stage": 1, "st')
    assert execute(store, Job(spec)).how == "done"
    assert content(store.path / "runs" / spec.key) == whole and not (store.path / "damaged").exists()


@pytest.fixture
def fresh(shared, tmp_path):
    """A spec of data that no other test has loaded, and whether a call opens their file."""
    file = Path(shutil.copy(shared.dataset, tmp_path / "fresh.npz"))

    def opens(call):
        with opened() as files:
            call()
        return file in files

    return replace(shared, dataset=str(file)), opens


def test_data_are_loaded_once_for_runs_that_share_them(store, fresh):
    shared, opens = fresh
    several = {}, {"seed": 1}, {"algorithm": "boda", "hparams": {"nu": 0.5}, "steps": 5, "width": 4}
    specs = [resolve(replace(shared, **changes)) for changes in several]
    loads = [opens(lambda spec=spec: execute(store, Job(spec))) for spec in specs]
    assert loads == [True, False, False] and all(store.has(spec.key) for spec in specs)
    assert opens(lambda: execute(store, Job(replace(shared, data_seed=5))))


def test_with_dg_every_seed_has_its_split_and_the_source_is_loaded_once(fresh):
    shared, opens = fresh
    dg = [replace(shared, protocol="dg", unseen=unseen, seed=seed) for unseen in ("0", "1") for seed in (0, 1)]
    splits = set()
    loads = [opens(lambda spec=spec: splits.add(worker.inputs(spec).samples.split.tobytes())) for spec in dg]
    assert len(splits) == 4 and loads == [True, False, False, False]
    assert worker.inputs(dg[-1]) is worker.inputs(replace(dg[-1], hparams={"lr": 0.1}))


def test_signs_of_life_go_on_while_it_trains(shared, own, tmp_path):
    store = Store(tmp_path / "sweep", patience=1.0)
    spec = resolve(replace(shared, algorithm=own("slow", "time.sleep(0.15)")))
    observer, seen = Store(store.path, patience=1.2), []

    def watch():
        seen.append(observer.claim(spec))
        return False

    began = time.monotonic()
    assert execute(store, Job(spec), watch).how == "done"
    assert time.monotonic() - began > 1.5 and seen == [None] * 12
