"""The model card against hand-made runs: its figures, its limits, and names that Markdown could obey."""

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest

from crosstail import protocols
from crosstail.metrics import PairAccuracy
from crosstail.report.audit.of_run import duplicates_of
from crosstail.report.run import model_card as card
from crosstail.report.run.model_card import card_parts, exported_part, limits, write_card
from crosstail.training.folder import RunFolder
from crosstail.training.inputs import sized

HITS, TOTALS = [[9, 1], [3, 0]], [[10, 4], [6, 0]]


def parts_of(run: Path) -> dict[str, str]:
    return {part.title: " ".join(part.sentences) for part in card_parts(run)}


def test_the_figures_are_those_of_the_run_with_intervals(make_run):
    run = make_run("run", HITS, totals=TOTALS)
    table = next(part.table for part in card_parts(run) if part.title == "Test accuracy in %")
    figures = {row[0]: row[1:3] for row in table.rows}
    accuracy = PairAccuracy.from_json(RunFolder(run).read_json("result.json")["test"])
    for name, view in (
        ("pair average", "pair_average"),
        ("worst pair", "worst_pair"),
        ("average over domains", "average"),
        ("worst domain", "worst_domain"),
    ):
        low, high = accuracy.interval(view)
        assert figures[name] == [f"{100 * getattr(accuracy, view):.1f}", f"{100 * low:.1f} to {100 * high:.1f}"]
    # One pair each: the interval of the bootstrap over its own hits.
    for shot, pair in (("many", (0, 0)), ("medium", (0, 1)), ("few", (1, 0))):
        alone = PairAccuracy([[accuracy.hits[pair]]], [[accuracy.totals[pair]]])
        low, high = alone.interval("pair_average")
        assert figures[f"{shot}-shot pairs"] == [
            f"{100 * alone.pair_average:.1f}",
            f"{100 * low:.1f} to {100 * high:.1f}",
        ]


def test_limits_name_what_is_weak_untested_or_untrained(make_run):
    run = make_run("run", HITS, totals=TOTALS, seed=7)
    assert limits(RunFolder(run).read_json("result.json")) == [
        "It has seen d0, d1 only. How it does on another domain was not measured; the protocol dg measures that.",
        "1 of 4 pairs has no test samples, so nothing is known of them: d1 / c1.",
        "Below 50 %: 1 of 3 tested pairs, d0 / c1.",
        "1 pair had no training samples: d1 / c1.",
        "The median tested pair has 6 test samples, so one answer more or less is 16.7 points.",
        "This is one run, from seed 7. The intervals do not allow for what another seed would have given.",
    ]


def test_limits_of_an_unseen_domain_are_about_the_others(make_run):
    run = make_run("run", [[0, 0], [9, 8]], totals=[[0, 0], [10, 10]], protocol="dg", unseen="d1")
    found = limits(RunFolder(run).read_json("result.json"))
    assert found[0].startswith("The figures are of d1, a domain it was not trained on. On those it was trained on (d0)")
    assert not any("no training samples" in sentence or "no test samples" in sentence for sentence in found)


def test_nothing_is_said_of_accuracy_without_test_samples(make_run):
    run = make_run("run", [[0, 0], [0, 0]], totals=[[0, 0], [0, 0]])
    found = limits(RunFolder(run).read_json("result.json"))
    assert "There were no test samples, so nothing is known of its accuracy." in found
    assert "There were no validation samples, so the last evaluation was taken, not the best." in found
    assert not any("%" in sentence for sentence in found)


@pytest.mark.parametrize(
    ("spec", "random"),
    [
        ({"backbone": "small_cnn"}, True),
        ({"backbone": "resnet50", "weights": "random"}, True),
        ({"backbone": "resnet50"}, False),
    ],
)
def test_random_weights_are_a_limit_for_images(make_run, spec, random):
    run = make_run("run", HITS, totals=TOTALS, **spec)
    result = RunFolder(run).read_json("result.json") | {"input_shape": [3, 32, 32]}
    assert ("began from random weights" in " ".join(limits(result))) == random


def test_the_data_sheet_counts_and_notes_are_there(make_run, monkeypatch):
    monkeypatch.setattr(card, "duplicates_of", lambda run: [])
    run = make_run("run", HITS, totals=TOTALS, dataset="digits", labels=("uniform", "forward:9"))
    result = RunFolder(run).read_json("result.json")
    result["data"]["notes"] = ["a.jpg was left out"]
    (run / "result.json").write_text(json.dumps(result), encoding="utf-8")
    (part,) = [part for part in card_parts(run) if part.title == "Data"]
    data = " ".join(part.sentences)
    assert "CC BY 4.0" in data and "doi:10.24432/C50P49" in data
    assert "label profiles: uniform, forward:9." in data
    assert "a" * 64 in data and "Note: a.jpg was left out." in data
    assert part.table.rows == [["d0", "190", "14", "14", "40", "150"], ["d1", "7", "6", "6", "0", "7"]]


@pytest.mark.parametrize(
    ("spec", "labels"),
    [
        ({"dataset": "digits"}, "forward:57, backward:57, step:10!2,7"),
        ({"dataset": "digits", "protocol": "dg", "unseen": "d1"}, ""),
        ({"dataset": "photos"}, ""),
    ],
)
def test_without_profiles_those_of_the_data_sheet_count(make_run, monkeypatch, spec, labels):
    monkeypatch.setattr(card, "duplicates_of", lambda run: [])
    found = re.search("label profiles: (.*?)\\.", parts_of(make_run("run", HITS, totals=TOTALS, **spec))["Data"])
    assert (found[1] if found else "") == labels


def test_versions_are_those_that_trained_it(make_run):
    run = make_run("run", HITS, totals=TOTALS)
    assert "does not say which versions" in parts_of(run)["Versions and checksums"]
    result = RunFolder(run).read_json("result.json")
    result |= {"versions": {"crosstail": "0.0.7", "torch": "2.0"}, "weights": "beef"}
    (run / "result.json").write_text(json.dumps(result), encoding="utf-8")
    (run / "model.pt").write_bytes(b"abc")
    said = parts_of(run)["Versions and checksums"]
    assert "Trained with crosstail 0.0.7, torch 2.0." in said and "weights: beef." in said
    assert "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" in said  # of abc


def on_its_data(run: Path) -> Path:
    """The run with the checksum of the data at hand."""
    folder = RunFolder(run)
    raw = sized(folder.spec(), protocols.prepare(folder.spec()))
    result = folder.read_json("result.json")
    folder.write_json("result.json", {**result, "data": {**result["data"], "checksum": raw.checksum}})
    return run


def test_samples_that_occur_twice_are_limits_also_when_the_data_are_gone(make_run, tmp_path):
    x = np.arange(24.0).reshape(12, 2).astype(np.float32)
    x[11] = x[0]  # in training and in test
    x[5] = x[4]  # in one pair, but also of the other class
    y, domain = np.tile([0, 1], 6), np.repeat([0, 1], 6)
    split = np.array(
        ["train", "train", "val", "val", "train", "train", "train", "train", "val", "val", "train", "test"]
    )
    y[11] = y[0]
    domain[11] = domain[0]
    np.savez(tmp_path / "v.npz", x=x, y=y, domain=domain, split=split)
    run = make_run("run", HITS, totals=TOTALS, dataset=str(tmp_path / "v.npz"))
    assert duplicates_of(run) == []  # the data are not those that it was trained on
    on_its_data(run)
    expected = [
        "1 row occurs in two classes: at least one of the labels is wrong.",
        "1 row occurs in two splits: figures on validation or test would be too good.",
    ]
    assert expected == duplicates_of(run)
    (tmp_path / "v.npz").unlink()
    assert expected == duplicates_of(run)
    assert parts_of(run)["Limits"].endswith(" ".join(expected))


def test_the_same_image_file_twice_is_found_by_its_content(make_run, tmp_path):
    for domain, name in itertools.product(("a", "b"), ("x", "y")):
        folder = tmp_path / "photos" / domain / name
        folder.mkdir(parents=True)
        for i in range(4):
            (folder / f"{i}.png").write_bytes(f"{domain}{name}{i}".encode())
    (tmp_path / "photos" / "a" / "x" / "3.png").write_bytes(b"by0")
    run = on_its_data(make_run("run", HITS, totals=TOTALS, dataset=str(tmp_path / "photos")))
    assert duplicates_of(run)[0] == "1 image occurs in two classes: at least one of the labels is wrong."


def test_data_that_are_not_at_hand_are_not_judged(make_run):
    run = make_run("run", HITS, totals=TOTALS)
    assert duplicates_of(run) == [] and not (run / "audit.json").exists()


def test_names_are_plain_text_in_markdown(make_run, tmp_path):
    run = make_run("run", HITS, totals=TOTALS, dataset="a`b```\n# c")
    result = RunFolder(run).read_json("result.json")
    result |= {"domains": ["<script>x</script>", "[a](b)"], "classes": ["c|d", "*e*_f_&lt;\n# g"]}
    (run / "result.json").write_text(json.dumps(result), encoding="utf-8")
    write_card(tmp_path / "card.md", "<b>title", card_parts(run))
    text = (tmp_path / "card.md").read_text(encoding="utf-8")
    assert text.startswith("# \\<b\\>title\n")
    prose, _, code = text.partition("````sh\n")
    assert not re.search(r"(?<!\\)[<\[*_&`]", prose)
    assert [line for line in prose.splitlines() if line.startswith("#")] == [
        "# \\<b\\>title",
        *(f"## {part.title}" for part in card_parts(run)),
    ]
    rows = [line for line in prose.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5, 7}
    assert code.endswith("\n````\n") and "crosstail fit 'a`b```\n# c'" in code


def test_an_exported_file_says_what_goes_in_and_out():
    part = exported_part(
        {
            "format": "onnx",
            "input": {"name": "x", "type": "uint8", "shape": ["batch", 8, 8, 3], "how": "Decode it."},
            "output": {"name": "p", "type": "float32", "shape": ["batch", 2]},
            "compared": {"inputs": "random inputs", "samples": 65, "largest_difference": 2e-7},
        }
    )
    assert "input x: uint8 ['batch', 8, 8, 3]. Decode it." in part.sentences[0]
    assert "on 65 of random inputs" in part.sentences[2] and "by 2e-07 at most" in part.sentences[2]
