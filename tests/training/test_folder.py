"""The run folder: atomic writes, recovery after a kill, and errors that name damaged files."""

import errno
import os
import threading
from dataclasses import replace

import msgspec
import numpy as np
import pytest
import torch

from crosstail.metrics import PairAccuracy
from crosstail.storage import write_json
from crosstail.training import RunSpec
from crosstail.training.data_facts import DataFacts
from crosstail.training.folder import RunFolder
from crosstail.training.result import Evaluation, SplitAccuracy

SPEC = RunSpec(dataset="digits", algorithm="boda", hparams={"lr": 0.1})
FACTS = DataFacts(checksum="a" * 64, samples=100, notes=[])


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path / "some" / "run")
    folder.open(SPEC, FACTS)
    return folder


def record(stage, step):
    accuracy = SplitAccuracy.of(PairAccuracy(np.array([[1]]), np.array([[2]])))
    return Evaluation(stage=stage, step=step, seconds=0.1, losses={}, validation=accuracy, test=accuracy)


def test_a_new_folder_holds_its_spec_only(folder):
    assert sorted(path.name for path in folder.path.iterdir()) == ["data.json", "spec.json"]
    assert folder.spec() == SPEC and folder.holds(SPEC)
    assert folder.result() is None and folder.records() == [] and folder.load("checkpoint.pt") is None


def test_asking_does_not_create_the_folder(tmp_path):
    assert not RunFolder(tmp_path / "run").holds(SPEC)
    assert not (tmp_path / "run").exists()


def test_opening_the_same_run_again_changes_nothing(folder):
    before = (folder.path / "spec.json").stat()
    folder.open(replace(SPEC), FACTS)
    assert (folder.path / "spec.json").stat().st_mtime_ns == before.st_mtime_ns


def test_another_run_in_the_folder_is_refused(folder):
    other = RunSpec(dataset="digits", algorithm="erm", seed=3, hparams={"lr": 0.1})
    for act in (lambda: folder.open(other, FACTS), lambda: folder.holds(other)):
        with pytest.raises(ValueError, match=r"its algorithm is 'boda', not 'erm', seed is 0, not 3"):
            act()
    assert folder.spec() == SPEC


def test_what_is_written_is_read_back(folder):
    state = {"step": 3, "weights": {"w": torch.arange(4.0)}, "list": [1, 2.5]}
    folder.save("checkpoint.pt", state)
    found = folder.load("checkpoint.pt")
    assert found["step"] == 3 and found["list"] == [1, 2.5] and torch.equal(found["weights"]["w"], torch.arange(4.0))


def test_what_a_kill_left_half_written_is_ignored_and_cleaned_in_the_end(folder):
    folder.save("checkpoint.pt", {"step": 1})
    for name in ("checkpoint.pt", "result.json", "spec.json"):
        (folder.path / f".4711.part.{name}").write_bytes(b"half")
    assert folder.load("checkpoint.pt") == {"step": 1}
    assert folder.result() is None and folder.spec() == SPEC and folder.records() == []
    folder.finish(None)
    assert sorted(path.name for path in folder.path.iterdir()) == ["data.json", "result.json", "spec.json"]


def test_writers_of_one_file_do_not_take_each_others_for_abandoned(tmp_path):
    file, failed = tmp_path / "data.json", []

    def write():
        try:
            for number in range(300):
                write_json(file, {"number": number})
        except OSError as error:
            failed.append(error)

    threads = [threading.Thread(target=write) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == [] and [path.name for path in tmp_path.iterdir()] == ["data.json"]


@pytest.mark.parametrize("name", ["checkpoint.pt", "result.json", "records.jsonl"])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(folder, name, monkeypatch):
    writes = {
        "checkpoint.pt": lambda step: folder.save("checkpoint.pt", {"step": step}),
        "result.json": lambda step: folder.finish({"step": step}),
        "records.jsonl": lambda step: folder.keep_records(1, step),
    }
    folder.append_record(record(1, 5))
    writes[name](9)
    before = {path.name: path.read_bytes() for path in folder.path.iterdir()}

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError) as caught:
        writes[name](2)
    assert caught.value.errno == errno.ENOSPC and caught.value.filename == str(folder.path / name)
    assert {path.name: path.read_bytes() for path in folder.path.iterdir()} == before


@pytest.mark.parametrize("content", [b"", b'{"dataset": "dig', b"\xff\xfe", b"[1, 2]", b"null"])
@pytest.mark.parametrize("name", ["spec.json", "result.json"])
def test_damaged_json_is_named(folder, name, content):
    (folder.path / name).write_bytes(content)
    with pytest.raises(ValueError) as caught:
        folder.spec() if name == "spec.json" else folder.result()
    assert str(caught.value).startswith(f"{folder.path / name}: ")


def test_a_folder_that_is_no_run_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"is not a run: it has no spec\.json"):
        RunFolder(tmp_path).spec()


@pytest.mark.parametrize("damage", ["truncated", "overwritten", "empty", "text", "flipped"])
def test_a_damaged_checkpoint_is_named(folder, damage):
    folder.save("checkpoint.pt", {"weights": torch.randn(1000)})
    file = folder.path / "checkpoint.pt"
    content = bytearray(file.read_bytes())
    middle = len(content) // 2
    content[middle] ^= 0xFF
    damaged = {
        "truncated": content[:middle],
        "overwritten": bytes(len(content)),
        "empty": b"",
        "text": b"not a checkpoint\n",
        "flipped": content,
    }
    file.write_bytes(damaged[damage])
    with pytest.raises(ValueError) as caught:
        folder.load("checkpoint.pt")
    assert str(caught.value) == f"{file} is damaged. Remove it and run the same command again"


def test_a_checkpoint_cannot_run_code(folder):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(folder.path / "sprung"),))

    torch.save({"trap": Trap()}, folder.path / "checkpoint.pt")
    with pytest.raises(ValueError, match="is damaged"):
        folder.load("checkpoint.pt")
    assert not (folder.path / "sprung").exists()


def test_a_last_record_that_was_cut_short_does_not_count(folder):
    for step in (0, 5):
        folder.append_record(record(1, step))
    whole = (folder.path / "records.jsonl").read_bytes()
    line = msgspec.json.encode(record(1, 10))
    for length in (1, len(line) // 2, len(line) - 1):
        (folder.path / "records.jsonl").write_bytes(whole + line[:length])
        assert RunFolder(folder.path).records() == [record(1, 0), record(1, 5)]
    folder.keep_records(1, 5)
    folder.append_record(record(1, 10))
    for found in (folder, RunFolder(folder.path)):
        assert found.records() == [record(1, 0), record(1, 5), record(1, 10)]


def test_a_record_of_the_wrong_shape_is_named(folder):
    folder.append_record(record(1, 0))
    with (folder.path / "records.jsonl").open("ab") as file:
        file.write(b'{"stage": 1, "step": "five"}\n')
    with pytest.raises(ValueError, match=r"records\.jsonl, line 2: .*\$\.step"):
        RunFolder(folder.path).records()


def test_changed_data_are_refused(folder):
    changed = DataFacts(checksum="b" * 64, samples=94, notes=[])
    for act in (lambda: folder.open(SPEC, changed), lambda: folder.check_data(changed)):
        with pytest.raises(ValueError, match=r"has changed since .*run was started: 100 .* 94 "):
            act()


def test_records_after_the_point_of_return_are_dropped(folder):
    points = [(1, 0), (1, 5), (1, 10), (2, 0), (2, 5)]
    for point in points:
        folder.append_record(record(*point))
    for end in ((2, 5), (2, 0), (2, -1), (1, 5), (1, -1)):
        folder.keep_records(*end)
        assert [(r.stage, r.step) for r in folder.records()] == [point for point in points if point <= end]


def test_records_are_on_disk_before_a_checkpoint_can_be(folder, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.append(os.fstat(descriptor).st_size), real(descriptor)))
    folder.append_record(record(1, 0))
    assert synced == [(folder.path / "records.jsonl").stat().st_size]


def test_accuracies_of_an_older_version_are_read():
    now = msgspec.to_builtins(SplitAccuracy.of(PairAccuracy(np.array([[1, 9]]), np.array([[2, 10]]))))
    assert now.pop("tenth_percentile") == pytest.approx(0.54)
    read = msgspec.convert(now, SplitAccuracy)
    assert read.worst_pair == 0.5 and read.tenth_percentile is None and read.pairs().barely_tested == 1


def test_sizes_that_no_memory_holds_are_an_error_of_the_run(tmp_path):
    from crosstail.training.existing import naming_run

    with pytest.raises(MemoryError, match=f"{tmp_path}: the sizes in its result.json"), naming_run(tmp_path):
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")
    with pytest.raises(RuntimeError, match="another"), naming_run(tmp_path):
        raise RuntimeError("another")


@pytest.mark.parametrize(("name", "read"), [("result.json", RunFolder.result), ("records.jsonl", RunFolder.records)])
def test_a_file_of_the_wrong_shape_is_named_with_a_way_out_for_every_command(tmp_path, name, read):
    """`predict` reads them too, and repeating that would not make them anew."""
    (tmp_path / name).write_text("{}\n")
    with pytest.raises(
        ValueError, match=rf"{name}.*missing required field.*Remove.*`crosstail fit` command of this run"
    ):
        read(RunFolder(tmp_path))
