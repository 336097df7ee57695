"""How many answers need no look: the shares against loops, and whether new samples keep the promise."""

import numpy as np
import pytest

from crosstail.metrics import Answers
from crosstail.metrics._calibration import Calibration
from crosstail.prediction.cross_fit import covered
from crosstail.prediction.sets import PredictionSets
from crosstail.reports.document import html, markdown
from crosstail.reports.document.model import Card, Cards, Choice, Code, Document, Slider, Table
from crosstail.reports.run.no_look import COVERAGES, no_look_blocks, points

COUNTS = np.array([[90, 10, 20], [30, 60, 5]])
EVIL = "<script>alert(1)</script>"


def drawn(size, seed):
    """Samples of two sites and three classes with calibrated probabilities, the third class hard to tell."""
    rng = np.random.default_rng(seed)
    domain, y = rng.integers(0, 2, size), rng.integers(0, 3, size)
    scores = 2 * np.eye(3)[y] * np.array([1.5, 1.0, 0.4])[y][:, None] + rng.normal(size=(size, 3))
    log_p = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    names = {"domains": ["north", EVIL], "classes": ["a", "b", "c"], "counts": COUNTS}
    return Answers(**names, y=y, domain=domain, predicted=log_p.argmax(1), log_p=log_p)


def found(test):
    given = Calibration.none(test.domains, 3)
    return points(test, COUNTS.astype(float), lambda coverage, prior: covered(test, given, coverage, prior), "train")


def test_shares_and_what_is_right_of_them_are_those_of_loops():
    test = drawn(400, 0)
    given, every = Calibration.none(test.domains, 3), found(test)
    for one in every[COVERAGES.index(0.8)], every[len(COVERAGES) + COVERAGES.index(0.8)]:
        table = covered(test, given, 0.8, one.prior).to_dict("records")
        weight, alone, right = 0.0, 0.0, 0.0
        for d in range(2):
            for c in range(3):
                own = [row for row in table if (row["domain"], row["class"]) == (d, c)]
                w = (COUNTS[d, c] if one.prior else 1) / len(own)
                weight += w * len(own)
                alone += w * sum(row["size"] == 1 for row in own)
                right += w * sum(row["size"] == 1 and row["inside"] for row in own)
        assert one.share == pytest.approx(alone / weight)
        assert one.right.pair_average == pytest.approx(right / alone)


def test_new_samples_are_right_as_often_as_the_page_says():
    kept, new = [], drawn(40_000, 1)
    p = np.exp(new.log_p)
    for seed in range(12):
        test = drawn(150, seed + 2)
        one = found(test)[COVERAGES.index(0.8)]
        own = np.exp(test.log_p)[np.arange(150), test.y]
        sets = PredictionSets.calibrated(own, test.y, test.domain, num_sites=2, num_classes=3, coverage=0.8)
        members = sets.members(p, new.domain)
        sure = members.sum(1) == 1
        low, high = one.right.interval()
        kept.append(low <= members[np.arange(len(new)), new.y][sure].mean() <= high)
    assert sum(kept) >= 10


def test_the_page_has_a_table_for_print_and_names_are_escaped():
    blocks = list(no_look_blocks(found(drawn(300, 0)), ["north", EVIL]))
    page = html.render(Document("t", blocks))
    assert EVIL not in page.split("<main>")[1].split("<script")[0] and page.count("data-at=") == 2 * len(COVERAGES)
    assert "--coverage 0.9 --prior train" in page
    assert "as they come | 0.9 |" in markdown.render(Document("t", blocks))


def test_nothing_is_said_where_nothing_was_measured():
    assert list(no_look_blocks([], ["a"])) == []
    one = Choice("m", "90 %", [Cards([Card("a", "1 %")]), Code("x")])
    assert "1 %" in html.render(Document("t", [Slider("s", [one], 0, Table(header=["a"], rows=[["1"]]))]))
