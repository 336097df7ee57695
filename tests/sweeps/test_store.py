"""The store: which process may work on a run, what counts as finished, and what is read of it."""

import errno
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.opened import opened

from crosstail.storage import write_json
from crosstail.sweeps import lease as leases
from crosstail.sweeps.plan import make
from crosstail.sweeps.store import Failure, Store
from crosstail.training import RunSpec

SPEC = RunSpec(dataset="anything")
OTHER_MACHINE = b"another/1 17 12345 000000000001\n"


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


@pytest.fixture
def finish(fake_result):
    """Claim and publish a run that was never trained."""

    def finish(store, spec, accuracy=0.5):
        lease = store.claim(spec)
        write_json(lease.folder / "result.json", fake_result(spec, accuracy, accuracy))
        store.publish(lease, spec.key)

    return finish


def claimed_at_once(store, spec, **options):
    """The leases that are held after six threads have claimed a run."""
    start, won = threading.Barrier(6), []

    def claim():
        own = Store(store.path)
        start.wait()
        won.append(own.claim(spec, **options))

    threads = [threading.Thread(target=claim) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [lease for lease in won if lease is not None and lease.folder.exists()]


def folder_of(store, spec):
    (folder,) = store.unfinished()[spec.key]
    return folder


def test_one_process_claims_and_others_wait(store):
    lease = store.claim(SPEC)
    assert lease.folder.parent.name == "work" and lease.folder.is_dir()
    assert store.claim(SPEC) is None and Store(store.path).claim(SPEC) is None
    lease.give_back()
    again = Store(store.path).claim(SPEC)
    assert again is not None and again.folder != lease.folder and not lease.folder.exists()
    again.give_back()


def test_the_next_holder_gets_what_a_run_left(store):
    lease = store.claim(SPEC)
    (lease.folder / "checkpoint.pt").write_text("state")
    lease.give_back()
    assert (store.claim(SPEC).folder / "checkpoint.pt").read_text() == "state"


def test_of_many_claims_at_once_one_wins(store):
    for seed in range(40):
        spec = replace(SPEC, seed=seed)
        (lease,) = claimed_at_once(store, spec)
        assert store.claim(spec) is None
        lease.give_back()


def test_of_many_takeovers_at_once_one_wins(store):
    for seed in range(40):
        spec = replace(SPEC, seed=seed)
        place = store.path / "work" / f"{spec.key}.dead"
        place.mkdir(parents=True)
        (place / "lease.dead").write_bytes(OTHER_MACHINE)
        (lease,) = claimed_at_once(store, spec, lost=(place.name,))
        lease.give_back()


def test_a_dead_process_of_this_machine_loses_its_lease_at_once(store):
    program = "import sys, os, signal; from pathlib import Path; from crosstail.sweeps.store import Store\n"
    program += "from crosstail.training import RunSpec\n"
    program += "Store(Path(sys.argv[1])).claim(RunSpec(dataset='anything'))\nos.kill(os.getpid(), signal.SIGKILL)"
    subprocess.run([sys.executable, "-c", program, str(store.path)], check=False)
    assert leases.sign_of(folder_of(store, SPEC)).exists()
    assert store.claim(SPEC) is not None


def test_a_process_with_the_id_of_a_dead_one_is_another(store):
    place = store.claim(SPEC).folder
    sign = leases.sign_of(place).read_text().split()
    assert not leases.is_dead(" ".join(sign).encode())
    assert leases.is_dead(" ".join([sign[0], sign[1], "1", sign[3]]).encode())
    assert not leases.is_dead(" ".join(["elsewhere", sign[1], "1", sign[3]]).encode())


def test_on_a_system_without_an_identity_no_process_is_known_to_be_dead(monkeypatch):
    monkeypatch.setattr(leases, "_machine", lambda: leases.UNKNOWN)
    assert not leases.is_dead(f"{leases.UNKNOWN} 999999999 1 0".encode())


@pytest.mark.parametrize("garbage", [b"", b"\xff\xfe\x00", b"x", OTHER_MACHINE, b"1 2 3 4 5 6 7"])
def test_an_unreadable_lease_is_lost_when_it_does_not_change(tmp_path, garbage):
    store = Store(tmp_path, patience=0.2)
    place = tmp_path / "work" / f"{SPEC.key}.a"
    place.mkdir(parents=True)
    (place / "lease.a").write_bytes(garbage)
    assert store.claim(SPEC) is None
    time.sleep(0.3)
    assert store.claim(SPEC) is not None


def test_signs_of_life_keep_a_lease_whatever_the_clocks_say(tmp_path, monkeypatch):
    """File times and the wall clock jump to the future and the past: neither is used."""
    store = Store(tmp_path, patience=0.4)
    place = tmp_path / "work" / f"{SPEC.key}.a"
    place.mkdir(parents=True)
    jumps = iter([0.0, 2e9, -1e9, 4e9] * 100)
    monkeypatch.setattr(time, "time", lambda: next(jumps))
    for beat in range(8):
        (place / "lease.a").write_bytes(OTHER_MACHINE + bytes([65 + beat]))
        when = [0, 4_000_000_000, 1_000][beat % 3]
        os.utime(place / "lease.a", (when, when))
        assert store.claim(SPEC) is None
        time.sleep(0.1)
    for when in (4_000_000_000, 0):  # a new modification time alone is no sign of life
        os.utime(place / "lease.a", (when, when))
        time.sleep(0.25)
    assert store.claim(SPEC) is not None


def test_a_holder_gives_signs_of_life(tmp_path):
    store, other = Store(tmp_path, patience=1.0), Store(tmp_path, patience=1.5)
    lease = store.claim(SPEC)
    signs = set()
    for _ in range(20):
        assert other.claim(SPEC) is None
        signs.add(leases.sign_of(lease.folder).read_bytes())
        time.sleep(0.05)
    assert len(signs) > 5
    lease.end()  # as if suspended
    assert other.claim(SPEC) is None
    time.sleep(1.7)
    assert other.claim(SPEC) is not None


def test_a_holder_that_was_suspended_finds_its_folder_gone_and_spoils_nothing(tmp_path):
    sleeper = Store(tmp_path, patience=1.0).claim(SPEC)
    taken = Store(tmp_path).claim(SPEC, lost=(sleeper.folder.name,))
    for _ in range(100):
        if sleeper.lost:
            break
        time.sleep(0.02)
    assert sleeper.lost and not sleeper.folder.exists()
    with pytest.raises(FileNotFoundError):
        (sleeper.folder / "result.json").write_text("{}")
    sleeper.give_back()
    assert leases.sign_of(taken.folder).exists() and Store(tmp_path).claim(SPEC) is None


def test_a_finished_run_cannot_be_claimed(store, finish):
    finish(store, SPEC)
    assert store.has(SPEC.key) and store.claim(SPEC) is None and store.unfinished() == {}
    assert [path.name for path in (store.path / "runs" / SPEC.key).iterdir()] == ["result.json"]


def test_a_run_that_is_finished_twice_counts_once(store, fake_result):
    late = store.claim(SPEC)
    write_json(late.folder / "result.json", fake_result(SPEC, test=0.9))
    place = store.path / "runs" / SPEC.key
    place.mkdir(parents=True)
    write_json(place / "result.json", fake_result(SPEC, test=0.1))
    store.publish(late, SPEC.key)
    assert store.results()[SPEC.key].test["average"] == 0.1 and store.unfinished() == {}


def test_failures_are_counted_and_gone_with_success(store, finish):
    for attempt in (1, 2):
        lines = ["line", f"attempt {attempt}"]
        store.fail(store.claim(SPEC), "error", lines)
        assert Store(store.path).failures() == {SPEC.key: Failure("error", lines, attempt)}
    finish(store, SPEC)
    assert store.failures() == {}
    assert not (store.path / "runs" / SPEC.key / "failure.json").exists()


def test_an_unreadable_failure_counts_as_none(store):
    lease = store.claim(SPEC)
    lease.give_back()
    for garbage in ("", "{", "[1]", '{"kind": "error"}', '{"wrong": 1}'):
        (folder_of(store, SPEC) / "failure.json").write_text(garbage)
        assert store.failures() == {}


GARBAGE = {
    "empty": lambda whole: b"",
    "truncated": lambda whole: msgspec.json.encode(whole)[:-20],
    "zeros": lambda whole: bytes(500),
    "a list": lambda whole: b"[]",
    "null": lambda whole: b"null",
    "an empty object": lambda whole: b"{}",
    "another run": lambda whole: msgspec.json.encode(whole | {"spec": whole["spec"] | {"seed": 9}}),
    "no accuracies": lambda whole: msgspec.json.encode(whole | {"test": None}),
    "another version": lambda whole: msgspec.json.encode(whole | {"spec": {"dataset": "a", "colour": 1}}),
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_a_file_that_is_not_the_result_is_put_aside_and_the_run_repeated(store, finish, fake_result, garbage):
    content = garbage(msgspec.to_builtins(fake_result(SPEC)))
    good = replace(SPEC, seed=1)
    finish(store, good)
    finish(store, SPEC)
    assert set(store.results()) == {good.key, SPEC.key}
    file = store.path / "runs" / SPEC.key / "result.json"
    file.write_bytes(content)
    for reader in (store, Store(store.path)):  # one that has read it before, and a new one with an old index
        assert set(reader.results()) == {good.key}
    store.tidy()
    assert store.has(good.key) and not store.has(SPEC.key)
    (aside,) = (store.path / "damaged").iterdir()
    assert (aside / "result.json").read_bytes() == content
    finish(store, SPEC, 0.7)
    assert Store(store.path).results()[SPEC.key].validation["pair_average"] == 0.7


def test_a_disk_that_cannot_be_read_puts_nothing_aside(store, finish, monkeypatch):
    finish(store, SPEC)

    def broken(path):
        raise OSError(errno.EIO, "Input/output error", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", broken)
        with pytest.raises(OSError, match="Input/output error"):
            store.tidy()
    store.tidy()
    assert store.has(SPEC.key)


def test_a_move_that_the_network_does_twice_is_one(store, finish, monkeypatch):
    """The reply to the first is lost, and the second finds nothing to move."""
    real = Path.rename

    def twice(source, target):
        real(source, target)
        return real(source, target)

    monkeypatch.setattr(Path, "rename", twice)
    finish(store, SPEC)
    assert set(store.results()) == {SPEC.key} and store.unfinished() == {}
    lease = store.claim(replace(SPEC, seed=1))
    assert lease is not None and lease.folder.exists()
    lease.give_back()


def test_a_folder_without_a_result_is_not_finished(store):
    (store.path / "runs" / SPEC.key).mkdir(parents=True)
    assert store.results() == {}
    store.tidy()
    assert not store.has(SPEC.key)


def test_the_index_is_read_instead_of_the_results_and_rebuilt_when_it_is_lost(store, finish):
    specs = [replace(SPEC, seed=seed) for seed in range(30)]
    for spec in specs:
        finish(store, spec, spec.seed / 100)
    expected = store.results()
    assert [expected[spec.key].test["average"] for spec in specs] == [spec.seed / 100 for spec in specs]
    index = store.path / "index.jsonl"

    def read():
        with opened() as files:
            found = Store(store.path).results()
        return found, sum(file.name == "result.json" for file in files)

    assert read() == (expected, 0)
    whole = index.read_bytes()
    for content in (b"", whole[: len(whole) // 2], b"garbage\n" + whole, bytes(1000), b"[]\n", b"5\n"):
        index.write_bytes(content)
        assert read() == (expected, 30)
    finish(store, replace(SPEC, seed=99))
    found, results = read()
    assert len(found) == 31 and results == 1  # the new run's


def test_a_sweep_works_without_an_index_that_cannot_be_written(store, finish, monkeypatch):
    from crosstail.sweeps import index as indexes

    def full(path, text):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(indexes, "write_whole", full)
    finish(store, SPEC)
    assert set(store.results()) == {SPEC.key} and not (store.path / "index.jsonl").exists()


def test_a_folder_holds_one_sweep_which_may_grow(store, shared):
    plan = make(shared, ["erm"], trials=2)
    store.add(plan)
    store.add(plan)
    store.add(make(shared, ["boda"], trials=3))
    assert len(store.plans()) == 2
    for changes in ({"steps": 99, "evaluations": 5}, {"dataset": "digits"}):
        with pytest.raises(ValueError, match=f"{store.path}.*{'.*'.join(sorted(changes, reverse=True))}"):
            store.add(make(replace(shared, **changes), ["erm"], trials=2))


@pytest.mark.parametrize("garbage", ["", "{", "[]", "{}", '{"shared": 1}'])
def test_a_damaged_plan_is_named(store, shared, garbage):
    store.add(make(shared, ["erm"], trials=2))
    (file,) = (store.path / "plans").iterdir()
    file.write_text(garbage)
    with pytest.raises(ValueError, match=rf"{file.name}.*Remove the file"):
        store.plans()


def test_leftovers_of_a_finished_run_are_removed_unless_a_process_is_in_them(store, finish):
    finish(store, SPEC)
    left, held = (store.path / "work" / f"{SPEC.key}.{name}" for name in ("left", "held"))
    left.mkdir()
    held.mkdir()
    (held / "lease.held").write_bytes(OTHER_MACHINE)
    store.tidy()
    assert not left.exists() and held.exists() and store.has(SPEC.key)


def hidden(store):
    return sorted(file.name for file in store.path.rglob("*") if file.name.startswith((".", "lease.")))


def test_a_full_disk_leaves_no_folder_that_was_only_begun(store, monkeypatch):
    def full(folder, token):
        (folder / f"lease.{token}").touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("crosstail.sweeps.store.sign", full)
    with pytest.raises(OSError, match="No space left"):
        store.claim(SPEC)
    assert hidden(store) == []


def test_what_killed_processes_have_left_is_removed_and_what_living_ones_write_is_not(store, finish):
    finish(store, SPEC)
    (store.path / "runs" / SPEC.key / "lease.1234").write_bytes(b"killed before it was removed")
    dead, living, elsewhere = (store.path / "work" / f".{number}" for number in range(3))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    mine = leases._text(0)
    machine, _, start, number = mine.split()
    for folder, text in (
        (dead, b" ".join((machine, str(ended.pid).encode(), start, number))),
        (living, mine),
        (elsewhere, OTHER_MACHINE),
    ):
        folder.mkdir(parents=True)
        (folder / "lease.0").write_bytes(text)
    (store.path / "work/.begun").mkdir()
    store.tidy()
    assert hidden(store) == [".1", ".2", "lease.0", "lease.0"]


def test_a_run_that_was_published_by_a_process_that_died_then_has_no_sign_of_life(store, finish):
    finish(store, SPEC)
    (store.path / "runs" / SPEC.key / "lease.1234").touch()
    assert store.claim(SPEC) is None and hidden(store) == []


def test_a_folder_that_was_tidied_up_while_it_was_begun_is_begun_again(store, monkeypatch):
    import shutil

    sign = leases.sign

    def late(folder, token):
        if token == "0":
            shutil.rmtree(folder)
        sign(folder, token)

    with monkeypatch.context() as patched:
        patched.setattr("crosstail.sweeps.store.sign", late)
        assert store.claim(SPEC) is None
    assert store.claim(SPEC) is not None
