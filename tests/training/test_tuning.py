"""`--tune last`: what follows a cut of a network is trained on kept activations, and goes part of the way."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import msgspec
import numpy as np
import pytest
import torch
from tests.interruption import stop
from tests.training.test_devices import TWO
from tests.training.test_resume import outcome

from crosstail import backbones
from crosstail.data import to_input
from crosstail.metrics import Answers, value_on
from crosstail.prediction.export import export
from crosstail.prediction.predictor import Predictor
from crosstail.reports.document import markdown
from crosstail.reports.run.model_card import model_card
from crosstail.reports.run.page import run_document
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder
from crosstail.training.refit import refit_spec
from crosstail.training.resolve import resolve
from crosstail.training.run_data import load_inputs
from crosstail.training.tuned_share import between, choose, tempered

SHARES = (0, 0.25, 0.5, 0.75, 1)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with small noisy pictures of two domains and three classes."""
    folder = tmp_path_factory.mktemp("tuning")
    rng = np.random.default_rng(0)
    y, domain = np.tile([0, 1, 2], 30), np.repeat([0, 1], 45)
    x = rng.integers(0, 200, (90, 16, 16, 3))
    for i in range(90):
        x[i, 4 * y[i] : 4 * y[i] + 5, :, domain[i]] += 40
    np.savez(folder / "pictures.npz", x=x.astype(np.uint8), y=y, domain=domain)
    return folder


@pytest.fixture
def spec(place):
    data = str(place / "pictures.npz")
    return RunSpec(dataset=data, tune="last", resolution=64, steps=8, evaluations=2, batch_size=8, augment=True)


@pytest.fixture(scope="module")
def run(place):
    data = str(place / "pictures.npz")
    spec = RunSpec(dataset=data, tune="last", resolution=64, steps=8, evaluations=2, batch_size=8, augment=True)
    return train_run(spec, place / "run")


def kept(spec):
    return load_inputs(resolve(spec)).embedded()


def test_kept_activations_are_those_of_the_front_and_mirrored_ones_their_mirror_image(spec):
    inputs = load_inputs(resolve(spec))
    x, rows = inputs.embedded().x, np.array([3, 80, 3])
    whole = backbones.build("efficientnet_lite0", (3, 16, 16), resolution=64).eval()
    with torch.no_grad():
        images = to_input(inputs.samples.x[rows])
        expected, features = whole.divided(1).front(images).numpy(), whole(images).numpy()
    np.testing.assert_allclose(x[rows], expected, rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(x.features[rows], features, rtol=1e-3, atol=1e-4)
    assert x.shape == (90, 192, 2, 2) and x.views == 2 and x[rows].dtype == np.float16
    one, other = x[rows, np.zeros(3, int)], x[rows, np.array([1, 0, 1])]
    assert (other[1] == one[1]).all() and (other[0] == one[0][:, :, ::-1]).all() and (other[2] == other[0]).all()
    assert (x.take(rows)[[1]] == x[[80]]).all() and (x[5] == x[[5]]).all()


def test_activations_beyond_the_budget_are_computed_and_the_note_says_so(spec):
    inputs, every = load_inputs(resolve(replace(spec, cache="0.068MB"))), kept(spec).x
    some = inputs.embedded().x
    assert 16 <= (some.place[:, 0, 0] >= 0).sum() < 90
    np.testing.assert_allclose(some[:], every[:], rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(some[:, 1], every[:, 1], rtol=2e-3, atol=2e-3)
    assert "44 of 90 images" in inputs.notes()[0] and " ms for each; all take 0.0 GB" in inputs.notes()[0]


def test_a_budget_below_one_batch_says_how_much_is_needed(spec):
    with pytest.raises(
        ValueError, match=r"room for the activations of 13 images, 1,536 bytes.*a batch has 16.*--cache"
    ):
        kept(replace(spec, cache="0.02MB"))


def test_views_and_mirror_images_are_shown_at_random(spec):
    x = kept(replace(spec, views=2)).x
    assert x.place.shape[1] == 3 and x.views == 6
    assert len({x[[7], np.array([v])].tobytes() for v in range(6)}) == 6
    assert kept(replace(spec, augment=False)).x.views == 1


def test_share_0_gives_the_answers_of_a_frozen_network(spec, tmp_path):
    none = replace(spec, tune="none", algorithm="frozen", second_stage="blend", augment=None)
    one = train_run(replace(spec, tuned_share=0.0, second_stage="blend"), tmp_path / "one").held_out
    other = train_run(none, tmp_path / "other").held_out
    assert (one.every.log_p == other.every.log_p).all() and (one.every.predicted == other.every.predicted).all()


def test_the_share_is_recorded_with_all_that_were_tried(run):
    tuned, result = run.result.tuned, run.result
    assert [one.share for one in tuned.tried] == list(SHARES) and tuned.share in SHARES
    chosen = next(one for one in tuned.tried if one.share == tuned.share)
    assert chosen.log_loss <= result.validation.log_loss + 1e-3
    assert chosen.pair_average == pytest.approx(result.validation.pair_average)
    assert tuned.tried[0].low is None and all(one.low < one.high for one in tuned.tried[1:])


def test_the_model_has_the_weights_at_the_share(spec, tmp_path):
    weights = {}
    for share in (0.0, 0.5, 1.0):
        weights[share] = RunFolder(train_run(replace(spec, tuned_share=share), tmp_path / f"{share}").path).weights()
    moved = 0
    for name, first in weights[0.0].items():
        if name.startswith("backbone.") and first.is_floating_point():
            middle = (first.double() + weights[1.0][name].double()) / 2
            torch.testing.assert_close(weights[0.5][name].double(), middle, rtol=1e-5, atol=1e-6)
            moved += not torch.equal(first, weights[1.0][name])
    assert moved > 10


def test_between_leaves_numbers_that_are_no_floats():
    first, last = {"a": torch.zeros(2), "n": torch.tensor(3)}, {"a": torch.ones(2), "n": torch.tensor(7)}
    assert between(first, last, 0.25)["a"].tolist() == [0.25, 0.25] and between(first, last, 0.25)["n"] == 3


def answers(margins, group=None, counts=((5, 5),), y=None):
    """Answers to samples of two classes, by how much the score of the true class is above that of the other."""
    y = np.arange(len(margins)) % 2 if y is None else y
    scores = np.where(y == 0, margins, -np.asarray(margins))[:, None] * [0.5, -0.5]
    log_p = scores - np.logaddexp(*scores.T)[:, None]
    names = {"domains": [str(d) for d in range(len(counts))], "classes": ["x", "y"], "counts": np.array(counts)}
    known = {"log_p": log_p, "true": log_p[np.arange(len(y)), y], "predicted": log_p.argmax(1)}
    return Answers(**names, y=y, domain=0 * y, group=group, **known)


def by_loops(answers):
    """The log loss of each sample, at the best of many temperatures, and its mean over pairs."""
    best = None
    for sharpness in np.exp(np.linspace(-5, 5, 2001)):
        losses = [
            np.log(np.exp(sharpness * p).sum()) - sharpness * p[y]
            for p, y in zip(answers.log_p, answers.y, strict=True)
        ]
        means = [np.mean([loss for loss, y in zip(losses, answers.y, strict=True) if y == c]) for c in (0, 1)]
        if best is None or np.mean(means) < best[0]:
            best = np.mean(means), losses
    return best


def test_each_share_is_compared_at_its_own_temperature():
    rng = np.random.default_rng(3)
    said = answers(3 * rng.normal(0.5, 1, 40))
    mean, losses = by_loops(said)
    assert value_on(tempered(said), "log_loss") == pytest.approx(mean, abs=1e-6)
    np.testing.assert_allclose(-tempered(said).true, losses, atol=0.01)
    assert mean < value_on(said, "log_loss") - 0.1
    unseen = replace(said, counts=np.array([[5, 0]]))  # samples of a class that has none in training say nothing
    of_first = said.keep(said.y == 0)
    np.testing.assert_allclose(tempered(unseen).log_p[said.y == 0], tempered(of_first).log_p)
    sure = {0.0: answers(rng.normal(0.5, 1, 400)), 1.0: answers(9 * rng.normal(1.2, 1, 400))}
    assert value_on(sure[1.0], "log_loss") > value_on(sure[0.0], "log_loss") and choose(sure).share == 1


def test_a_class_without_training_samples_does_not_set_the_temperature():
    margins = 3 * np.random.default_rng(3).normal(0.5, 1, 40)
    said = answers(np.where(np.arange(40) % 2, -1e4, margins), counts=((5, 0),))
    np.testing.assert_allclose(tempered(said).keep(said.y == 0).log_p, tempered(said.keep(said.y == 0)).log_p)


def test_the_smallest_share_is_chosen_that_the_best_does_not_beat():
    rng = np.random.default_rng(0)
    base, noise = rng.normal(0.3, 1, 300), rng.normal(size=(5, 300))
    made = lambda gains, spread: {  # noqa: E731
        share: answers(base + gain + spread * e) for share, gain, e in zip(SHARES, gains, noise, strict=True)
    }
    assert choose(made((0, 0.5, 1, 1, 0.9), 0.1)).share == 0.5
    assert choose(made((0, 0.01, 0.02, 0.03, 0.04), 1.0)).share == 0
    found = choose(made((0, 0.5, 1, 1, 0.9), 0.1))
    assert [one.share for one in found.tried] == list(SHARES) and found.tried[2].high < 0 and "paired test" in found.why


def test_samples_of_a_group_count_as_one_and_pairs_weigh_the_same():
    rng = np.random.default_rng(1)
    gain = np.repeat(rng.normal(0.5, 1, 6), 50)  # six patients of fifty photos
    base = rng.normal(0.3, 1, 300)
    said = lambda group: {0.0: answers(base, group), 1.0: answers(base + gain, group)}  # noqa: E731
    assert choose(said(None)).share == 1 and choose(said(np.repeat(np.arange(6), 50))).share == 0
    # 270 samples of the first pair get better by a little, 30 of the second worse by more.
    y = np.r_[np.zeros(270, int), np.ones(30, int)]
    before, after = answers(base, y=y), answers(base + np.where(y == 0, 0.4, -2), y=y)
    assert after.true.mean() > before.true.mean() and choose({0.0: before, 1.0: after}).share == 0


def test_where_many_pairs_are_empty_validation_does_not_choose():
    rng = np.random.default_rng(0)
    said = lambda counts: {share: answers(rng.normal(share, 1, 400), counts=counts) for share in SHARES}  # noqa: E731
    assert choose(said([[5, 5], [5, 5], [5, 0]])).share > 0
    found = choose(said([[5, 5], [5, 0]]))
    assert found.share == 0 and found.why.startswith("1 of 4 pairs have no training samples")


@pytest.mark.parametrize("point", [("stage 1", 3), ("choosing how far to tune", 2)])
def test_an_interrupted_run_gives_the_same_to_the_bit(spec, run, tmp_path, point):
    stop(spec, tmp_path / "run", *point)
    train_run(spec, tmp_path / "run")
    assert outcome(tmp_path / "run") == outcome(run.path)


def test_two_processes_share_batches_of_activations(spec, run, tmp_path):
    (tmp_path / "two.py").write_text(TWO)
    (tmp_path / "specs.jsonl").write_text(json.dumps(vars(resolve(spec))) + "\n")
    command = [sys.executable, str(tmp_path / "two.py"), str(tmp_path / "specs.jsonl"), str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    two = RunFolder(tmp_path / resolve(spec).key).finished_result()
    assert two.tuned.share == run.result.tuned.share
    assert two.validation.log_loss == pytest.approx(run.result.validation.log_loss, rel=1e-2)


def test_a_tuned_run_predicts_and_is_exported_like_any_other(run, tmp_path):
    predictor, test = Predictor(run.path), run.held_out.test
    found = predictor.scored(predictor.features(np.asarray(run.dataset.x[test.row])))
    np.testing.assert_allclose(found, test.log_p, atol=0.05)
    features = predictor.features_of(run.dataset.x, 8)(test.row)
    torch.testing.assert_close(features, predictor.features(np.asarray(run.dataset.x[test.row])))
    for name, format in (("m.onnx", "onnx"), ("m.pt2", "torch")):
        check = export(run.path, tmp_path / name, format, dataset=run.dataset)
        assert check.samples == len(test) and check.largest_difference < 1e-4
    assert run.model().embed(torch.from_numpy(run.inputs.embedded().x[test.row]).float()).shape == (len(test), 1280)


def test_the_page_and_the_card_say_what_tuning_gained(run):
    page, card = run_document(run, None), markdown.render(model_card(run, None, []))
    share, tuned = f"{100 * run.result.tuned.share:.0f} % of the way", run.result.tuned
    (start,) = [i for i, block in enumerate(page.blocks) if getattr(block, "text", "") == "What tuning gained"]
    said, table = page.blocks[start + 1 : start + 3]
    assert share in said.text and tuned.why in said.text and share in card
    assert [row[0] for row in table.rows] == ["0", "0.25", "0.5", "0.75", "1"]
    assert table.rows[1][1] == f"{100 * tuned.tried[1].pair_average:.1f}" and " to " in table.rows[1][3]
    assert "the last step of stage one: validation chose only how far to tune" in card


def test_the_final_model_takes_the_lower_of_the_shares_in_the_middle(run):
    results = [
        msgspec.structs.replace(run.result, tuned=msgspec.structs.replace(run.result.tuned, share=share))
        for share in (1, 0.75, 0, 0.5)
    ]
    found = refit_spec(results)
    assert found.tuned_share == 0.5 and found.stop_at == (*run.result.selected_steps,)


@pytest.mark.parametrize(
    ("method", "head"),
    [(("erm", None), None), (("erm", "retrain"), None), (("boda+coral", "tau_norm"), None), (("erm", "ncm"), "mlp")],
)
def test_any_algorithm_second_stage_and_head_tunes(spec, tmp_path, method, head):
    algorithm, stage = method
    own = replace(spec, algorithm=algorithm, second_stage=stage, head=head, steps=2, evaluations=1)
    result = train_run(own, tmp_path / "run").result
    assert result.tuned.tried == [] if stage in (None, "retrain") else len(result.tuned.tried) == 5
    Predictor(tmp_path / "run").features(np.zeros((2, 16, 16, 3), np.uint8))


def test_a_transformer_is_tuned_on_its_tokens(spec, tmp_path):
    torch.manual_seed(0)
    built = backbones.build("timm:vit_tiny_patch16_224", (3, 224, 224), weights="random")
    torch.save(built.layers.state_dict(), tmp_path / "vit.pth")
    own = replace(spec, backbone="timm:vit_tiny_patch16_224", weights=str(tmp_path / "vit.pth"), steps=2)
    assert kept(own).x.views == 1 and kept(own).x.ndim == 3
    assert train_run(own, tmp_path / "run").result.tuned.share in SHARES


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"algorithm": "frozen"}, "frozen trains no backbone: add --tune none"),
        ({"tune": "last:9"}, "efficientnet_lite0 has 7 stages: --tune last:9 is too many, use all"),
        ({"stop_at": (2, 0)}, "no validation samples to choose the share of tuned weights: add --tuned-share"),
        ({"backbone": "small_cnn", "resolution": None}, "small_cnn.*no pretrained weights for --tune last"),
    ],
)
def test_what_cannot_be_tuned_says_so(spec, tmp_path, changes, words):
    with pytest.raises(ValueError, match=words):
        train_run(replace(spec, second_stage="blend", **changes), tmp_path / "run")
