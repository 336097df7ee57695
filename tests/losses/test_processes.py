"""`BoDALoss` under DistributedDataParallel: two processes give the steps of one with the whole batch."""

import json
import os
import subprocess
import sys
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from crosstail.losses import BoDALoss

COUNTS = torch.tensor([[90, 6, 2], [3, 70, 0], [20, 1, 30]])
# Samples of process 0 and of process 1 in each step; those of the third step are of one domain in process 1.
SIZES = [(12, 12), (3, 17), (9, 8), (0, 11), (14, 2)]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"rescaled": True, "nu": 0.5},
    {"covariance": "diagonal", "pooled": True},
    {"covariance": "low_rank"},
    {"reduction": "sum"},
    {"reduction": "positives", "balanced": False},
    {"reduction": "none"},
    {"reduction": "none", "rescaled": True},
    {"negatives": 4, "validate": False},
]
pytestmark = pytest.mark.slow
ONE_OF_TWO = """
import json, sys
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from tests.losses.test_processes import OPTIONS, trained

rank, folder = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
found = [trained(options, rank, DistributedDataParallel) for options in [*OPTIONS, {"synchronise": False}]]
open(f"{folder}/{rank}.json", "w").write(json.dumps(found))
dist.destroy_process_group()
"""


class Model(nn.Module):
    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 4))
        self.criterion = BoDALoss(*COUNTS.shape, 4, COUNTS, **options)

    def forward(self, x: Tensor, y: Tensor, domain: Tensor) -> Tensor:
        return self.criterion(self.body(x), y, domain)


def batches() -> list[list[Tensor]]:
    torch.manual_seed(1)
    found = []
    for step, sizes in enumerate(SIZES):
        pair = torch.multinomial((COUNTS > 0).double().flatten(), sum(sizes), replacement=True)
        domain = pair // 3
        if step == 2:
            pair[sizes[0] :] = torch.arange(sizes[1]) % 2  # 0 and 1, of domain 0
            domain = pair // 3
        found.append([torch.randn(sum(sizes), 5, dtype=torch.float64), pair % 3, domain])
    return found


def trained(options: dict[str, Any], rank: int | None, wrap: Any = lambda model: model) -> dict[str, Any]:
    """Losses, weights and statistics after a step on each batch, or on the part of it that a process has."""
    torch.manual_seed(0)
    model = Model(options).double()
    wrapped, losses = wrap(model), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (batch, sizes) in enumerate(zip(batches(), SIZES, strict=True)):
        torch.manual_seed(step)  # of the sampled negatives
        own = slice(None) if rank is None else slice(*[0, *accumulate(sizes)][rank : rank + 2])
        loss = wrapped(*(values[own] for values in batch))
        losses.append(loss.tolist())
        optimizer.zero_grad()
        (loss.sum() / (1 if rank is None else 0.5)).backward() if loss.ndim else loss.backward()
        optimizer.step()
    found = model.state_dict()
    for name in [name for name in found if name.endswith("factor")]:  # the sign of its columns is arbitrary
        found[name] = found[name] @ found[name].mT
    return {"losses": losses, **{name: value.tolist() for name, value in found.items()}}


@pytest.fixture(scope="module")
def of_two(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    folder, root = tmp_path_factory.mktemp("two"), Path(__file__).parents[2]
    paths = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(root / "src"), str(root)])
    command = [sys.executable, "-c", ONE_OF_TWO]
    both = [
        subprocess.Popen([*command, str(rank), str(folder)], env=os.environ | {"PYTHONPATH": paths}, stderr=-1)
        for rank in (0, 1)
    ]
    for process in both:
        said = process.communicate(timeout=120)[1]
        assert process.returncode == 0, said.decode()[-2000:]
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in (0, 1)]


@pytest.mark.parametrize("number", range(len(OPTIONS)), ids=[str(options) for options in OPTIONS])
def test_two_processes_take_the_steps_of_one(number: int, of_two: list[list[dict[str, Any]]]) -> None:
    expected = trained(OPTIONS[number], None)
    for rank in (0, 1):
        found = of_two[rank][number]
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            if name == "losses" and OPTIONS[number].get("reduction") == "none":
                value = [row[:a] if rank == 0 else row[a:] for row, (a, _) in zip(value, SIZES, strict=True)]
            each = zip(found[name], value, strict=True) if name == "losses" else [(found[name], value)]
            for pair in each:
                torch.testing.assert_close(*map(torch.tensor, pair), rtol=1e-6, atol=1e-6, msg=name)


def test_without_it_each_process_counts_its_own_samples(of_two: list[list[dict[str, Any]]]) -> None:
    counted = [torch.tensor(found[-1]["criterion.statistics.counts"]).sum() for found in of_two]
    assert counted[0] < sum(map(sum, SIZES)) > counted[1]
    assert of_two[0][-1]["losses"] != of_two[1][-1]["losses"]


def test_a_group_of_one_process_is_no_group(tmp_path: Path) -> None:
    program = """
import sys
import torch.distributed as dist
from tests.losses.test_processes import OPTIONS, trained

plain = [trained(options, None) for options in OPTIONS]
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}/meeting", rank=0, world_size=1)
assert [trained(options, None) for options in OPTIONS] == plain
dist.destroy_process_group()
"""
    root = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-c", program, tmp_path], cwd=root, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
