import numpy as np
import pytest
import torch

from crosstail.second_stages import find
from crosstail.testing import save_separable
from crosstail.training import RunSpec
from crosstail.training.fit import train_run


def test_it_starts_with_the_scores_of_stage_one_and_multiplies_them(features, scores):
    head = find("lws").start(features)
    before = scores(head, features.z)
    np.testing.assert_allclose(before, scores(features.classifier, features.z), rtol=1e-6)
    with torch.no_grad():
        head.scale.copy_(torch.tensor([1.0, 2.0, 3.0, 0.5]))
    found = scores(head, features.z)
    for i, c in np.ndindex(found.shape):
        assert found[i, c] == np.float32([1, 2, 3, 0.5][c]) * before[i, c]
    assert [name for name, _ in head.named_parameters()] == ["scale"]


@pytest.mark.parametrize("average", [None, "moving"])
def test_only_the_factors_differ_from_stage_one_after_training(tmp_path, average):
    save_separable(tmp_path / "v.npz", [[40, 8, 2], [3, 12, 5]])
    size = {"backbone": "mlp", "width": 8, "steps": 30, "batch_size": 8, "evaluations": 1}
    spec = {"dataset": str(tmp_path / "v.npz"), "algorithm": "erm", **size, "stop_at": (30,), "average": average}
    once = train_run(RunSpec(**spec), tmp_path / "once").folder.weights()
    twice = train_run(
        RunSpec(**{**spec, "second_stage": "lws", "stop_at": (30, 30)}), tmp_path / "twice"
    ).folder.weights()
    for name, value in once.items():
        torch.testing.assert_close(twice[name], value, rtol=1e-4, atol=1e-5)
    assert (twice["head.scale"] - 1).abs().max() > 0.05
