"""What to expect of a new domain, and seen beside unseen, against hand-made results."""

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

from crosstail.data import DomainDataset
from crosstail.metrics import Answers, PairAccuracy
from crosstail.reports.document.model import Cards, Table
from crosstail.reports.run.confusions import pooled_answers
from crosstail.reports.run.summary import folds_summary
from crosstail.reports.run.tested import Tested as Shown
from crosstail.reports.run.unseen import expectation, expected, seen_table, unseen_blocks
from crosstail.training.result import SplitAccuracy
from crosstail.training.run import Run
from crosstail.training.run_data import Inputs

RIGHT = [8, 6, 9, 7]  # of 10 test samples of each unseen domain


@pytest.fixture
def results(make_result):
    """Four domains of one class, each unseen in turn; of 20 validation samples of every seen one, 19 are right."""
    found = []
    for d, right in enumerate(RIGHT):
        hits, totals = np.zeros((2, 4, 1), int)
        hits[d], totals[d] = right, 10
        counts = np.full((4, 1), 50)
        counts[d] = 0
        result = make_result(hits, totals=totals, counts=counts, protocol="dg", unseen=f"d{d}")
        seen = np.arange(4)[:, None] != d
        validation = PairAccuracy(np.where(seen, 19, 0), np.where(seen, 20, 0))
        found.append(replace(result, validation=SplitAccuracy.of(validation, counts)))
    return found


def test_every_domain_is_compared_with_itself_when_seen(results):
    table = seen_table(results)
    assert table["domain"].tolist() == ["d0", "d1", "d2", "d3"]
    assert table["unseen"].tolist() == [80, 60, 90, 70] and table["seen"].tolist() == [95] * 4
    assert table["loss"].tolist() == [15, 35, 5, 25] and (table["low"] < table["unseen"]).all()


def test_a_new_domain_is_predicted_from_the_spread_of_those_left_out(results):
    table = seen_table(results)
    accuracy = np.array(RIGHT) / 10
    reach = stats.t.ppf(0.95, 3) * np.std(accuracy, ddof=1) * np.sqrt(1 + 1 / 4)
    low, high = expected(table)
    assert (low, high) == (pytest.approx(100 * (0.75 - reach)), 100)
    assert f"{int(low)} to 100 %" in expectation(table) and "60.0 to 90.0" in expectation(table)
    assert expected(table.head(2)) is None and "fewer than three" in expectation(table.head(2))


def test_the_page_begins_with_what_to_expect(results):
    blocks = list(unseen_blocks(results))
    kinds = [type(block) for block in blocks]
    assert "expect" in blocks[0].text and kinds[1] is Cards and Table in kinds
    table = next(block for block in blocks if isinstance(block, Table))
    assert [row[0] for row in table.rows] == ["d0", "d1", "d2", "d3", "mean"] and table.rows[-1][1] == "75.0"
    assert blocks[1].cards[-1].detail == "against the same domains when seen; most on d1: 35.0"
    (summary,) = folds_summary(results)
    assert summary.note == blocks[0].text


def test_runs_together_have_the_predictions_of_all_in_the_order_of_the_data(results, tmp_path):
    domain = np.tile(np.arange(4), 10)  # the domains take turns
    y = np.zeros(40, np.int64)
    names = {"domains": ("d0", "d1", "d2", "d3"), "classes": ("c0",)}
    runs = []
    for d, result in enumerate(results):
        split = np.where(domain == d, "test", "train")
        dataset = DomainDataset(x=np.zeros((40, 2), np.float32), y=y, domain=domain, split=split, name="v", **names)
        test = Answers(**result.answered, predicted=np.arange(10) + 10 * d, y=y[:10], domain=np.full(10, d))
        runs.append(Run(tmp_path, result=result, test=test, inputs=Inputs(dataset)))
    joined = pooled_answers(runs)
    assert joined.domain.tolist() == domain.tolist() and joined.row.tolist() == list(range(40))
    assert joined.predicted[:6].tolist() == [0, 10, 20, 30, 1, 11]
    assert Shown.of_results(results).accuracy.hits.tolist() == [[8], [6], [9], [7]]
    assert pooled_answers([*runs[:3], runs[3].knowing(inputs=None)]) is None
    assert pooled_answers([*runs[:3], runs[3].knowing(test=None)]) is None
