"""The declared cost of a step, by which races break ties and benchmarks set limits, is what its operations say."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from crosstail import algorithms, backbones
from crosstail.algorithms import Task
from crosstail.data import DomainBatch

COUNTS = torch.tensor([[40, 20, 9, 3], [3, 9, 20, 40], [10, 10, 10, 10]])
PHASES = (0, 900)  # of 1,000 steps: many begin with a phase of their own
NAMES = [entry.name for entry in algorithms.catalogue() if entry.passes]


def operations(name: str, *shape: int) -> int:
    """Multiplications and additions in matrix products and convolutions of a step, in its most expensive phase."""
    found = []
    for step in PHASES:
        torch.manual_seed(0)
        backbone = backbones.build("small_cnn" if len(shape) == 3 else "mlp", shape, 16)
        algorithm = algorithms.build(name, backbone, Task(COUNTS)).train()
        algorithm.step, algorithm.steps = step, 1000
        batch = DomainBatch(torch.rand(12, *shape), torch.arange(12) % 4, torch.arange(12) // 4)
        optimizers = algorithm.optimizers()
        with FlopCounterMode(display=False) as counter:
            algorithm.update(batch, optimizers, torch.Tensor.backward)
        found.append(counter.get_total_flops())
    return max(found)


@pytest.mark.parametrize("name", [*NAMES, "miro+sam"])
def test_a_step_needs_the_passes_that_are_declared(name):
    """Relative to ERM; what is not in the backbone adds 4 % at most."""
    shape = (8192,) if name == "ssp" else (3, 32, 32)  # which needs more on vectors than on images
    found = operations(name, *shape) / operations("erm", *shape)
    assert found == pytest.approx(algorithms.find(name).passes, rel=0.04)
