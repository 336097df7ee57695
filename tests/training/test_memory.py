"""Large embeddings stay in their file during a run; only out-of-memory errors suggest what to lower."""

import tracemalloc

import numpy as np
import pytest
import torch

from crosstail.data.sources import _npz_members as mapped
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.memory import explain_out_of_memory


@pytest.mark.parametrize("backbone", ["mlp", "identity"])
def test_a_run_on_a_mapped_file_takes_a_fraction_of_it(tmp_path, monkeypatch, backbone):
    """What NumPy allocates is traced; PyTorch has only batches of the inputs."""
    monkeypatch.setattr(mapped, "LARGE", 1 << 20)
    rng = np.random.default_rng(0)
    x, pair = rng.normal(size=(20_000, 512)).astype(np.float32), rng.integers(0, 6, 20_000)
    split = rng.choice(["train", "val", "test"], 20_000, p=[0.8, 0.1, 0.1])
    np.savez(tmp_path / "v.npz", x=x, y=pair % 3, domain=pair // 3, split=split)
    size = x.nbytes
    del x
    short = {"algorithm": "boda", "width": 8, "second_stage": "retrain", "steps": 4, "evaluations": 1}
    spec = RunSpec(dataset=str(tmp_path / "v.npz"), backbone=backbone, **short)
    tracemalloc.start()
    try:
        train_run(spec, tmp_path / "run")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.7 * size, f"{peak / size:.2f} of the file"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:125] DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_a_lack_of_memory_says_what_to_lower(error):
    with (
        pytest.raises(MemoryError, match="--batch-size"),
        explain_out_of_memory("--batch-size"),
    ):
        raise error


def test_a_real_allocation_that_fails():
    with pytest.raises(MemoryError, match="--width"), explain_out_of_memory("--width"):
        torch.empty(1 << 50)


def test_other_errors_stay_what_they_are():
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), explain_out_of_memory("--width"):
        torch.zeros(2, 3) @ torch.zeros(2, 3)
