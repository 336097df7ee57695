"""How often a step makes the host wait for the GPU, for every algorithm, and that a GPU computes what the CPU does."""

import pytest
import torch
from tests.emulated_gpu import CUDA, emulated_gpu, to_gpu

from crosstail import discovery

READS = {"cad": 1, "cond_cad": 1, "ndcl": 3}  # per step; where the number of samples that take part must be known
NAMES = [*discovery.names("crosstail.algorithms"), "bsoftmax+coral", "boda+coral", "boda@reference"]
COUNTS = [[40, 3, 9], [1, 25, 4], [7, 2, 30], [0, 0, 0]]


@pytest.mark.parametrize("name", NAMES)
def test_a_step_reads_nothing_from_a_gpu_which_computes_what_the_cpu_does(tiny, samples, name):
    def updates(algorithm, batches, gpu=None):
        found, reads = [], []
        optimizers = algorithm.optimizers()
        torch.manual_seed(5)
        for algorithm.step, batch in enumerate(batches):
            before = len(gpu.reads) if gpu else 0
            found.append(algorithm.update(batch, optimizers, torch.Tensor.backward))
            reads.append(gpu.reads[before:] if gpu else [])
        return [{term: value.item() for term, value in terms.items()} for terms in found], reads

    batches = [samples(seed) for seed in range(4)]  # long enough for every phase
    algorithm = tiny(name, COUNTS)
    algorithm.steps = len(batches)
    expected, _ = updates(algorithm, batches)
    algorithm = tiny(name, COUNTS)
    algorithm.steps = len(batches)
    with emulated_gpu() as gpu:
        found, reads = updates(to_gpu(algorithm), [batch.to(CUDA) for batch in batches], gpu)
    assert max(map(len, reads)) == READS.get(name, 0), reads
    for on_cpu, on_gpu in zip(expected, found, strict=True):
        assert on_gpu == pytest.approx(on_cpu, rel=1e-6, abs=1e-9)
