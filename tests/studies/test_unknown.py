"""The page on unknown objects is what its records give."""

import json

from studies.unknown import PAGE, RECORDS, SCORES, page


def test_the_page_is_what_the_records_give():
    records = [json.loads(line) for line in RECORDS.read_text().splitlines()]
    assert PAGE.read_text(encoding="utf-8") == page(records)
    assert len(records) == 22 and all(3 < record[name][1] < 7 for record in records for name in SCORES)
