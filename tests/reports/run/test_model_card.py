"""The model card against hand-made runs: its metrics, its limits, and names that Markdown would interpret."""

import itertools
import re
from dataclasses import replace

import msgspec
import numpy as np
import pandas as pd
import pytest

from crosstail import data
from crosstail.metrics import Answers
from crosstail.metrics._calibration import Calibration
from crosstail.reports.document import markdown
from crosstail.reports.document.model import Heading, Items, Table, Text
from crosstail.reports.run import duplicates as found_in
from crosstail.reports.run.certainty_data import Certainty
from crosstail.reports.run.model_card import limits, model_card
from crosstail.reports.run.tested import Tested as Shown
from crosstail.training.held_out import HeldOut
from crosstail.training.run_data import Inputs

HITS, TOTALS = [[9, 1], [3, 0]], [[10, 4], [6, 0]]
DESCRIPTION = {
    "format": "onnx",
    "input": {"name": "x", "type": "uint8", "shape": ["batch", 8, 8, 3], "how": "Decode it."},
    "output": {"name": "p", "type": "float32", "shape": ["batch", 2]},
    "site": None,
    "sites": ["d0", "d1"],
    "outputs": ["probabilities"],
    "shares": None,
    "compared": {"inputs": "random inputs", "samples": 65, "largest_difference": 2e-7},
}


def changed(run, **fields):
    """The run with other values in its result."""
    return run.knowing(result=msgspec.structs.replace(run.result, **fields))


def card(run, **exported):
    """The model card, with what is known of how sure the model is."""
    return model_card(run, Certainty.of(run), **exported)


def weak(run):
    """The sentences on its limits."""
    return limits(run, Shown.of_results([run.result]))


def sections(run, **exported):
    """The blocks of the card by heading."""
    found = {}
    for block in card(run, **exported).blocks:
        if isinstance(block, Heading):
            blocks = found[block.text] = []
        else:
            blocks.append(block)
    return found


def said(run, heading, **exported):
    """The sentences of a section."""
    lists = [block for block in sections(run, **exported)[heading] if isinstance(block, Items)]
    return " ".join(item.text for block in lists for item in block.items)


def table(run, heading):
    """The rows of a section's table."""
    (found,) = [block for block in sections(run)[heading] if isinstance(block, Table)]
    return found.rows


def test_the_metrics_are_those_of_the_run_with_intervals(finished):
    run = finished(HITS, totals=TOTALS)
    metrics = {row[0]: row[1:3] for row in table(run, "Test accuracy in %")}
    accuracy = run.result.test.pairs().by_class()
    for name, view in (
        ("pair average", "pair_average"),
        ("worst pair", "worst_pair"),
        ("average over domains", "average"),
        ("worst domain", "worst_domain"),
    ):
        low, high = accuracy.interval(view)
        assert metrics[name] == [f"{100 * getattr(accuracy, view):.1f}", f"{100 * low:.1f} to {100 * high:.1f}"]
    assert metrics["10th percentile"] == ["30.0", ""]
    (worst,) = [row[3] for row in table(run, "Test accuracy in %") if row[0] == "worst pair"]
    assert "d0 / c1" in worst and "4 test samples" in worst
    # One pair each: the interval of its own hits.
    for shot, pair in (("many", (0, 0)), ("medium", (0, 1)), ("few", (1, 0))):
        alone = type(accuracy)([[accuracy.hits[pair]]], [[accuracy.totals[pair]]])
        low, high = alone.interval("pair_average")
        assert metrics[f"{shot}-shot pairs"] == [
            f"{100 * alone.pair_average:.1f}",
            f"{100 * low:.1f} to {100 * high:.1f}",
        ]


def test_limits_name_what_is_weak_untested_or_untrained(finished):
    found = weak(finished(HITS, totals=TOTALS, seed=7))
    named = [
        "d0, d1 only",
        "1 of 4 pairs has no test samples",
        "Below 50 %: 1 of 3 tested pairs, d0 / c1 (1 of 4 right, 95 % interval 4.6 to 69.9).",
        "1 pair had no training samples: d1 / c1.",
        "6 test samples",
        "seed 7",
    ]
    assert all(words in sentence for words, sentence in zip(named, found, strict=True)), found


def test_limits_of_an_unseen_domain_are_about_the_others(finished):
    found = weak(finished([[0, 0], [9, 8]], totals=[[0, 0], [10, 10]], protocol="dg", unseen="d1"))
    assert "d1, a domain it was not trained on" in found[0] and "(d0)" in found[0]
    assert not any("no training samples" in sentence or "no test samples" in sentence for sentence in found)


def test_nothing_is_said_of_accuracy_without_test_samples(finished):
    found = weak(finished([[0, 0], [0, 0]], totals=[[0, 0], [0, 0]]))
    assert any("no test samples" in sentence for sentence in found)
    assert any("no validation samples" in sentence for sentence in found)
    assert not any("%" in sentence for sentence in found)


@pytest.mark.parametrize(
    ("spec", "random"),
    [
        ({"backbone": "small_cnn"}, True),
        ({"backbone": "resnet50", "weights": "random"}, True),
        ({"backbone": "resnet50"}, False),
    ],
)
def test_random_weights_are_a_limit_for_images(finished, spec, random):
    run = changed(finished(HITS, totals=TOTALS, **spec), input_shape=[3, 32, 32])
    assert ("randomly initialised" in " ".join(weak(run))) == random


def test_the_data_sheet_counts_and_notes_are_there(finished):
    run = finished(HITS, totals=TOTALS, dataset="digits", labels=("uniform", "forward:9"))
    run = changed(run, data=msgspec.structs.replace(run.result.data, notes=["a.jpg was left out"]))
    text = said(run, "Data")
    assert "CC BY 4.0" in text and "doi:10.24432/C50P49" in text
    assert "label profiles: uniform, forward:9." in text
    assert "a" * 64 in text and "Note: a.jpg was left out." in text
    assert table(run, "Data") == [["d0", "190", "14", "14", "40", "150"], ["d1", "7", "6", "6", "0", "7"]]


@pytest.mark.parametrize(
    ("spec", "labels"),
    [
        ({"dataset": "digits"}, "forward:57, backward:57, step:10!2,7"),
        ({"dataset": "digits", "protocol": "dg", "unseen": "d1"}, ""),
        ({"dataset": "photos"}, ""),
    ],
)
def test_without_profiles_those_of_the_data_sheet_count(finished, spec, labels):
    found = re.search("label profiles: (.*?)\\.", said(finished(HITS, totals=TOTALS, **spec), "Data"))
    assert (found[1] if found else "") == labels


def test_versions_are_those_that_trained_it(finished):
    run = changed(finished(HITS, totals=TOTALS), weights="beef")
    (run.path / "model.pt").write_bytes(b"abc")
    text = said(run, "Versions and checksums")
    assert "crosstail 0.0.7, torch 2.0." in text and "weights: beef." in text
    assert "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" in text  # of abc


def duplicates(run, source):
    """The sentences on duplicates of a run on this data."""
    return found_in.duplicates(run.knowing(inputs=Inputs(data.load(source))))


def test_duplicates_are_limits_also_when_the_data_are_gone(finished, tmp_path):
    x = np.arange(24.0).reshape(12, 2).astype(np.float32)
    x[11] = x[0]  # in training and in test
    x[5] = x[4]  # in one domain, but in two classes
    y, domain = np.tile([0, 1], 6), np.repeat([0, 1], 6)
    split = np.array(
        ["train", "train", "val", "val", "train", "train", "train", "train", "val", "val", "train", "test"]
    )
    y[11] = y[0]
    domain[11] = domain[0]
    np.savez(tmp_path / "v.npz", x=x, y=y, domain=domain, split=split)
    run = finished(HITS, totals=TOTALS)
    assert found_in.duplicates(run) == [] and not (run.path / "audit.json").exists()  # without data there is no search
    found = duplicates(run, tmp_path / "v.npz")
    assert ["classes" in found[0], "splits" in found[1], len(found)] == [True, True, 2]
    assert found_in.duplicates(run) == found  # stored
    card = model_card(run, None, repeated=found)
    assert markdown.render(card).split("## Versions")[0].rstrip().endswith(found[-1])


def test_equal_image_files_are_duplicates(finished, tmp_path):
    for domain, name in itertools.product(("a", "b"), ("x", "y")):
        folder = tmp_path / "photos" / domain / name
        folder.mkdir(parents=True)
        for i in range(4):
            (folder / f"{i}.png").write_bytes(f"{domain}{name}{i}".encode())
    (tmp_path / "photos" / "a" / "x" / "3.png").write_bytes(b"by0")
    assert "classes" in duplicates(finished(HITS, totals=TOTALS), tmp_path / "photos")[0]


def test_equal_images_in_hugging_face_data_are_duplicates(finished, tmp_path):
    datasets = pytest.importorskip("datasets")
    rng = np.random.default_rng(0)
    images = list(rng.integers(0, 256, (24, 16, 16, 3)).astype(np.uint8))
    images[13] = images[0]  # another domain and class
    labels = {"domain": ["a"] * 12 + ["b"] * 12, "label": [0, 1] * 12}
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "domain": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["cat", "dog"]),
        }
    )
    datasets.Dataset.from_dict({"image": images, **labels}, features=features).save_to_disk(tmp_path / "saved")
    found = duplicates(finished(HITS, totals=TOTALS), f"hf:{tmp_path / 'saved'}")
    assert "classes" in found[0]


def test_names_are_plain_text_in_markdown(finished):
    run = finished(HITS, totals=TOTALS, dataset="a`b```\n# c")
    run = changed(run, domains=["<script>x</script>", "[a](b)"], classes=["c|d", "*e*_f_&lt;\n# g"])
    text = markdown.render(replace(card(run), title="<b>title"))
    assert text.startswith("# \\<b\\>title\n")
    prose, _, code = text.partition("````sh\n")
    assert not re.search(r"(?<!\\)[<\[*_&`]", prose)
    assert [line for line in prose.splitlines() if line.startswith("#")] == [
        "# \\<b\\>title",
        *(f"## {title}" for title in sections(run)),
    ]
    rows = [line for line in prose.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5, 7}
    assert code.endswith("\n````\n") and "crosstail fit 'a`b```\n# c'" in code


def test_both_tracks_have_their_intervals_where_the_model_uses_the_domain(finished):
    run = finished(HITS, totals=TOTALS, known=[[10, 4], [2, 0]])
    rows = {row[0]: row[1:] for row in table(run, "Test accuracy in %")}
    tracks = run.result.test.pairs(), run.result.known.test.pairs()
    for name, view in (("pair average", "pair_average"), ("worst domain", "worst_domain")):
        cells = []
        for accuracy in tracks:
            low, high = accuracy.interval(view)
            cells += [f"{100 * getattr(accuracy, view):.1f}", f"{100 * low:.1f} to {100 * high:.1f}"]
        assert rows[name][:4] == cells
    assert rows["few-shot pairs"][0] == "50.0" and rows["few-shot pairs"][2] == "33.3"
    assert "d0 / c1" in rows["worst pair"][4] and "d1 / c0" in rows["worst pair"][4]
    assert "domain known" in said(run, "Test accuracy in %").lower()
    assert "domain known" not in markdown.render(card(finished(HITS, totals=TOTALS))).lower()


@pytest.mark.parametrize(("site", "words"), [("d1", "domain d1 only"), (None, "0 d0, 1 d1; −1 if it is unknown")])
def test_an_exported_file_says_whether_its_site_is_fixed(finished, site, words):
    text = said(finished(HITS), "File", exported={**DESCRIPTION, "site": site, "known": {}})
    assert words in text


def test_an_exported_file_says_what_goes_in_and_out(finished):
    text = said(finished(HITS), "File", exported=DESCRIPTION)
    assert "input x: uint8 ['batch', 8, 8, 3]. Decode it." in text
    assert "65 of random inputs" in text and "2e-07" in text


def test_certainty_of_each_domain_and_label_errors_have_their_place(finished, monkeypatch):
    domain, y = np.divmod(np.arange(80) // 20, 2)
    p = np.where(np.arange(2) == y[:, None], 0.9, 0.1)
    p[0] = p[0, ::-1]  # the first sample looks like the other class
    worth = "crosstail.reports.run.suspects.worth_a_look"
    one = {"row": 0, "seems": 1, "probability": 0.1, "chance": 0.6}
    monkeypatch.setattr(worth, lambda p, y, shares: pd.DataFrame([one]))
    plain = finished(HITS, totals=TOTALS)
    log_p = np.log(p).astype(np.float16)
    told = {"predicted": p.argmax(1), "log_p": log_p, "true": log_p[np.arange(80), y]}
    test = Answers(**plain.result.answered, y=y, domain=domain, row=np.arange(80), **told)
    kept = HeldOut(test.keep(np.zeros(80, bool)), test)
    run = plain.knowing(held_out=kept, calibration=Calibration.none(plain.result.domains, 2))
    sets = next(block for block in card(run).blocks if isinstance(block, Table) and "covered, %" in block.header)
    assert [row[:3] for row in sets.rows] == [["d0", "40", "97.5"], ["d1", "40", "100.0"]]
    assert any(isinstance(block, Text) and "--coverage" in block.text for block in card(run).blocks)
    assert "1 of 80" in said(run, "Data") and "60 %" in said(run, "Data")
    assert "Certainty" not in sections(plain) and "labelled" not in said(plain, "Data")
