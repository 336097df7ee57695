"""Confusions of the worst pairs against hand-made predictions, with present, missing and absent images."""

import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from crosstail.metrics import Answers
from crosstail.reports.document import html
from crosstail.reports.document.model import Document
from crosstail.reports.run.confusions import (
    NAMED,
    PAIRS,
    SAMPLES,
    confusion_blocks,
    confusion_table,
    failing_pairs,
    failures,
)
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.run import Run

EVIL = "<script>alert(1)</script>"


def answers(shape, *given):
    """From the number of domains and classes, and (domain, class, predicted) of each sample."""
    domain, y, predicted = (np.array(column, np.uint8) for column in zip(*given, strict=True))
    domains, classes = ([f"{letter}{i}" for i in range(n)] for letter, n in zip("dc", shape, strict=True))
    return Answers(
        domains=domains, classes=classes, counts=np.ones(shape, int), y=y, domain=domain, predicted=predicted
    )


def test_the_worst_pairs_with_failures_come_first(finished):
    assert failing_pairs(finished([[9, 10], [3, 0]]).test) == [(1, 1), (1, 0), (0, 0)]
    many = finished(np.arange(12)[None] % 10, totals=[[10] * 12], counts=[[5] * 12])
    assert len(failing_pairs(many.test)) == PAIRS


def test_answers_are_counted_by_frequency():
    given = answers((2, 3), (0, 0, 0), (0, 0, 2), (1, 0, 1), (0, 0, 1), (0, 0, 2), (0, 1, 2))
    assert confusion_table(given, [(0, 0), (0, 1)]).rows == [
        ["d0 / c0", "1 of 4", "2 as c2, 1 as c1"],
        ["d0 / c1", "0 of 1", "1 as c2"],
    ]


def test_rare_answers_are_counted_together():
    given = answers((1, NAMED + 4), *((0, 0, c) for c in range(1, NAMED + 4)), (0, 0, NAMED + 3))
    (row,) = confusion_table(given, [(0, 0)]).rows
    assert row[1:] == ["0 of 9", "2 as c8, 1 as c1, 1 as c2, 1 as c3, 1 as c4, 3 as others"]


def test_failures_are_the_first_in_the_order_of_the_data():
    given = answers((2, 2), (0, 1, 1), *[(0, 1, 0), (1, 1, 0)] * 9)
    assert failures(given, (0, 1)) == [1, 3, 5, 7, 9, 11] and SAMPLES == 6


def blocks(run):
    """The part of the page on confusions."""
    return confusion_blocks(run.test, run.dataset, images=len(run.result.input_shape) == 3)


def shown(run):
    """The same without the script that draws it."""
    return html.render(Document("run", blocks(run))).replace(html._vega(), "")


COMMON = {"backbone": "small_cnn", "algorithm": "erm", "width": 8, "steps": 2, "batch_size": 4}


@pytest.fixture
def images(tmp_path):
    """An .npz of random images, so that most answers are wrong, with a hostile class name."""
    rng = np.random.default_rng(0)
    y, domain = np.tile([0, 1, 2], 40), np.repeat([0, 1], 60)
    x = rng.integers(0, 256, (120, 12, 12, 3)).astype(np.uint8)
    split = np.array(["train", "val", "test", "test"])[np.arange(120) // 3 % 4]
    np.savez(tmp_path / "i.npz", x=x, y=y, domain=domain, split=split, classes=[EVIL, "cat", "dog"], domains=["a", "b"])
    return tmp_path / "i.npz"


def test_images_of_an_array_are_shown_until_they_are_gone(images, tmp_path):
    train_run(RunSpec(dataset=str(images), **COMMON), tmp_path / "run")
    run = Run(tmp_path / "run")
    text = shown(run)
    alternatives = re.findall(
        r'<img alt="([^"]*)" title="[^"]*" width="160" height="160" class="small" src="data:image/jpeg', text
    )
    assert alternatives and EVIL not in text and "&lt;script&gt;" in text and len(text) < 1_000_000
    assert len(alternatives) == sum(len(failures(run.test, pair)) for pair in failing_pairs(run.test))
    assert re.fullmatch(r"[ab] / .* predicted as .*: test sample \d+", alternatives[0])
    images.unlink()
    text = shown(Run(tmp_path / "run"))
    assert "<img" not in text and "images are missing or have changed" in text and "mistaken for</th>" in text


def test_images_that_have_changed_are_not_shown(images, tmp_path):
    train_run(RunSpec(dataset=str(images), **COMMON), tmp_path / "run")
    with np.load(images) as arrays:
        changed = {**arrays, "x": 255 - arrays["x"]}
    np.savez(images, **changed)
    assert "<img" not in shown(Run(tmp_path / "run"))


def test_images_of_a_folder_are_shown_with_their_paths(tmp_path):
    rng = np.random.default_rng(0)
    for place in ("a/cat", "a/dog", "b/cat", "b/dog"):
        (tmp_path / "photos" / place).mkdir(parents=True)
        for i in range(12):
            pixels = rng.integers(0, 256, (20, 30, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / place / f"{i}.png")
    train_run(RunSpec(dataset=str(tmp_path / "photos"), resolution=16, **COMMON), tmp_path / "run")
    text = shown(Run(tmp_path / "run"))
    assert re.search(r'<img alt="[ab] / (cat|dog) predicted as (cat|dog): [ab]/(cat|dog)/\d+\.png"', text)


def test_vectors_have_numbers(finished):
    run = finished([[10, 9], [10, 10]])
    text = shown(run)
    assert "d0 / c1: 19 as c0" in text and "<img" not in text
    assert blocks(run.knowing(test=None)) == []


def test_a_run_without_failures_has_no_such_part(finished):
    assert blocks(finished([[10, 10], [10, 10]])) == []
    run = finished([[10, 9], [10, 10]])
    right = replace(run.test, predicted=run.test.y)  # not what the result says
    assert blocks(run.knowing(test=right)) == []
