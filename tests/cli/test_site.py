"""The domain where it is known: fit shows both tracks, and predict, evaluate and export take a site."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from crosstail.prediction.predictor import UNKNOWN, Predictor
from crosstail.training.folder import RunFolder

SHORT = "--width 8 --steps 60 --batch-size 8 --evaluations 2 --hp lr=0.02"
COUNTS = np.array([[20, 2, 2], [2, 20, 2], [2, 2, 20]])


def save_sites(path, domains=("berlin", "lagos", "quito"), seed=0):
    """Vectors that say little about the class, and the domain says much."""
    rng = np.random.default_rng(seed)
    parts = {"train": COUNTS, "val": COUNTS // 2, "test": COUNTS}
    d, c = (np.concatenate([np.repeat(i.ravel(), n.ravel()) for n in parts.values()]) for i in np.indices((3, 3)))
    x = rng.normal(size=(len(d), 4)) + np.eye(4)[c] + 0.5 * np.random.default_rng(9).normal(size=(3, 4))[d]
    split = np.repeat(list(parts), [n.sum() for n in parts.values()])
    np.savez(path, x=x.astype(np.float32), y=c, domain=d, split=split, domains=list(domains), classes=list("abc"))


@pytest.fixture
def run(crosstail):
    save_sites("v.npz")
    crosstail(f"fit v.npz --algorithm mtl --out run {SHORT}").ok()
    return RunFolder(Path("run")).finished_result()


def oracle(domain):
    """The probabilities of the test samples with MTL's embedding of one domain, or the mean of all."""
    predictor = Predictor(Path("run"))
    model = predictor.algorithm
    with np.load("v.npz") as arrays:
        z = model.backbone(torch.from_numpy(arrays["x"][arrays["split"] == "test"]))
    embedding = model.domain_embedding.mean(0) if domain == UNKNOWN else model.domain_embedding[domain]
    scores = model.head(torch.cat([z, embedding.expand_as(z)], 1))
    return (
        (float(predictor.calibration.sharpness_of(predictor.run.result.domains)[domain]) * scores)
        .softmax(1)
        .detach()
        .numpy()
    )


def save_test_samples():
    with np.load("v.npz") as arrays:
        np.save("x.npy", arrays["x"][arrays["split"] == "test"])


def test_fit_shows_both_tracks_in_80_columns(crosstail, run, full_page):
    done = crosstail(f"fit v.npz --algorithm mtl --out run {SHORT}")
    lines = done.out.splitlines()
    assert max(map(len, lines[:-1])) <= 80
    (line,) = [line for line in lines if line.startswith("pair average")]
    assert line.split()[3:] == [f"{100 * track.test.pair_average:.1f}" for track in (run, run.known)]
    assert "domain unknown" in done.out and "domain known" in done.out
    for file in ("report.html", "model_card.md"):
        text = Path("run", file).read_text(encoding="utf-8")
        assert "domain known" in text and f"{100 * run.known.test.pair_average:.1f}" in text
    assert json.loads(crosstail(f"fit v.npz --algorithm mtl --out run {SHORT} --json").out)["known"]["test"]["hits"]


def test_predict_for_a_site(crosstail, run):
    save_test_samples()
    for words, domain in (("", UNKNOWN), ("--site lagos", 1)):
        done = crosstail(f"predict run x.npy {words}")
        assert done.code == 0 and len(done.err.splitlines()) == 1
        assert done.err.startswith("note: these answers are for pairs that are all equally important")
        rows = list(csv.DictReader(io.StringIO(done.out)))
        found = np.array([[float(row[f"p({name})"]) for name in "abc"] for row in rows])
        np.testing.assert_allclose(found, oracle(domain), atol=2e-6)
        assert {row.get("site") for row in rows} == {"lagos" if words else None}
    records = json.loads(crosstail("predict run x.npy --site quito --json").out)
    assert {record["site"] for record in records} == {"quito"}
    assert [record["class"] for record in records] == ["abc"[c] for c in oracle(2).argmax(1)]
    assert "site" not in json.loads(crosstail("predict run x.npy --json").out)[0]


def test_an_unknown_site_is_named_with_those_there_are(crosstail, run):
    save_test_samples()
    for command, code in (("predict run x.npy", 0), ("export run --out m.pt2 --format torch", 2)):
        done = crosstail(f"{command} --site lagoz")
        said = " ".join(done.err.split())
        assert done.code == code and "'lagoz'" in said and "Did you mean 'lagos'" in said
        assert "berlin, lagos, quito" in said
        done = crosstail(f"{command} --site 7")
        assert (
            done.code == code
            and "Did you mean" not in done.err
            and "berlin, lagos, quito" in " ".join(done.err.split())
        )
    assert not Path("m.pt2").exists()


def test_a_domain_without_training_samples_is_no_site(crosstail):
    save_sites("v.npz")
    crosstail(f"fit v.npz --algorithm mtl --protocol dg --unseen lagos --out run {SHORT}").ok()
    save_test_samples()
    done = crosstail("predict run x.npy --site lagos")
    assert done.code == 0 and "'lagos'" in done.err and "berlin, quito" in done.err


def test_a_model_that_ignores_the_domain_says_so_and_predicts_the_same_classes(crosstail):
    save_sites("v.npz")
    crosstail(f"fit v.npz --algorithm erm --out run {SHORT}").ok()
    save_test_samples()
    plain, done = crosstail("predict run x.npy --json"), crosstail("predict run x.npy --site lagos --json")
    assert done.code == 0 and "note:" in done.err and "erm" in done.err
    records = json.loads(done.out)
    assert {record["site"] for record in records} == {"lagos"}
    assert [record["class"] for record in records] == [record["class"] for record in json.loads(plain.out)]
    done = crosstail("export run --out m.pt2 --format torch --site lagos")
    assert done.code == 0 and "note:" in done.err and "erm" in done.err
    assert "domain lagos only" in Path("m.pt2.md").read_text()  # whose temperature is in the file


def test_the_exported_card_names_the_site(crosstail, run):
    crosstail("export run --out m.pt2 --format torch --site lagos").ok()
    assert json.loads(Path("m.pt2.json").read_text())["site"] == "lagos"
    assert "lagos" in Path("m.pt2.md").read_text(encoding="utf-8").split("## ")[1]
    crosstail("export run --out n.pt2 --format torch").ok()
    assert "unknown" in Path("n.pt2.md").read_text(encoding="utf-8").split("## ")[1]


def test_evaluate_shows_both_tracks_of_the_run(crosstail, run):
    found = json.loads(crosstail("evaluate run v.npz --split test --json").out)
    assert found["hits"] == run.test.hits and found["known"]["hits"] == run.known.test.hits
    assert found["known"]["sites"] == ["berlin", "lagos", "quito"]
    done = crosstail("evaluate run v.npz --split test")
    assert "domain known" in done.out and f"{100 * run.known.test.pair_average:.1f}" in done.out
    assert max(map(len, done.out.splitlines())) <= 80 and "note:" not in done.out


def test_evaluate_matches_domains_by_name_and_leaves_new_ones_unknown(crosstail, run):
    save_sites("new.npz", ("quito", "oslo", "berlin"), seed=5)
    predictor = Predictor(Path("run"))
    with np.load("new.npz") as arrays:
        x, y, d = arrays["x"], arrays["y"], arrays["domain"]
    hits = {"unknown": np.zeros((3, 3), int), "known": np.zeros((3, 3), int)}
    for i in range(len(x)):
        for track, site in (("unknown", UNKNOWN), ("known", [2, UNKNOWN, 0][d[i]])):
            hits[track][d[i], y[i]] += predictor.probabilities(x[i : i + 1], site).argmax() == y[i]
    found = json.loads(crosstail("evaluate run new.npz --json").out)
    assert found["hits"] == hits["unknown"].tolist() and found["known"]["hits"] == hits["known"].tolist()
    assert found["known"]["sites"] == ["quito", "berlin"] and found["hits"][1] == found["known"]["hits"][1]
    assert found["hits"] != found["known"]["hits"]
    (note,) = [line for line in crosstail("evaluate run new.npz").out.splitlines() if line.startswith("note:")]
    assert "oslo" in note and "berlin" not in note
    save_sites("elsewhere.npz", ("oslo", "lima", "cairo"), seed=6)
    assert "known" not in json.loads(crosstail("evaluate run elsewhere.npz --json").out)
    assert "domain known" not in crosstail("evaluate run elsewhere.npz").out


def test_a_single_domain_can_be_named_and_makes_no_difference(crosstail):
    save_sites("all.npz")
    with np.load("all.npz") as arrays:
        own = arrays["domain"] == 0
        parts = {name: arrays[name][own] for name in ("x", "y", "split", "domain")}
    np.savez("v.npz", **parts, domains=["berlin"], classes=list("abc"))
    done = crosstail(f"fit v.npz --algorithm mtl --out run {SHORT}")
    assert done.code == 0 and "domain known" not in done.out
    save_test_samples()
    known, plain = (json.loads(crosstail(f"predict run x.npy --json {site}").out) for site in ("--site berlin", ""))
    for one, other in zip(known, plain, strict=True):
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-6)


def test_folds_and_the_final_model_have_both_tracks(crosstail, full_page):
    save_sites("v.npz")
    command = f"fit v.npz --algorithm mtl --folds 2 --refit --out cv {SHORT}"
    answer = json.loads(crosstail(f"{command} --json").out)
    hits = np.sum([run["known"]["test"]["hits"] for run in answer["runs"]], axis=0).tolist()
    assert answer["known"]["test"]["hits"] == hits and answer["known"]["test"]["shots"]
    assert answer["refit"]["known"]["estimate"]["hits"] == hits
    done = crosstail(command)
    value = f"{100 * answer['known']['test']['pair_average']:.1f}"
    (pooled,) = [line.split() for line in done.out.splitlines() if line.startswith("pooled")]
    assert pooled[2] == f"{100 * answer['test']['pair_average']:.1f}" and pooled[3] == value
    for file in ("report.html", "refit/report.html", "refit/model_card.md"):
        text = Path("cv", file).read_text(encoding="utf-8")
        assert "domain known" in text and value in text
