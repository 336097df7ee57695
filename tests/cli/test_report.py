"""crosstail report on real small runs: the page, the files, and the folders that are skipped."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from crosstail.storage import write_json
from crosstail.training import RunSpec
from crosstail.training.fit import train_run

COMMON = {"backbone": "mlp", "width": 8, "steps": 6, "batch_size": 4, "evaluations": 2}


@pytest.fixture
def runs(crosstail, vectors):
    """Two methods with two seeds each, and one run that was started."""
    for algorithm in ("erm", "boda"):
        for seed in (0, 1):
            spec = RunSpec(dataset=vectors, algorithm=algorithm, seed=seed, **COMMON)
            train_run(spec, Path(f"runs/{algorithm}{seed}"))
    Path("runs/half").mkdir()
    write_json(Path("runs/half/spec.json"), RunSpec(dataset=vectors, seed=2, **COMMON))


def test_the_page_and_the_files_of_every_table_and_chart(crosstail, runs):
    done = crosstail("report runs --out out").ok()
    assert "4 finished runs, 1 folders skipped" in done.out and "runs/half: not finished" in done.out
    page = Path("out/index.html").read_text(encoding="utf-8")
    for name in ("results-v-npz", "domains-v-npz", "hyperparameters", "significance"):
        for suffix in ("csv", "md", "tex"):
            assert Path(f"out/tables/{name}.{suffix}").stat().st_size > 20
    caption = Path("out/tables/paper-v-npz.tex").read_text(encoding="utf-8")
    assert "caption" in caption and "boda" in caption
    for name in ("labels", "gain", "curves", "transferability"):
        for suffix, start in {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}.items():
            assert Path(f"out/charts/{name}-v-npz.{suffix}").read_bytes().startswith(start)
    assert page.count("data-chart=") == 4 and "v.npz: " in page
    frame = pd.read_csv("out/tables/results-v-npz.csv")
    assert set(frame["method"]) == {"erm", "boda"} and set(frame["n"]) == {2}
    tests = pd.read_csv("out/tables/significance.csv")
    assert tests["p"].notna().all() and (tests["low"] <= tests["difference"] + 1e-9).all()


def test_a_baseline_that_was_not_run_is_said(crosstail, runs):
    done = crosstail("report runs --out out --page-only --baseline irm")
    assert done.code == 0 and "'irm'" in done.out and "--baseline" in done.out
    assert not Path("out/charts").exists()


def test_a_resnet18_with_random_weights_has_a_bound(crosstail):
    """As docs/paper.md measures it, with fewer and smaller images."""
    domain, y, split = (index.ravel() for index in np.indices((2, 2, 9)))
    x = np.random.default_rng(0).integers(0, 255, (36, 8, 8, 3), dtype=np.uint8)
    np.savez("images.npz", x=x, y=y, domain=domain, split=np.array(["train", "val", "test"])[split % 3])
    network = "--backbone timm:resnet18 --weights random --resolution 32"
    crosstail(f"fit images.npz {network} --steps 2 --batch-size 3 --evaluations 1 --out run").ok()
    crosstail("report run --graphs run --out out --page-only").ok()
    bounds = pd.read_csv("out/tables/bound.csv")
    assert list(bounds["ν"]) == [0.0, 1.0]
    assert (bounds["empirical"] > bounds["theoretical"]).all() and (bounds["theoretical"] > 0).all()


@pytest.mark.parametrize(("words", "message"), [("nowhere", "there is no such folder"), (".", "no finished run")])
def test_a_mistake_gets_exit_code_2(crosstail, words, message):
    done = crosstail(f"report {words}")
    assert done.code == 2 and message in done.err
