"""The page on what to label next is what its records give."""

import json

from studies.label_next import PAGE, RECORDS, SEEDS, WAYS, page


def test_the_page_is_what_the_records_give():
    records = [json.loads(line) for line in RECORDS.read_text().splitlines()]
    assert PAGE.read_text(encoding="utf-8") == page(records) and len(records) == 4
    for record in records:
        assert tuple(record["curves"]) == WAYS and all(len(curves) == SEEDS for curves in record["curves"].values())
        assert len({curve[0] for curves in record["curves"].values() for curve in curves}) <= SEEDS  # the same start
