"""What to expect of a new domain, and seen beside unseen, against hand-made results."""

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

from crosstail.metrics import PairAccuracy
from crosstail.report.document.model import Cards, Chart, Table
from crosstail.report.run.summary import folds_summary
from crosstail.report.run.unseen import expectation, expected, seen_table, unseen_blocks
from crosstail.training.result import SplitAccuracy

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
    assert "expect" in blocks[0].text and kinds[1] is Cards and {Chart, Table} <= set(kinds)
    table = next(block for block in blocks if isinstance(block, Table))
    assert [row[0] for row in table.rows] == ["d0", "d1", "d2", "d3", "mean"] and table.rows[-1][1] == "75.0"
    assert "d1" in next(block.title for block in blocks if isinstance(block, Chart))  # it loses most
    (summary,) = folds_summary(results)
    assert summary.note == blocks[0].text
