"""Many runs: in one sweep, the cost is proportional to their number; in one process, nothing grows with it."""

import gc
import threading
import time

import numpy as np
import psutil
import pytest

from crosstail import cli
from crosstail.testing import save_separable

from .many_runs import times


@pytest.mark.slow
def test_status_and_report_take_time_in_proportion_to_the_runs(tmp_path):
    save_separable(tmp_path / "vectors.npz", [[30, 8, 2], [0, 9, 25]])

    def quickest(runs):
        """Of three sweeps: a command takes milliseconds, and the machine may be busy with other things."""
        found = [times(tmp_path / f"{runs} {i}", tmp_path / "vectors.npz", runs, time.process_time) for i in range(3)]
        return {name: min(each[name] for each in found) for name in found[0]}

    few, many = quickest(100), quickest(400)
    # In proportion, 4 times as many runs take 4 times as long; with the square of their number, 16 times.
    assert {name: seconds / few[name] for name, seconds in many.items() if seconds > 8 * few[name]} == {}


def held():
    """Threads, open files and bytes of this process."""
    gc.collect()
    process = psutil.Process()
    return threading.active_count(), process.num_fds(), process.memory_info().rss


@pytest.mark.parametrize(
    ("kind", "fits"),
    [("vectors", 4), *(pytest.param(kind, 50, marks=pytest.mark.storm) for kind in ("vectors", "images"))],
)
def test_fits_in_one_process_leave_no_thread_no_file_and_no_memory(kind, fits, tmp_path, monkeypatch, record_property):
    monkeypatch.chdir(tmp_path)
    save_separable(tmp_path / "vectors.npz", [[30, 8, 2], [0, 9, 25]])
    rng = np.random.default_rng(0)
    x, y, domain = rng.integers(0, 255, (60, 8, 8, 3)).astype(np.uint8), np.arange(60) % 3, np.arange(60) // 30
    np.savez(tmp_path / "images.npz", x=x, y=y, domain=domain)
    backbone = {"vectors": "mlp", "images": "small_cnn"}[kind]
    words = f"fit {kind}.npz --algorithm boda --backbone {backbone} --steps 6 --batch-size 4 --evaluations 2"
    measured = []
    for seed in range(2 + fits):
        cli.main([*words.split(), "--seed", str(seed), "--out", f"run {seed}"])
        measured.append(held())
    (threads, files, before), (threads_after, files_after, after) = measured[1], measured[-1]  # the first one imports
    assert (threads_after, files_after) == (threads, files)
    record_property("kilobytes per fit", round((after - before) / fits / 1000))
    assert after - before < 1e6 * fits
