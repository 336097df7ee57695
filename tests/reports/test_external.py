import re

import numpy as np
import pytest
import torch

from crosstail import integrations
from crosstail.reports import external
from crosstail.reports.external import write_report

Y, DOMAIN = np.arange(60) % 3, np.arange(60) // 30
SAID = np.where(np.arange(60) % 9 == 0, (Y + 1) % 3, Y)
ABOUT = {"classes": ["ant", "bee", "cat"], "domain_names": ["north", "south"], "train_counts": [[50, 9, 0], [5, 5, 5]]}
GIVEN = {"predictions": SAID, "labels": Y, "domains": DOMAIN, **ABOUT}


@pytest.fixture
def documents(monkeypatch):
    """The pages, as blocks instead of HTML."""
    found = []
    monkeypatch.setattr(external.html, "save", lambda document, path: found.append(document))
    return found


def headings(document):
    return [block.text for block in document.blocks if type(block).__name__ == "Heading"]


def test_the_page_has_what_the_predictions_tell(tmp_path):
    path = integrations.write_report(tmp_path / "new" / "mine.html", **GIVEN, title="Mine", notes=["A first try."])
    text = path.read_text(encoding="utf-8")
    accuracy = np.mean([(SAID == Y)[(d == DOMAIN) & (c == Y)].mean() for d in range(2) for c in range(3)])
    assert f"{100 * accuracy:.1f} %" in text and "<title>Mine" in text and "A first try." in text
    assert "north / cat" in text and "Zero-shot pairs" in text  # it has no training samples
    assert "crosstail fit" not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)  # nothing was trained by it


def test_features_add_the_graph(documents):
    write_report("mine.html", **GIVEN)
    z = torch.randn(60, 4)
    write_report("mine.html", **GIVEN | {"predictions": torch.tensor(SAID)}, features=z)
    without, with_graph = map(headings, documents)
    assert [text for text in with_graph if text not in without] == ["Transferability: α, β, γ"]
    graph = documents[1].blocks[-1].drawing.to_dict()
    sizes = {row["count"] for rows in graph["datasets"].values() for row in rows if "count" in row}
    assert sizes == {50, 9, 0, 5}


WRONG = {
    "a folder": ({"out": "report"}, r"report: expected a name that ends in \.html"),
    "scores": ({"predictions": np.zeros((60, 3))}, r"predictions is float64 \(60, 3\), expected integers"),
    "a class too many": ({"labels": Y + 1}, r"labels of sample 2 is 3, expected 0 to 2"),
    "a domain too many": ({"domains": DOMAIN * 2}, r"domains of sample 30 is 2, expected 0 to 1"),
    "short": ({"labels": Y[:50]}, "60 predictions, 50 labels and 60 domains"),
    "counts": ({"train_counts": [[1, 2], [3, 4]]}, r"train_counts is int64 \(2, 2\), expected .* \(2, 3\)"),
    "features": ({"features": np.zeros((59, 4))}, r"features have the shape \(59, 4\), expected \(60, F\)"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_named(documents, what):
    changes, message = WRONG[what]
    given = {"out": "mine.html", **GIVEN, **changes}
    with pytest.raises(ValueError, match=message):
        write_report(given.pop("out"), **given)
    assert documents == []
