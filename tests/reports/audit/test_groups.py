import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from crosstail.data.dataset import DomainDataset
from crosstail.reports.audit import audit, findings
from crosstail.reports.audit.document import page, summary
from crosstail.reports.audit.groups import EXAMPLES
from crosstail.reports.document import html, terminal
from crosstail.reports.document.model import Gallery

#          0        1       2       3        4      5        6       7        8       9
SPLIT = ["train", "test", "train", "val", "train", "test", "test", "train", "train", "test"]
GROUP = [7, 7, 1, 1, 2, 3, 3, 4, 7, 5]


def made(group=GROUP, *, images=True, copies=1):
    n = len(GROUP) * copies
    shape = (n, 16, 16, 3) if images else (n, 4)
    x = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8 if images else np.float32)
    return DomainDataset(
        name="made",
        x=x,
        y=np.arange(n) % 2,
        domain=np.arange(n) % 5 // 4,
        split=np.array(SPLIT * copies, "<U5"),
        classes=("cat", "dog"),
        domains=("a", "b"),
        group=None if group is None else np.concatenate([np.array(group) + 10 * i for i in range(copies)]),
    )


def in_several(dataset, of):
    """How many groups have several values, counted by hand."""
    found = {}
    for g, value in zip(dataset.group.tolist(), np.asarray(of).tolist(), strict=True):
        found.setdefault(g, set()).add(value)
    return sum(len(values) > 1 for values in found.values())


def test_facts_about_groups():
    dataset = made()
    groups = audit(dataset).groups
    assert (groups.groups, groups.with_several, groups.median, groups.largest) == (6, 3, 1, 3)
    assert groups.several_splits == in_several(dataset, dataset.split) == 2
    assert groups.several_domains == in_several(dataset, dataset.domain)
    assert groups.several_classes == in_several(dataset, dataset.y)
    assert (groups.leaked_tests, groups.tests) == (1, 4)  # row 1, with rows 0 and 8
    assert [[s.row for s in group.samples] for group in groups.leaking] == [[0, 1, 8], [2, 3]]  # the test set first


def test_a_leak_is_a_problem_shown_by_its_samples():
    (found,) = [f for f in findings(audit(made())) if "group" in f.text and f.problem]
    assert "2 groups" in found.text and "1 of 4 test samples" in found.text
    assert "row 0 (cat, train)" in found.examples[0] and "row 1 (dog, test)" in found.examples[0]
    assert len(found.examples) == 2 and found.unlisted == 0


def test_a_leak_into_validation_only():
    (found,) = [f for f in findings(audit(made([0, 1, 2, 2, 3, 4, 4, 5, 6, 7]))) if "group" in f.text]
    assert found.problem and "1 group has" in found.text and "test samples" not in found.text


@pytest.mark.parametrize("group", [None, range(10), [0, 1, 0, 2, 0, 1, 1, 0, 0, 3]])
def test_no_leak_is_no_finding(group):
    found = audit(made(group))
    assert not [f for f in findings(found) if "group" in f.text]
    assert (found.groups is None) == (group is None)


def test_many_leaks_are_counted_and_the_first_are_listed():
    dataset = made(copies=2 * EXAMPLES)
    found = audit(dataset)
    assert found.groups.several_splits == 4 * EXAMPLES and len(found.groups.leaking) == EXAMPLES
    (finding,) = [f for f in findings(found) if f.problem and "group" in f.text]
    assert len(finding.examples) + finding.unlisted == 4 * EXAMPLES
    console = Console(width=80, record=True, file=io.StringIO())
    terminal.show(summary(found), console)
    assert f"and {4 * EXAMPLES - 3} more" in console.export_text()


def test_json():
    record = json.loads(json.dumps(audit(made()).to_json()))
    assert record["groups"]["several_splits"] == 2 and record["groups"]["leaked_tests"] == 1
    first = record["groups"]["leaking"][0]
    assert "split" in first["across"] and first["samples"][1]["split"] == "test"
    assert json.loads(json.dumps(audit(made(None)).to_json()))["groups"] is None


@pytest.mark.parametrize("images", [True, False])
def test_page_and_terminal(images):
    dataset = made(images=images)
    found = audit(dataset)
    document = page(found, dataset)
    galleries = [block for block in document.blocks if isinstance(block, Gallery)]
    assert [len(gallery.pictures) for gallery in galleries] == ([3, 2] if images else [])
    console = Console(width=80, record=True, file=io.StringIO())
    terminal.show(summary(found), console)
    for text in (html.render(document), console.export_text()):
        assert "6 groups" in text and "2 in several splits" in text.replace("\n", " ")
    without = made(None, images=images)
    assert "Groups" not in html.render(page(audit(without), without))


def test_samples_in_no_group_number_are_not_counted():
    """Rows that were left out leave gaps in the numbers."""
    dataset = made().keep(np.array([0, 1, 4, 5, 6]))
    assert audit(dataset).groups.groups == 3
    assert audit(replace(dataset, group=dataset.group * 100)).groups.groups == 3
