"""Every benchmark keeps the promises of crosstail.testing, and has a data sheet."""

import pytest

from crosstail import data, discovery
from crosstail.data.benchmarks._load import BENCHMARKS, existing_sheet
from crosstail.testing.parts import DATA_SET_CHECKS

# What a user must know of every data set; the rest of a sheet depends on where the data come from.
REQUIRED = ("name", "title", "summary", "made_by", "domains", "classes", "licence", "citation", "source")
NAMES = discovery.names(BENCHMARKS)


# Those with archives must be fetched first: their loading is tested in tests/data/benchmarks on small copies.
@pytest.mark.parametrize("check", DATA_SET_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", [name for name in NAMES if not existing_sheet(name).archives])
def test_every_benchmark(name, check):
    check(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_sheet_says_what_a_user_must_know(name):
    sheet, docstring = existing_sheet(name), discovery.docstring(BENCHMARKS, name)
    for field in REQUIRED:
        assert getattr(sheet, field), f"{field} is empty"
    assert sheet.few < sheet.many and sheet.name in docstring
    assert data.shot_thresholds(name) == (sheet.many, sheet.few)
