"""predict and evaluate, on vectors and on photos, without the training data."""

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from crosstail.backbones._frozen import FrozenNetwork
from crosstail.prediction import scoring
from crosstail.prediction.answers import AnswerFile
from crosstail.prediction.predictor import Predictor
from crosstail.training.folder import RunFolder

SHORT = "--width 8 --steps 40 --batch-size 8 --evaluations 2"


@pytest.fixture
def run(crosstail, vectors):
    crosstail(f"fit {vectors} --out run {SHORT}").ok()
    return "run"


@pytest.fixture
def new(vectors):
    """Vectors to be predicted."""
    with np.load(vectors) as file:
        np.save("x.npy", file["x"][:40])
    return "x.npy"


@pytest.fixture
def photos(make_photos):
    return make_photos(12)


@pytest.fixture
def photo_run(crosstail, photos):
    crosstail(f"fit {photos} --out run {SHORT}").ok()
    assert RunFolder(Path("run")).spec().tune == "none"  # own photos are embedded by the pretrained backbone
    return "run"


def test_predictions_are_those_of_the_evaluation_without_the_training_data(crosstail, run, vectors):
    with np.load(vectors) as file:
        x, y, split = file["x"], file["y"], file["split"]
    classes = RunFolder(Path(run)).finished_result().classes
    np.save("x.npy", x[split == "test"])
    Path("v.npz").unlink()
    done = crosstail(f"predict {run} x.npy").ok()
    rows = list(csv.DictReader(io.StringIO(done.out)))
    right = np.mean([row["class"] == classes[c] for row, c in zip(rows, y[split == "test"], strict=True)])
    test = RunFolder(Path(run)).finished_result().test
    assert right == pytest.approx(np.sum(test.hits) / np.sum(test.totals))
    for row in rows:
        shares = {name[2:-1]: float(value) for name, value in row.items() if name.startswith("p(")}
        assert sum(shares.values()) == pytest.approx(1, abs=1e-4)
        assert max(shares, key=shares.get) == row["class"]


def test_evaluate_gives_the_accuracies_of_the_run(crosstail, run, vectors):
    done = crosstail(f"evaluate {run} {vectors} --split test --json")
    found, result = json.loads(done.out), RunFolder(Path(run)).finished_result()
    assert found["hits"] == result.test.hits and found["totals"] == result.test.totals


def test_classes_are_matched_by_name_and_an_unknown_one_is_named(crosstail, run, vectors):
    with np.load(vectors) as file:
        arrays = dict(file) | {"classes": np.array(RunFolder(Path(run)).finished_result().classes)}
    flipped = arrays["classes"][::-1]
    np.savez("flipped.npz", **arrays | {"classes": flipped, "y": len(flipped) - 1 - arrays["y"]})
    done = [crosstail(f"evaluate {run} {name} --split test --json") for name in (vectors, "flipped.npz")]
    first, second = (json.loads(one.out) for one in done)
    assert first["hits"] == second["hits"]
    np.savez("other.npz", **arrays | {"classes": np.array(["zebra", *arrays["classes"][1:]])})
    done = crosstail(f"evaluate {run} other.npz")
    assert done.code == 2 and "zebra" in done.err


def test_wrong_width_of_vectors_is_named(crosstail, run):
    np.save("wide.npy", np.zeros((2, 99), np.float32))
    done = crosstail(f"predict {run} wide.npy")
    assert done.code == 2 and "(99,)" in done.err and "(6,)" in done.err


def test_nan_is_named_with_its_row(run, refused):
    x = np.zeros((3, 6), np.float32)
    x[1, 2] = np.nan
    np.save("nan.npy", x)
    assert "nan.npy: row 1 " in refused(f"predict {run} nan.npy")


def test_an_unfinished_run_cannot_predict(run, refused):
    (Path(run) / "result.json").unlink()
    np.save("x.npy", np.zeros((1, 6), np.float32))
    assert "is not finished" in refused(f"predict {run} x.npy")


def test_photos_from_a_folder_to_predictions_elsewhere(crosstail, photo_run, photos):
    Path("elsewhere").mkdir()
    shutil.copy("photos/day/striped/0.jpg", "elsewhere/ünknown.jpg")
    shutil.copy("photos/night/plain/1.jpg", "one.jpg")
    shutil.rmtree("photos")
    done = crosstail(f"predict {photo_run} elsewhere one.jpg --json").ok()
    said = json.loads(done.out)
    assert [row["input"] for row in said] == ["elsewhere/ünknown.jpg", "one.jpg"]
    assert [row["class"] for row in said] == ["striped", "plain"]


@pytest.fixture
def embedded(monkeypatch):
    """How many photos the frozen network has embedded in each batch."""
    found, embed = [], FrozenNetwork.outputs
    monkeypatch.setattr(FrozenNetwork, "outputs", lambda self, x: found.append(len(x)) or embed(self, x))
    return found


def test_photos_that_training_has_embedded_are_not_embedded_again(crosstail, photo_run, photos, embedded):
    assert crosstail(f"predict {photo_run} {photos}/day --out a.csv").code == 0 and not embedded
    Image.fromarray(np.zeros((40, 40, 3), np.uint8)).save("new.png")
    first, again = (crosstail(f"predict {photo_run} new.png").out for _ in range(2))
    assert first == again and embedded == [1]


def test_without_a_place_for_features_they_are_computed_again(crosstail, photo_run, photos, embedded, monkeypatch):
    Path("file").write_text("no folder")
    monkeypatch.setenv("CROSSTAIL_CACHE", "file/cache")
    assert crosstail(f"predict {photo_run} {photos}/day").code == 0 and sum(embedded) == 24


def test_a_broken_photo_is_named_or_left_out(crosstail, photo_run, photos):
    good = Path("photos/day/plain/0.jpg")
    Path("broken.jpg").write_bytes(good.read_bytes()[:200])
    done = crosstail(f"predict {photo_run} {good} broken.jpg")
    assert done.code == 2 and "broken.jpg" in done.err and len(done.err.splitlines()) <= 2
    done = crosstail(f"predict {photo_run} {good} broken.jpg --skip-broken")
    assert done.code == 0 and "skipped: broken.jpg" in done.err
    assert len(done.out.splitlines()) == 2


def test_nothing_stays_where_no_input_can_be_read(crosstail, photo_run):
    Path("new").mkdir()
    Path("new/a.jpg").write_bytes(b"no image")
    done = crosstail(f"predict {photo_run} new --skip-broken --prior estimate --out a.csv")
    assert done.code == 2 and "a.jpg" in done.err and "new" in done.err
    assert not Path("a.csv").exists() and not list(Path().glob(".a.csv*"))


def test_missing_files_and_folders_without_images_are_named(crosstail, photo_run):
    Path("empty").mkdir()
    assert "nowhere.jpg: " in crosstail(f"predict {photo_run} nowhere.jpg").err
    assert "empty: " in crosstail(f"predict {photo_run} empty").err


def test_domain_generalization_of_own_photos_shows_every_domain(crosstail, photos):
    done = crosstail(f"fit {photos} --protocol dg --algorithm erm --out dg {SHORT}").ok()
    assert {path.name for path in Path("dg").iterdir()} == {"day", "night", "report.html"}
    lines = [line for line in done.out.partition("Next: ")[0].splitlines() if not line.startswith("note: ")]
    assert "mean" in done.out and max(map(len, lines)) <= 80


def test_finetuning_own_photos_augments_them(crosstail, photos):
    words = "--tune all --steps 1 --batch-size 2 --evaluations 1 --algorithm erm"
    crosstail(f"fit {photos} --out fine {words}").ok()
    spec = RunFolder(Path("fine")).spec()
    assert spec.augment and spec.tune == "all" and spec.backbone == "efficientnet_lite0"


def stopped_at_the_third_batch(monkeypatch):
    """Ctrl-C once; the returned list has the sizes of all batches."""
    scored, seen = Predictor.scored, []

    def stopping(predictor, z, *arguments):
        seen.append(len(z))
        if len(seen) == 3:
            raise KeyboardInterrupt
        return scored(predictor, z, *arguments)

    monkeypatch.setattr(Predictor, "scored", stopping)
    return seen


def in_blocks_of_seven(monkeypatch):
    """As if three classes of seven inputs were all that fits into memory."""
    monkeypatch.setattr("crosstail.prediction.answers.MOST", 3 * 7)


@pytest.fixture
def batches_of_seven(monkeypatch):
    monkeypatch.setattr(scoring, "BATCH", 7)


small_batches = pytest.mark.usefixtures("batches_of_seven")


@small_batches
@pytest.mark.parametrize("name", ["a.csv", "a.json"])
@pytest.mark.parametrize("more", ["", "--top 2", "--coverage 0.9 --site 0"])
def test_answers_in_blocks_are_those_of_one_block(crosstail, run, new, monkeypatch, name, more):
    crosstail(f"predict {run} {new} --out whole-{name} {more}").ok()
    in_blocks_of_seven(monkeypatch)
    crosstail(f"predict {run} {new} --out {name} {more}").ok()
    assert Path(name).read_text() == Path(f"whole-{name}").read_text() and not list(Path().glob(f".{name}*"))
    printed = crosstail(f"predict {run} {new} {more} {'--json' if name == 'a.json' else ''}")
    assert printed.out == Path(name).read_text()


@small_batches
def test_a_prevalence_cannot_be_estimated_from_blocks(crosstail, run, new, monkeypatch):
    in_blocks_of_seven(monkeypatch)
    done = crosstail(f"predict {run} {new} --prior estimate")
    assert done.code == 2 and "--prior estimate" in done.err and "at most 7 inputs" in done.err


@small_batches
@pytest.mark.parametrize("again", ["", "--top 1"])
def test_finished_blocks_are_not_predicted_again_with_the_same_options(crosstail, run, new, monkeypatch, again):
    crosstail(f"predict {run} {new} --out whole.csv {again}").ok()
    in_blocks_of_seven(monkeypatch)
    rows, seen = len(np.load(new)), stopped_at_the_third_batch(monkeypatch)
    assert crosstail(f"predict {run} {new} --out a.csv").code == 1
    crosstail(f"predict {run} {new} --out a.csv {again}").ok()
    assert Path("a.csv").read_text() == Path("whole.csv").read_text()
    assert sum(seen) == rows + (3 if again else 1) * 7


def test_a_stop_after_the_answers_were_put_together_loses_none(crosstail, run, new, monkeypatch):
    crosstail(f"predict {run} {new} --out whole.csv").ok()
    with monkeypatch.context() as patch:
        patch.setattr(AnswerFile, "remove", stop)
        assert crosstail(f"predict {run} {new} --out a.csv").code == 1
    crosstail(f"predict {run} {new} --out a.csv").ok()
    assert Path("a.csv").read_text() == Path("whole.csv").read_text() and not list(Path().glob(".a.csv*"))


def stop(*_):
    raise KeyboardInterrupt


def test_only_the_most_probable_classes_are_written_if_asked_for(crosstail, run, new):
    whole = pd.read_csv(io.StringIO(crosstail(f"predict {run} {new}").out))
    best = pd.read_csv(io.StringIO(crosstail(f"predict {run} {new} --top 2").out))
    shares = whole[[name for name in whole if name.startswith("p(")]].to_numpy()
    assert list(best) == ["input", "class", "unlike_training", "class 1", "p 1", "class 2", "p 2"]
    np.testing.assert_allclose(best[["p 1", "p 2"]], -np.sort(-shares, axis=1)[:, :2])
    assert (best["class"] == best["class 1"]).all() and (best["class 1"] != best["class 2"]).all()
    assert "--top is 0" in crosstail(f"predict {run} {new} --top 0").err


def test_inputs_unlike_training_are_flagged_and_a_line_for_each_site_says_what_to_do(crosstail, run, vectors):
    with np.load(vectors) as file:
        x, site = file["x"][file["split"] == "test"][:200], Path(run)
    sites = RunFolder(site).finished_result().domains
    np.save("x.npy", np.concatenate([x, 50 * np.ones((40, x.shape[1]), np.float32)]))
    done = crosstail(f"predict {run} x.npy").ok()
    flags = pd.read_csv(io.StringIO(done.out))["unlike_training"] == "yes"
    assert flags[len(x) :].all() and flags[: len(x)].mean() < 0.2
    assert f"drift: unknown site: {flags.sum()} of {len(flags)} unlike training" in done.err
    np.save("x.npy", x)
    done = crosstail(f"predict {run} x.npy --site {sites[0]} --json").ok()
    assert {row["unlike_training"] for row in json.loads(done.out)} <= {True, False}
    assert f"drift: {sites[0]}: " in done.err
    np.save("x.npy", x + 50)
    assert "They look different." in crosstail(f"predict {run} x.npy").err
    np.save("x.npy", x[:5])
    assert "drift" not in crosstail(f"predict {run} x.npy").err  # too few to say anything


def test_a_model_without_means_flags_nothing(crosstail, vectors, new):
    crosstail(f"fit {vectors} --out erm --algorithm erm {SHORT}").ok()
    done = crosstail(f"predict erm {new}").ok()
    assert "unlike" not in done.out and "drift" not in done.err


def test_a_stopped_prediction_goes_on_unless_something_changed(crosstail, run, monkeypatch):
    np.save("x.npy", np.random.default_rng(1).normal(size=(40, 6)).astype(np.float32))
    monkeypatch.setattr(scoring, "BATCH", 8)
    crosstail(f"predict {run} x.npy --out whole.csv").ok()
    seen = stopped_at_the_third_batch(monkeypatch)
    assert crosstail(f"predict {run} x.npy --out a.csv").code == 1 and not Path("a.csv").exists()
    crosstail(f"predict {run} x.npy --out a.csv").ok()
    assert seen == [8] * (3 + 3) and Path("a.csv").read_text() == Path("whole.csv").read_text()
    assert not list(Path().glob(".a.csv*"))

    seen.clear()
    assert crosstail(f"predict {run} x.npy --out a.csv").code == 1
    np.save("x.npy", np.load("x.npy")[::-1])
    assert crosstail(f"predict {run} x.npy --out a.csv").code == 0 and len(seen) == 3 + 5
