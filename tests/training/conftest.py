import pytest

from crosstail.testing import save_separable
from crosstail.training import RunSpec


@pytest.fixture
def tiny(tmp_path):
    """A function that saves separable vectors in easy.npz, and returns the spec of a short run on them."""

    def make(counts=((12, 9, 2), (0, 9, 12)), **fields):
        save_separable(tmp_path / "easy.npz", counts)
        size = {"backbone": "mlp", "width": 8, "steps": 12, "batch_size": 4, "evaluations": 4}
        return RunSpec(**{"dataset": str(tmp_path / "easy.npz"), "algorithm": "boda", **size, **fields})

    return make
