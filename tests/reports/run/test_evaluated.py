from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from crosstail.data import DomainDataset
from crosstail.metrics import Answers
from crosstail.metrics._calibration import Calibration
from crosstail.prediction.evaluate import Evaluated, LeftOut
from crosstail.reports.document.model import Cards, Heading, Table, Text
from crosstail.reports.run.certainty import Confidence
from crosstail.reports.run.certainty_elsewhere import certainty_json
from crosstail.reports.run.evaluated import domain_table, evaluation_document, side_by_side
from crosstail.reports.run.model_card import accuracy_table
from crosstail.reports.run.tables import headline_table
from crosstail.reports.run.tested import Tested as Shown
from crosstail.training.held_out import HeldOut
from crosstail.training.run import Run


@pytest.fixture
def found():
    """30 new samples of c0 from d0 and 30 from a new domain; d0's are all right, the others all taken for c1."""
    domain, y = np.repeat([0, 1], 30), np.zeros(60, np.int64)
    x, split = np.zeros((60, 4), np.float32), np.full(60, "test")
    samples = DomainDataset("new.npz", x, y, domain, split, ("c0",), ("d0", "clinic"))
    log_p = np.log(np.where(np.arange(2) == domain[:, None], 0.9, 0.1)).astype(np.float16)
    names = {"domains": ["d0", "clinic"], "classes": ["c0", "c1"], "counts": np.array([[150, 40], [0, 0]])}
    about = {"y": y, "domain": domain, "row": np.arange(60), "log_p": log_p, "true": log_p[np.arange(60), y]}
    sets = pd.DataFrame(
        {"domain": domain, "class": y, "inside": domain == 0, "size": 1 + domain, "review": domain == 1}
    )
    answers = Answers(**names, **about, predicted=domain.copy())
    return Evaluated(answers, LeftOut(3, 0, {"moped": 7}), samples, sets)


def document(own, found, kept=None):
    """The page beside a run with this result, which has kept these answers for test samples."""
    held_out = kept and HeldOut(kept.keep(np.zeros(len(kept), bool)), kept)
    run = Run(Path("run"), result=own, held_out=held_out)
    predictor = SimpleNamespace(run=run, calibration=Calibration.none(["d0"], 2))
    return evaluation_document(predictor, found, "crosstail evaluate run new.npz")


def test_the_verdict_compares_the_same_classes(make_result, found):
    own = make_result([[95, 0], [95, 0]], totals=[[100, 100], [100, 100]])
    blocks = document(own, found).blocks
    (lead,) = [block.text for block in blocks if isinstance(block, Text) and block.lead]
    assert (
        "60 samples of 2 domains, with every pair weighted equally, 50.0 %" in lead
        and "95.0 %" in lead
        and "clearly lower" in lead
    )
    assert "clinic / c0 with 0 of 30 right" in lead
    (cards,) = [block.cards for block in blocks if isinstance(block, Cards)]
    assert {card.label: card.value for card in cards}["Difference"] == "-45.0 points"


def test_new_domains_stand_beside_old_ones(make_result, found):
    own = make_result([[90, 80], [70, 60]], totals=[[100, 100], [100, 100]])
    new, old = Shown.of_answers(found.answers), Shown.of_results([own])
    rows = domain_table(new, old, "new data").rows
    assert [row[:4] for row in rows] == [
        ["d0", "new data", "yes", "30"],
        ["clinic", "new data", "no", "30"],
        ["d0", "own test set", "yes", "200"],
        ["d1", "own test set", "yes", "200"],
    ]
    assert [row[4] for row in rows] == ["100.0", "0.0", "85.0", "65.0"]
    pairs = side_by_side(new, old, "new data")
    assert list(dict.fromkeys(pairs["domain"])) == ["d0 (new)", "clinic (new)", "d0", "d1"]
    assert pairs[pairs["class"] == "c0"]["hits"].tolist() == [30, 0, 90, 70]
    assert pairs["count"].tolist() == [150, 40, 0, 0, 150, 40, 7, 0]


def test_classes_that_the_run_was_not_tested_on_have_nothing_to_compare_with(make_result, found):
    own = make_result([[0, 5], [0, 5]], totals=[[0, 10], [0, 10]])
    (lead,) = [block.text for block in document(own, found).blocks if isinstance(block, Text) and block.lead]
    assert "nothing to compare" in lead


def test_new_probabilities_stand_beside_those_of_the_run(make_result, found):
    own = make_result([[90, 80], [70, 60]], totals=[[100, 100], [100, 100]])
    given = Calibration.none(["d0"], 2)
    kept = found.answers.keep(found.answers.domain == 0)
    blocks = document(own, found, kept).blocks
    tables = [block for block in blocks if isinstance(block, Table) and "tested on" in block.header]
    _, short, sets, reliability = tables  # what has words that need explaining is in the closed appendix
    assert short.header == ["domain", "tested on", "tested", "difference, points", "95 % interval"]
    assert [[*row[:3], *row[4:6]] for row in reliability.rows] == short.rows
    closed = next(i for i, block in enumerate(blocks) if isinstance(block, Heading) and block.closed)
    assert blocks.index(sets) < closed < blocks.index(reliability)
    error = reliability.header.index("calibration error, points")
    assert [[*row[:2], row[error]] for row in reliability.rows] == [
        ["d0", "new data", "10.0"],
        ["clinic", "new data", "90.0"],
        ["all, domain unknown", "new data", "40.0"],
        ["d0", "own test set", "10.0"],
        ["all, domain unknown", "own test set", "10.0"],
    ]
    assert [row[:4] for row in sets.rows][:2] == [
        ["d0", "new data", "30", "100.0"],
        ["clinic", "new data", "30", "0.0"],
    ]
    stored = certainty_json(found, given)
    assert stored["domains"]["clinic"]["covered"] == 0 and stored["domains"]["d0"]["to_review"] == 0
    assert stored["overall"]["accuracy"] == 0.5 and stored["overall"]["classes_per_set"] == 1.5
    assert stored["domains"]["clinic"]["log_loss"] == pytest.approx(-np.log(0.1), rel=1e-3)
    held_out = replace(found, held_out=60, sets=None)
    blocks = document(own, held_out, kept).blocks
    assert [block.rows[0][1] for block in blocks if isinstance(block, Table) and "tested on" in block.header] == [
        "held-out data",
        "held-out data",
        "held-out data",
    ]
    own_samples = [row for block in blocks if isinstance(block, Table) for row in block.rows]
    assert own_samples and not any("own test set" in row for row in own_samples)
    assert "Difference" not in [card.label for block in blocks if isinstance(block, Cards) for card in block.cards]


def test_domains_with_few_samples_have_no_curve_of_their_own():
    rng, domain = np.random.default_rng(0), np.repeat([0, 1], [300, 10])
    y = rng.integers(2, size=310)
    p = np.clip(rng.random(310), 0.02, 0.98)
    log_p = np.log(np.stack([p, 1 - p], axis=1)).astype(np.float16)
    names = {"domains": ["large", "small"], "classes": ["x", "y"], "counts": np.ones((2, 2), int)}
    samples = Answers(**names, y=y, domain=domain, predicted=log_p.argmax(1), log_p=log_p)
    curves = Confidence.of(samples, None).curves(["large", "small"])
    assert list(dict.fromkeys(curves["domain"])) == ["all domains", "large"]
    alone = Confidence.of(samples.keep(domain == 0), None).curves(["large", "small"])
    assert set(alone["domain"]) == {"large"}


def test_a_quantity_has_one_interval_wherever_it_stands(make_result, found):
    own = make_result([[30, 4], [25, 9]], totals=[[40, 12], [60, 10]])
    tested = Shown.of_results([own])
    head = headline_table(tested).set_index("metric")
    by_domain = {row[0]: row[4:6] for row in domain_table(Shown.of_answers(found.answers), tested, "new").rows[2:]}
    worst = tested.pairs.sort_values("accuracy").iloc[0]
    assert head.loc["worst pair", ["value", "low", "high"]].tolist() == worst[["accuracy", "low", "high"]].tolist()
    row = head.loc["worst domain"]
    assert by_domain[row["what"]] == [f"{row['value']:.1f}", f"{row['low']:.1f} to {row['high']:.1f}"]
    card = {cells[0]: cells[1:3] for cells in accuracy_table(tested).rows}
    for metric, row in head.iterrows():
        assert card[metric][0] == f"{row['value']:.1f}" and card[metric][1] in (
            "",
            f"{row['low']:.1f} to {row['high']:.1f}",
        )
