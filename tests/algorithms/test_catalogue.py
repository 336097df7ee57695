import runpy
from pathlib import Path

import pytest

from crosstail import algorithms, discovery
from crosstail.algorithms._catalogue import entry

ROOT = Path(__file__).parents[2]


def test_all_are_in_it_family_by_family():
    found = algorithms.catalogue()
    assert sorted(e.name for e in found) == discovery.names("crosstail.algorithms")
    families = [e.family for e in found]
    assert families.index("ours") == len(families) - families.count("ours") and "own" not in families


PAGES = runpy.run_path(str(ROOT / "studies/algorithm_page.py"))


@pytest.mark.parametrize("path", PAGES["PAGES"], ids=lambda path: path.stem)
def test_the_page_is_what_the_files_say(path):
    assert PAGES["page"](path) == path.read_text(encoding="utf-8"), "run: python -m studies.algorithm_page"


def test_an_entry_is_read_from_the_docstring_and_the_hyperparameters():
    found = entry("boda+coral", algorithms.find("boda+coral"))
    assert found.what.startswith("BoDA: cross-entropy") and "; CORAL: match" in found.what
    assert f"{found.paper}, {found.year}" == "Yang, Wang and Katabi, 2022; Sun and Saenko, 2016"
    assert {"gamma", "nu"} <= {h["name"] for h in found.hyperparameters}


def test_a_docstring_without_a_paper_is_refused():
    class Bare(algorithms.Algorithm):
        """Nothing."""

    with pytest.raises(ValueError, match=r"bare: .* no paper"):
        entry("bare", Bare)


def test_every_algorithm_of_the_peers_is_here():
    rows = [row.split(" | ")[:2] for row in PAGES["peer_table"]().splitlines()[3:] if row]
    assert rows == [["| DomainBed", "34 of 34"], ["| SubpopBench", "21 of 21"], ["| the BoDA code", "21 of 21"]]
