"""evaluate: what a run was trained on never counts, and its own test split is found again."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from crosstail.data import DataSpec
from crosstail.prediction.evaluate import evaluate_on, load_for
from crosstail.prediction.predictor import Predictor
from crosstail.training.folder import RunFolder

SHORT = "--algorithm erm --width 8 --steps 20 --batch-size 8 --evaluations 2"
CNN = f"--backbone small_cnn --resolution 16 --tune all --no-augment {SHORT}"


def save_unsplit(path, seed=0, per_pair=12):
    """Noisy vectors of 2 domains and 3 classes without a split, so that the split depends on the data seed."""
    rng = np.random.default_rng(seed)
    domain, y = (values.ravel().repeat(per_pair) for values in np.mgrid[:2, :3])
    x = rng.normal(size=(len(y), 6)).astype(np.float32)
    x[np.arange(len(y)), y] += 1
    np.savez(path, x=x, y=y, domain=domain)


@pytest.fixture
def photos(crosstail):
    rng = np.random.default_rng(0)
    for domain in ("day", "night"):
        for name in ("plain", "striped"):
            folder = Path("photos") / domain / name
            folder.mkdir(parents=True)
            for i in range(12):
                Image.fromarray(rng.integers(0, 255, (20, 20, 3)).astype(np.uint8)).save(folder / f"{i}.png")
    return "photos"


def run_of(words, crosstail):
    crosstail(f"fit {words} --out run").ok()
    return RunFolder(Path("run")).finished_result()


def evaluated(crosstail, words):
    done = crosstail(f"evaluate run {words} --json").ok()
    return json.loads(done.out)


@pytest.mark.parametrize("options", ["--data-seed 1", "--seed 2 --protocol dg --unseen 1", "--labels forward:4"])
def test_the_test_split_is_that_of_the_run(crosstail, options):
    save_unsplit("v.npz")
    result = run_of(f"v.npz {SHORT} {options}", crosstail)
    shutil.move("v.npz", "moved.npz")
    found = evaluated(crosstail, "moved.npz --split test")
    assert (found["hits"], found["totals"]) == (result.test.hits, result.test.totals)
    assert found["left_out"] == {"trained": 0, "held_out": 0, "unknown": {}}
    (page,) = Path("run/evaluated").glob("moved-*-test.html")
    assert "held-out data" in page.read_text(encoding="utf-8") and "(new)" not in page.read_text(encoding="utf-8")


def test_the_test_split_of_photos_is_that_of_the_run(crosstail, photos):
    result = run_of(f"photos {CNN} --data-seed 3", crosstail)
    shutil.move("photos", "moved")
    found = evaluated(crosstail, "moved --split test")
    assert (found["hits"], found["totals"]) == (result.test.hits, result.test.totals)


def test_groups_by_pattern_are_those_of_the_run(crosstail, photos):
    by = "--group-by '[0-9]+'"  # the same number in all pairs
    result = run_of(f"photos {CNN} {by}", crosstail)
    assert result.spec.group_by is not None
    found = evaluated(crosstail, f"photos {by} --split test")
    assert (found["hits"], found["totals"]) == (result.test.hits, result.test.totals)
    new = evaluated(crosstail, "photos --split test")  # another split, without the training samples in it
    assert new["left_out"]["trained"] > 0
    done = crosstail("evaluate run photos --group-by patient --split test")
    assert done.code == 2 and "--group-by patient" in done.err and "photos" in done.err


def test_merged_names_are_those_of_the_run(crosstail, photos):
    Path("photos/night/plain").rename("photos/night/Plain ")
    result = run_of(f"photos {CNN} --names merge", crosstail)
    assert result.classes == ["plain", "striped"]
    found = evaluated(crosstail, "photos --names merge --split test")
    assert (found["hits"], found["totals"]) == (result.test.hits, result.test.totals)
    for folder in Path("photos").glob("*/plain"):
        folder.rename(folder.with_name("Plain "))
    again = evaluated(crosstail, "photos --names merge --split test")
    assert again["classes"] == result.classes and again["left_out"]["unknown"] == {}


@pytest.mark.parametrize("options", ["", "--protocol dg --unseen 0"])
def test_the_data_of_the_run_are_not_new(crosstail, options):
    save_unsplit("v.npz")
    result = run_of(f"v.npz {SHORT} {options}", crosstail)
    done = crosstail("evaluate run v.npz")
    trained = np.sum(result.counts) + np.sum(result.validation.totals)
    assert done.code == 2
    assert "0 of the 72" in done.err and f"{trained} samples" in done.err and f"{72 - trained} samples" in done.err
    assert "--split test" in done.err
    for split in ("train", "val"):
        done = crosstail(f"evaluate run v.npz --split {split}")
        assert done.code == 2 and f"'{split}'" in done.err


def test_known_vectors_are_left_out_wherever_they_are(crosstail):
    save_unsplit("v.npz")
    save_unsplit("new.npz", seed=1)
    result = run_of(f"v.npz {SHORT}", crosstail)
    with np.load("v.npz") as old, np.load("new.npz") as new:
        order = np.random.default_rng(0).permutation(144)
        both = {name: np.concatenate([old[name], new[name]])[order] for name in ("x", "y", "domain")}
    np.savez("both.npz", **both | {"x": both["x"].astype(np.float64)})
    np.savez("labelled.npz", **both, split=np.full(144, "test"))
    shutil.move("v.npz", "elsewhere.npz")
    alone, mixed = evaluated(crosstail, "new.npz"), evaluated(crosstail, "both.npz")
    trained = int(np.sum(result.counts) + np.sum(result.validation.totals))
    assert mixed["left_out"] == {"trained": trained, "held_out": 72 - trained, "unknown": {}}
    assert (mixed["hits"], mixed["totals"]) == (alone["hits"], alone["totals"])
    assert alone["left_out"] == {"trained": 0, "held_out": 0, "unknown": {}}
    tested = evaluated(crosstail, "labelled.npz --split test")  # old test samples count where a test split is asked for
    assert tested["left_out"]["trained"] == trained
    assert tested["hits"] == (np.array(alone["hits"]) + result.test.hits).tolist()
    assert f"left out {trained} samples" in crosstail("evaluate run both.npz").out


def test_samples_of_one_group_count_together(crosstail):
    save_unsplit("v.npz")
    save_unsplit("new.npz", seed=1)
    run_of(f"v.npz {SHORT}", crosstail)
    predictor = Predictor(Path("run"))
    plain = load_for(predictor, DataSpec(dataset="new.npz"))
    grouped = evaluate_on(predictor, replace(plain, group=np.arange(len(plain)) // 4)).answers.value()
    alone = evaluate_on(predictor, plain).answers.value()
    assert grouped.squares.tolist() == (4 * alone.totals).tolist() and grouped.hits.tolist() == alone.hits.tolist()


def test_known_images_are_left_out_wherever_they_are(crosstail, photos):
    result = run_of(f"photos {CNN}", crosstail)
    trained = int(np.sum(result.counts) + np.sum(result.validation.totals))
    rng = np.random.default_rng(1)
    for path in sorted(Path("photos").rglob("*.png")):
        path.rename(path.with_name(f"renamed {path.name}"))
    Image.fromarray(rng.integers(0, 255, (20, 20, 3)).astype(np.uint8)).save("photos/day/plain/new.png")
    found = evaluated(crosstail, "photos")
    assert np.sum(found["totals"]) == 1 and found["left_out"] == {
        "trained": trained,
        "held_out": 48 - trained,
        "unknown": {},
    }


def test_known_images_in_arrays_are_left_out(crosstail):
    rng = np.random.default_rng(0)
    domain, y = (values.ravel().repeat(12) for values in np.mgrid[:2, :2])
    x = rng.integers(0, 255, (49, 16, 16, 3)).astype(np.uint8)
    np.savez("old.npz", x=x[:48], y=y, domain=domain)
    np.savez("both.npz", x=x, y=np.append(y, 1), domain=np.append(domain, 0))
    run_of(f"old.npz --backbone small_cnn {SHORT}", crosstail)
    found = evaluated(crosstail, "both.npz")
    assert found["totals"] == [[0, 1], [0, 0]]


def test_a_manifest_with_its_own_columns_is_evaluated(crosstail, photos):
    lines = [f"{path.relative_to('photos')},{path.parts[1]},{path.parts[2]}" for path in Path("photos").rglob("*.png")]
    Path("photos/m.csv").write_text("\n".join(["file,place,kind", *sorted(lines)]))
    columns = "--column path=file --column domain=place --column label=kind"
    result = run_of(f"photos/m.csv {columns} {CNN}", crosstail)
    found = evaluated(crosstail, f"photos/m.csv {columns} --split test")
    assert (found["hits"], found["totals"]) == (result.test.hits, result.test.totals)


def test_a_run_without_the_record_gets_it_from_its_command(crosstail):
    save_unsplit("v.npz")
    run_of(f"v.npz {SHORT}", crosstail)
    Path("run/known.pt").unlink()
    done = crosstail("evaluate run v.npz --split test")
    assert done.code == 2 and "known.pt" in done.err and "crosstail fit" in done.err
    before = Path("run/model.pt").stat().st_mtime_ns
    run_of(f"v.npz {SHORT}", crosstail)
    crosstail("evaluate run v.npz --split test").ok()
    assert Path("run/model.pt").stat().st_mtime_ns == before


def test_unknown_classes_are_counted_and_left_out(crosstail):
    save_unsplit("v.npz")
    save_unsplit("new.npz", seed=1)
    with np.load("new.npz") as arrays:
        np.savez("more.npz", **arrays, classes=["0", "moped", "2"], domains=["0", "clinic"])
        np.savez("other.npz", **arrays, classes=["a", "b", "c"])
    run_of(f"v.npz {SHORT}", crosstail)
    plain, found = evaluated(crosstail, "new.npz"), evaluated(crosstail, "more.npz")
    assert found["left_out"] == {"trained": 0, "held_out": 0, "unknown": {"moped": 24}}
    assert found["hits"] == [[row[0], 0, row[2]] for row in plain["hits"]]
    assert [row[1] for row in found["totals"]] == [0, 0]
    done = crosstail("evaluate run more.npz")
    assert "24 samples" in done.out and "moped" in done.out and "run/evaluated/more-" in done.out
    (file,) = Path("run/evaluated").glob("more-*.html")
    page = file.read_text(encoding="utf-8")
    assert "moped (24)" in page and "clinic (new)" in page and "crosstail evaluate run more.npz" in page
    none = crosstail("evaluate run other.npz")
    assert none.code == 2 and "a, b, c" in none.err and "0, 1, 2" in none.err
