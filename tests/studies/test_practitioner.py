"""A practitioner's messy folder: what is planted is found, and what the page promises holds for photos held back."""

import pytest
from studies import practitioner


@pytest.mark.slow
def test_what_is_said_of_a_messy_folder_is_true(tmp_path):
    found = practitioner.check(practitioner.make(practitioner.digits(tmp_path / "digits"), tmp_path, 0), tmp_path)
    assert len(found) >= 9
    broken = {what: (one.said, one.true) for what, one in found.items() if not one.kept}
    assert broken == {}
    assert "| 1 of 1 |" in "\n".join(practitioner.page("digits", [found]))
