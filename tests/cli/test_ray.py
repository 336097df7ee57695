"""embed and predict on a real Ray cluster give what one process gives, also when workers are killed."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from PIL import Image

from crosstail import ray_actors

TINY = "--backbone timm:mobilenetv3_small_050 --resolution 32 --weights w.pth"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")
        started = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 2, "object_store_memory": ray_actors.MEMORY, "include_dashboard": False},
        )
        patch.setenv("RAY_ADDRESS", started.address)
        yield
        started.shutdown()


def test_the_features_and_predictions_of_one_process(cluster, crosstail, monkeypatch):
    rng = np.random.default_rng(0)
    for i in range(40):
        path = Path("photos") / ("day", "night")[i % 2] / ("plain", "striped")[i // 2 % 2] / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (40, 50, 3), dtype=np.uint8)).save(path)
    torch.manual_seed(0)
    torch.save(timm.create_model("mobilenetv3_small_050").state_dict(), "w.pth")

    done = crosstail(f"embed photos {TINY} --views 1 --batch-size 4 --out ray.npz --launcher ray --workers 2").ok()
    monkeypatch.setenv("CROSSTAIL_CACHE", "another")  # nothing is taken over
    crosstail(f"embed photos {TINY} --views 1 --batch-size 4 --out here.npz").ok()
    ours, theirs = np.load("here.npz"), np.load("ray.npz")
    assert ours["x"].shape == (40, 2, 1024)
    for name in ours.files:
        np.testing.assert_array_equal(ours[name], theirs[name])

    fit = "--tune none --algorithm erm --width 8 --steps 20 --batch-size 8 --evaluations 2"
    crosstail(f"fit photos {TINY} {fit} --out run").ok()
    Path("photos/day/plain/0.jpg").write_bytes(b"no picture")
    for launcher in ("inline", "ray"):
        done = crosstail(f"predict run photos --launcher {launcher} --skip-broken --out {launcher}.csv")
        assert done.code == 0 and "photos/day/plain/0.jpg" in done.err
    assert len(Path("ray.csv").read_text().splitlines()) == 40
    assert Path("ray.csv").read_text() == Path("inline.csv").read_text()


def test_rows_whose_worker_dies_go_to_another(cluster, tmp_path, monkeypatch):
    def make():
        def square(rows):
            if rows[0] > 100:
                raise ValueError("photo 101 is broken")
            if rows[0] == 0 and not (tmp_path / "died").exists():
                (tmp_path / "died").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return rows**2

        return square

    found = np.zeros(50, np.int64)
    for rows, squares in ray_actors.map_rows(make, 50, batch=4, workers=2):
        found[rows] = squares
    assert (tmp_path / "died").exists()
    np.testing.assert_array_equal(found, np.arange(50) ** 2)

    with pytest.raises(ValueError, match=r"^photo 101 is broken$"):
        list(ray_actors.map_rows(make, 110, batch=101, workers=1))
    monkeypatch.setattr(ray_actors, "DEATHS", 2)
    with pytest.raises(OSError, match="2 workers have died on rows 0 to 6"):
        list(ray_actors.map_rows(lambda: lambda rows: os.kill(os.getpid(), signal.SIGKILL), 7, batch=8, workers=1))
