"""crosstail graph: the picture of a finished run, its table and its statistics."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest

from crosstail.storage import write_json
from crosstail.testing import save_separable
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.transfer import TransferabilityGraph

COMMON = {"algorithm": "erm", "backbone": "mlp", "width": 8, "steps": 6, "batch_size": 4, "evaluations": 2}


def plain(result):
    return msgspec.to_builtins(result.transferability)


@pytest.fixture
def run(crosstail, vectors):
    """A finished run in the folder `run`."""
    return train_run(RunSpec(dataset=vectors, **COMMON), Path("run")).result


def test_json_has_the_statistics_of_the_result(crosstail, run):
    done = crosstail("graph run --out g.csv --json")
    assert done.code == 0 and done.err == ""
    assert json.loads(done.out) == pytest.approx(plain(run))


def test_text_has_the_same_within_80_columns(crosstail, run):
    done = crosstail("graph run --out g.csv")
    assert done.code == 0 and max(map(len, done.out.splitlines())) <= 80
    for symbol, name in zip("αβγ", ("alpha", "beta", "gamma"), strict=True):
        assert f"{symbol} {plain(run)[name]:.2f} " in done.out
    assert "g.csv" in done.out


def test_very_many_pairs_have_standard_errors(crosstail, run, monkeypatch):
    monkeypatch.setattr("crosstail.training.evaluation.MOST_PAIRS", 3)
    found = json.loads(crosstail("graph run --out g.csv --json").out)
    assert found["beta"] == pytest.approx(plain(run)["beta"], abs=5 * found["errors"]["beta"])
    assert f"± {found['errors']['beta']:.1g}" in crosstail("graph run --out g.csv").out


def test_csv_has_one_row_per_edge(crosstail, run):
    crosstail("graph run --out g.csv").ok()
    frame = pd.read_csv("g.csv")
    present = int((np.array(run.counts) > 0).sum())
    assert len(frame) == present**2 == 25 and (frame["transferability"] >= 0).all()


@pytest.mark.parametrize(("name", "start"), [("g.svg", b"<svg"), ("g.png", b"\x89PNG")])
def test_pictures(crosstail, run, name, start):
    crosstail(f"graph run --out {name}").ok()
    content = Path(name).read_bytes()
    assert content.startswith(start) and len(content) > 2000


def test_a_page_in_the_run_by_default(crosstail, run):
    done = crosstail("graph run")
    assert done.code == 0 and "run/graph.html" in done.out
    assert "erm on v.npz" in Path("run/graph.html").read_text(encoding="utf-8")


def test_two_runs_stand_side_by_side(crosstail, run, vectors):
    other = train_run(RunSpec(dataset=vectors, **{**COMMON, "algorithm": "boda"}), Path("other")).result
    done = crosstail("graph run other")
    assert done.code == 0 and max(map(len, done.out.splitlines())) <= 80
    values = [f"{result.transferability.alpha:.2f}" for result in (run, other)]
    assert done.out.splitlines()[:2] == [
        "run / other",
        f"α {' / '.join(values)}  same class, other domain (small is good)",
    ]
    text = Path("run/graphs.html").read_text(encoding="utf-8")
    assert "erm and boda</h1>" in text and "across domains" in text
    found = json.loads(crosstail("graph run other --json --out g.png").out)
    assert found == [pytest.approx(plain(result)) for result in (run, other)]
    assert Path("g.png").read_bytes().startswith(b"\x89PNG")
    crosstail("graph run run --out g.html")
    assert "run and run align classes across domains equally well" in Path("g.html").read_text(encoding="utf-8")


def test_a_run_with_a_trace_has_a_slider(crosstail, vectors):
    train_run(RunSpec(dataset=vectors, **COMMON, trace=True), Path("traced"))
    crosstail("graph traced").ok()
    text = Path("traced/graph.html").read_text(encoding="utf-8")
    assert '"input":"range","min":0,"max":2' in text and "The slider steps through" in text
    assert crosstail("graph traced --out g.svg").code == 0 and Path("g.svg").stat().st_size > 2000


def test_mahalanobis(crosstail, run):
    euclidean, other = (
        json.loads(crosstail(f"graph run --out g.csv --json --metric {metric}").out)
        for metric in ("euclidean", "mahalanobis")
    )
    assert set(other) == set(euclidean) and other != euclidean


def test_one_domain_has_no_alpha_in_json_and_a_dash_in_text(crosstail):
    save_separable(Path("one.npz"), [[9, 9, 9]])
    train_run(RunSpec(dataset="one.npz", **COMMON), Path("one"))
    found = json.loads(crosstail("graph one --out g.csv --json").out)
    assert found["alpha"] is None and found["gamma"] is None and found["beta"] > 0
    text = crosstail("graph one --out g.csv").out
    assert "α –" in text and "nan" not in text


def test_features_of_another_model(crosstail):
    rng = np.random.default_rng(0)
    y, domain = np.tile([0, 1, 2], 20), np.repeat([0, 1], 30)
    x = (rng.normal(size=(60, 5)) + 3 * y[:, None]).astype(np.float32)
    np.savez("mine.npz", x=x, y=y, domain=domain)
    expected = TransferabilityGraph.from_features(x, y, domain, num_domains=2, num_classes=3)
    found = json.loads(crosstail("graph mine.npz --json").out)
    assert found == pytest.approx(expected.statistics._asdict())
    assert "mine.npz" in Path("mine.graph.html").read_text(encoding="utf-8")
    train = np.arange(60) % 2 == 0
    np.savez("split.npz", x=x, y=y, domain=domain, split=np.where(train, "train", "test"))
    expected = TransferabilityGraph.from_features(x[train], y[train], domain[train], num_domains=2, num_classes=3)
    found = json.loads(crosstail("graph split.npz --out g.csv --json").out)
    assert found == pytest.approx(expected.statistics._asdict())


def test_images_are_no_features(refused):
    np.savez("images.npz", x=np.zeros((4, 8, 8, 3), np.uint8), y=[0, 1, 0, 1], domain=[0, 0, 1, 1])
    assert "expected features" in refused("graph images.npz")


MISTAKES = {
    "graph": "RUN is missing",
    "graph run run run": "two runs",
    "graph run run --out g.csv": "cannot draw to g.csv",
    "graph nowhere": "nowhere: there is no such folder",
    "graph run --metric cosine": "cosine",
    "graph run --out g.gif": "expected a name that ends in .html, .png, .svg or .pdf",
    "graph half --out g.csv": "half is not finished",
}


@pytest.mark.parametrize(("words", "message"), MISTAKES.items(), ids=MISTAKES)
def test_a_mistake_gets_two_lines_and_exit_code_2(refused, run, words, message):
    Path("half").mkdir()
    write_json(Path("half/spec.json"), run.spec)
    assert message in refused(words)
