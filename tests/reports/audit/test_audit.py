"""The audit: what it finds in synthetic data sets, what it advises, its page and its terminal output."""

import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from crosstail import discovery
from crosstail.data import with_gaps_noted
from crosstail.data.dataset import DomainDataset
from crosstail.data.images.files import ImageFiles
from crosstail.data.names import SameName
from crosstail.reports.audit import CAVEAT, audit, charts, findings, recommend
from crosstail.reports.audit.advice import regime
from crosstail.reports.audit.document import page, summary
from crosstail.reports.audit.names import near_names
from crosstail.reports.document import html, terminal
from crosstail.reports.document.model import Gallery, Table


def quiet(what, done, total):
    """No report."""


def from_counts(train, test=12, val=3, *, features=6, classes=None, domains=None, seed=0, images=False):
    """A data set with these training counts (D, C); `test` and `val` are numbers per pair, or tables."""
    tables = {"train": np.array(train)}
    tables |= {split: np.broadcast_to(n, tables["train"].shape) for split, n in (("val", val), ("test", test))}
    rows = [(d, c, s) for s, table in tables.items() for (d, c), n in np.ndenumerate(table) for _ in range(n)]
    rng = np.random.default_rng(seed)
    shape = (len(rows), 16, 16, 3) if images else (len(rows), features)
    x = rng.integers(0, 256, shape, np.uint8) if images else rng.normal(size=shape).astype(np.float32)
    num_domains, num_classes = tables["train"].shape
    return DomainDataset(
        name="made",
        x=x,
        y=np.array([c for _, c, _ in rows], np.int64),
        domain=np.array([d for d, _, _ in rows], np.int64),
        split=np.array([s for _, _, s in rows], "<U5"),
        classes=tuple(classes or (f"c{i}" for i in range(num_classes))),
        domains=tuple(domains or (f"d{i}" for i in range(num_domains))),
    )


OPPOSITE = [[200, 50, 12, 3], [3, 12, 50, 200]]
SAME = [[200, 50, 12, 3], [400, 100, 24, 6]]
BALANCED = [[120, 118, 121, 119], [40, 42, 39, 41]]


def texts(found, problem=None):
    return [f.text for f in findings(found) if problem in (None, f.problem)]


# ---- counts


def test_pairs_and_classes_that_stand_out():
    train = [[101, 100, 20, 0, 0], [0, 0, 1, 0, 7]]
    test = [[5, 5, 0, 5, 5], [5, 5, 5, 5, 5]]
    found = audit(from_counts(train, test))
    assert found.counts["train"].tolist() == train and found.counts["test"].tolist() == test
    assert found.shots.tolist()[0] == ["many", "medium", "few", "zero", "zero"]
    assert found.shot_counts() == {"many": 1, "medium": 1, "few": 3, "zero": 5}
    assert found.shot_counts(1) == {"many": 0, "medium": 0, "few": 2, "zero": 3}
    assert found.zero_pairs == [(0, 3), (0, 4), (1, 0), (1, 1), (1, 3)]
    assert found.few_pairs == [(1, 2), (1, 4), (0, 2)]
    assert found.single_domain_classes == [(0, 0), (0, 1), (1, 4)]
    assert found.untested_pairs == [(0, 2)]
    assert found.missing_classes("train") == [3] and found.missing_classes("test") == []
    assert found.empty_domains == []


def test_what_stands_out_is_said_once_with_examples():
    found = audit(from_counts([[9, 0, 0], [9, 30, 0], [0, 0, 0]], [[2, 4, 4], [4, 0, 4], [4, 4, 4]]))
    said = {f.text: f for f in findings(found)}
    assert [f.problem for f in said.values()] == sorted((f.problem for f in said.values()), reverse=True)
    examples = {text.split(",")[0]: finding.examples for text, finding in said.items()}
    assert examples["1 class has no training sample in any domain and cannot be learned."] == ("c2",)
    assert examples["1 domain has no training sample."] == ("d2",)
    # Neither the empty domain's pairs nor the missing class's are listed again.
    assert examples["1 of 9 pairs has no training sample"] == ("d0 / c1",)
    assert examples["2 of 9 pairs have 1 to 20 training samples (few-shot)."] == ("d0 / c0 (9)", "d1 / c0 (9)")
    assert any(text.startswith("1 class has training samples in one domain only") for text in said)
    assert any(text.startswith("1 pair has training samples but no test sample") for text in said)
    assert any("2 to 4 test samples" in text and "50 points" in text for text in said)


def test_nothing_stands_out_in_a_sound_set():
    assert findings(audit(from_counts([[150, 150], [150, 150]]))) == []


def test_missing_splits_are_problems():
    assert any("no validation sample" in text for text in texts(audit(from_counts([[30, 30]], val=0)), True))
    assert any("no test sample" in text for text in texts(audit(from_counts([[30, 30]], test=0)), True))


def test_an_unbalanced_test_set_is_noted():
    assert any("not balanced (10 to 40" in text for text in texts(audit(from_counts([[30, 30]], [[10, 40]]))))


def test_what_the_source_says_is_passed_on_but_nothing_twice():
    dataset = from_counts([[150, 150], [150, 150]]).with_notes("2 files were left out")
    assert texts(audit(dataset)) == ["2 files were left out."]
    empty = with_gaps_noted(from_counts([[150, 150], [0, 0]]))
    assert empty.notes and [text for text in texts(audit(empty)) if "domain" in text] == [
        "1 domain has no training sample."
    ]


def test_a_domain_with_one_class_is_noted():
    found = audit(from_counts([[150, 150], [0, 150]]))
    assert any(text.startswith("1 domain has training samples of a single class") for text in texts(found))


# ---- groups


def test_a_column_of_patients_that_leak_is_the_first_problem():
    dataset = from_counts([[150, 150]])
    patients, scans = np.arange(len(dataset)) // 2, np.arange(len(dataset)) % 100
    patients[dataset.rows("test")] = patients.max() + 1 + np.arange(len(dataset.rows("test"))) // 2
    own = {"patient": patients, "scan no": scans, "case": np.arange(len(dataset))}
    found = audit(replace(dataset, group_like=own, same_names=(SameName("class", {"a": 1, "A": 1}),)))
    first, *others = findings(found)
    assert first.problem and "scan no" in first.text and "24 of 24 test samples" in first.text
    assert "--column 'group=scan no'" in first.text and [f.problem for f in others] == [True, False]
    assert "The column patient looks like a group: add --column group=patient." in texts(found, False)
    assert found.to_json()["group_columns"][0] == {"name": "scan no", "shared": 24, "tests": 24}
    untested = audit(replace(dataset, group_like=own).keep(dataset.split == "train"))
    assert not any("looks like a group" in text for text in texts(untested, True))


# ---- names


def test_spellings_of_one_name_are_a_problem_and_near_names_worth_knowing():
    dataset = from_counts(
        [[150, 150], [150, 150]], classes=["horses", "horse"], domains=["art_painting", "art_paint1ng"]
    )
    assert texts(audit(dataset)) == [
        "1 pair of classes or domains has names that are nearly the same: rename one if it is a slip."
    ]
    same = SameName("class", {"horse": 180, "horse ": 150})
    found = findings(audit(replace(dataset, same_names=(same,))))
    assert found[0].problem and found[0].examples == ("class 'horse' (180) and 'horse ' (150)",)
    assert "--names merge" in found[0].text and [finding.problem for finding in found] == [True, False]


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        ("butterfly", "Butterflies", True),
        ("box", "boxes", True),
        ("melanoma", "melanomas", True),
        ("carcinoma", "carcimoma", True),
        ("keratosis", "kertosis", True),
        ("location_43", "location_46", False),
        ("location_4", "location_43", False),
        ("hospital_a", "hospital_b", True),
        ("cat", "car", False),
        ("p1", "p1s", False),
        ("is", "iss", False),
        ("keratosis", "Keratosis", False),  # a problem
        ("keratosis", "kratoss", False),
    ],
)
def test_names_that_are_near(one, other, near):
    assert bool(near_names([one, other])) is near is bool(near_names([other, one]))


def test_ten_thousand_names():
    assert near_names([f"class_{i:05}" for i in range(10_000)]) == []


# ---- duplicates


def test_equal_rows_are_found_with_what_they_differ_in():
    dataset = from_counts([[5, 5], [5, 5]])
    one, other_class, other_domain, tested = (
        np.flatnonzero((dataset.domain == d) & (dataset.y == c) & (dataset.split == s))
        for d, c, s in ((0, 0, "train"), (0, 1, "train"), (1, 0, "train"), (0, 0, "test"))
    )
    for i, rows in enumerate((other_class, other_domain, tested)):
        dataset.x[rows[i]] = dataset.x[one[i]]
    dataset.x[one[4]] = dataset.x[one[3]]
    found = audit(dataset)
    assert {d.across: tuple(s.row for s in d.samples) for d in found.duplicates} == {
        ("class",): (one[0], other_class[0]),
        ("domain",): (one[1], other_domain[1]),
        ("split",): (one[2], tested[2]),
        (): (one[3], one[4]),
    }
    assert [text.split(":")[0] for text in texts(found, True)] == [
        "1 row has exact duplicates across classes",
        "1 row has exact duplicates across splits",
    ]
    assert "1 row has exact duplicates across domains." in texts(found, False)
    assert f"row {one[0]} (c0) = row {other_class[0]} (c1)" in findings(found)[0].examples


def test_equal_images_in_memory_are_found():
    dataset = from_counts([[5, 5]], images=True)
    dataset.x[6] = dataset.x[0]
    (duplicate,) = audit(dataset).duplicates
    assert duplicate.exact and duplicate.across == ("class",) and [s.row for s in duplicate.samples] == [0, 6]


def test_the_first_members_of_a_large_group_show_what_differs():
    dataset = from_counts([[9, 2]])
    dataset.x[:] = 0
    (duplicate,) = audit(dataset).duplicates
    kinds = [(s.place["class"], s.place["split"]) for s in duplicate.samples]
    assert len(set(kinds[:6])) == len(set(kinds)) == 6 and len(kinds) == len(dataset)


def test_one_colour_is_blank_whatever_the_colour():
    dataset = from_counts([[3, 3]], images=True)
    dataset.x[1] = [200, 0, 30]
    assert audit(dataset).inputs.blank == ("row 1",)


def scene(seed, size=64):
    """Something with shapes: smooth noise."""
    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 256, (6, 6, 3), np.uint8))
    return small.resize((size, size), Image.Resampling.BICUBIC)


@pytest.fixture
def folder(tmp_path):
    """ROOT/<domain>/<class>/<image> with every kind of problem."""
    images = {
        "a/cat/0.jpg": scene(0),
        "a/cat/1.png": scene(1, 80),
        "a/dog/0.png": scene(2),
        "a/dog/grey.png": scene(3).convert("L"),
        "b/cat/0.jpg": scene(4).resize((120, 40)),
        "b/cat/blank.png": Image.new("RGB", (50, 60), "white"),
        "b/dog/0.gif": scene(5).convert("P"),
        "b/dog/1.jpg": scene(6),
    }
    for name, image in images.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        image.save(tmp_path / name)
    copies = {"a/dog/copy.jpg": "a/cat/0.jpg", "b/cat/twin.png": "a/dog/0.png", "b/dog/again.jpg": "b/dog/1.jpg"}
    for copy, original in copies.items():
        (tmp_path / copy).write_bytes((tmp_path / original).read_bytes())
    scene(1, 80).resize((50, 50)).save(tmp_path / "a/dog/smaller.jpg", quality=80)
    (tmp_path / "a/cat/empty.jpg").write_bytes(b"")
    (tmp_path / "b/dog/empty.jpg").write_bytes(b"")
    (tmp_path / "b/cat/cut.jpg").write_bytes((tmp_path / "b/dog/1.jpg").read_bytes()[:-400])
    return tmp_path


def from_folder(root):
    names = sorted(str(path.relative_to(root)) for path in root.glob("*/*/*"))
    split = ["test" if name == "b/dog/again.jpg" else "train" for name in names]
    return DomainDataset(
        name=root.name,
        x=ImageFiles(root, names),
        y=np.array([int("/dog/" in name) for name in names]),
        domain=np.array([int(name.startswith("b/")) for name in names]),
        split=np.array(split, "<U5"),
        classes=("cat", "dog"),
        domains=("a", "b"),
    )


def test_image_files_sizes_modes_formats_and_what_is_broken(folder):
    inputs = audit(from_folder(folder)).inputs
    assert [name for name, _ in inputs.broken] == ["a/cat/empty.jpg", "b/cat/cut.jpg", "b/dog/empty.jpg"]
    assert all(reason for _, reason in inputs.broken)
    assert inputs.blank == ("b/cat/blank.png",)
    a, b = inputs.per_domain
    assert (a.images, b.images) == (6, 6) and inputs.overall.images == 12
    assert a.modes == {"RGB": 5, "L": 1} and b.modes == {"RGB": 5, "P": 1}
    assert b.formats == {"JPEG": 3, "PNG": 2, "GIF": 1}
    assert (a.smallest, a.median, a.largest) == ((50, 50), (64, 64), (80, 80))
    assert inputs.overall.smallest == (50, 50) and inputs.overall.largest == (80, 80)


def test_equal_files_and_images_that_look_alike(folder):
    without = audit(from_folder(folder), look_alike=False)
    # A header says nothing of a file that ends too early.
    assert [name for name, _ in without.inputs.broken] == ["a/cat/empty.jpg", "b/dog/empty.jpg"]
    found = audit(from_folder(folder))
    groups = {tuple(s.name for s in d.samples): (d.exact, d.across) for d in found.duplicates}
    assert groups == {
        ("a/cat/0.jpg", "a/dog/copy.jpg"): (True, ("class",)),
        ("a/dog/0.png", "b/cat/twin.png"): (True, ("class", "domain")),
        ("b/dog/1.jpg", "b/dog/again.jpg"): (True, ("split",)),
        ("a/cat/1.png", "a/dog/smaller.jpg"): (False, ("class",)),
    }
    assert found.alike_searched
    assert all(d.exact for d in without.duplicates) and not without.alike_searched
    assert "Near-duplicate images were not searched for." in texts(without)


class Elsewhere(ImageFiles):
    """Images without files of their own, as in a Hugging Face data set."""

    in_files = False


def test_images_that_are_not_in_files_of_their_own_are_audited_like_files(folder):
    dataset = from_folder(folder)
    found = audit(dataset.with_x(Elsewhere(folder, dataset.x.paths(), resolution=48)))
    assert found.to_json() == audit(dataset).to_json()


def test_progress_ends_at_the_total(folder):
    calls = []
    audit(from_folder(folder), progress=lambda *call: calls.append(call))
    last = {what: (done, total) for what, done, total in calls}
    assert "reading images" in last and all(done == total for done, total in last.values())


# ---- embeddings


def test_embeddings_facts():
    dataset = from_counts([[5, 5]], val=0, test=2, features=3)
    x = np.zeros((len(dataset), 3), np.float32)
    x[:, 0] = np.arange(len(x)) + 1
    x[2, 1], x[3, 2] = np.nan, np.inf
    inputs = audit(dataset.with_x(x)).inputs
    assert inputs.width == 3 and inputs.dtype == "float32"
    assert inputs.not_finite == (2, 3) and inputs.constant == (1, 2)
    assert inputs.norms == (1, 8.5, 14)  # of 1, 2, 5, …, 14
    assert any("2 rows have a NaN" in text for text in texts(audit(dataset.with_x(x)), True))


# ---- advice


@pytest.mark.parametrize(
    ("train", "expected"),
    [
        (OPPOSITE, "divergent"),
        (SAME, "same tails"),
        (BALANCED, "balanced"),
        ([[200, 50, 12, 3]], "one domain"),
        ([[200, 50, 12, 3], [0, 0, 0, 0]], "one domain"),
        ([[20, 21, 19, 20]], "balanced"),
        ([[6, 3, 5, 4], [4, 6, 3, 5]], "balanced"),  # so uneven by chance alone
        ([[9, 0, 0, 0], [7, 0, 0, 0]], "empty"),
        ([[0, 0], [0, 0]], "empty"),
    ],
)
def test_regime_and_what_to_try(train, expected):
    found = audit(from_counts(train))
    assert regime(found) == expected
    assert recommend(found) == (None if expected == "empty" else [])
    assert 1 <= len(found.advice) <= 3


def test_options_for_images():
    assert recommend(audit(from_counts([[30, 30], [30, 30]], images=True))) == ["--tune", "none"]
    assert recommend(audit(from_counts([[130, 130], [130, 130]], images=True))) == []
    assert recommend(audit(from_counts([[300, 130]], images=True))) == ["--algorithm", "bsoftmax"]


@pytest.mark.parametrize("train", [OPPOSITE, SAME, BALANCED])
def test_advice_names_only_algorithms_that_exist(train):
    found = audit(from_counts(train, images=True))
    known = set(discovery.names("crosstail.algorithms"))
    named = re.findall(r"`([a-z_]+)(?::retrain)?`", " ".join(found.advice))
    assert named and set(named) <= known


def test_advice_on_rare_pairs():
    *_, rare = audit(from_counts([[200, 0, 12], [3, 120, 0]])).advice
    assert rare.startswith("Of 6 pairs, 2 have no training sample and 2 at most 20: expect")
    assert "transfer from the other domains" in rare
    *_, few = audit(from_counts([[200, 150, 12], [300, 120, 150]])).advice
    assert few.startswith("Of 6 pairs, 1 has at most 20 training samples: expect")


def test_it_says_how_far_apart_the_two_questions_are():
    """Of guesses of the most frequent class: 2 of 4 pairs, and 170 of 200 samples."""
    apart, same = (" ".join(audit(from_counts(counts)).advice) for counts in ([[90, 10], [20, 80]], [[50, 50]] * 2))
    assert "is right in 50.0 %; of samples as they come it is right in 85.0 %" in apart
    assert "nearly the same question" in same and "nearly the same question" not in apart
    assert "Two questions" not in " ".join(audit(from_counts([[5, 0], [0, 0]])).advice)


def test_frozen_features_are_advised_for_few_images_only():
    assert "--tune none" in audit(from_counts([[30, 30], [30, 30]], images=True)).advice[-1]
    assert "--tune none" not in " ".join(audit(from_counts([[30, 30], [30, 30]])).advice)
    assert "--tune none" not in " ".join(audit(from_counts([[130, 130], [130, 130]], images=True)).advice)


# ---- JSON, tables and charts


def test_json_has_plain_finite_values(folder):
    for dataset in (from_folder(folder), from_counts([[5, 0], [0, 0]]), from_counts(OPPOSITE)):
        found = audit(dataset)
        record = json.loads(json.dumps(found.to_json(), allow_nan=False))
        assert record["counts"]["train"] == found.train.tolist()
        assert record["advice"] == list(found.advice)
    assert record["divergence"]["between"][0][1] == pytest.approx(found.divergence.between[0, 1])
    assert record["inputs"]["kind"] == "embeddings"


def test_tables_of_counts():
    found = audit(from_counts([[0, 1, 5], [6, 1500, 1000]]))
    assert charts.count_table(found)["count"].tolist() == [0, 1, 5, 6, 1500, 1000]


def test_titles_say_the_finding():
    found = audit(from_counts([[200, 50, 0], [3, 12, 50]]))
    assert charts.count_chart(found).title == (
        "The largest pair has 200 training samples, the smallest 3; 1 of 6 has none (orange)"
    )
    assert charts.count_chart(found).drawing.to_dict()


def test_divergence_is_a_table_with_shades():
    found = audit(from_counts([*OPPOSITE, [9, 9, 9, 9]]))
    blocks = page(found, from_counts(OPPOSITE)).blocks
    table = next(block for block in blocks if "in bits" in getattr(block, "title", ""))
    between = found.divergence.between
    assert table.rows[0][2:] == ["0.00", *(f"{between[0, j]:.2f}" for j in (1, 2))]
    assert set(table.shades) == {(i, j + 2) for i in range(3) for j in range(3) if i != j}
    assert max(table.shades.values()) <= 1


def test_a_heat_map_that_would_be_too_large_is_left_out():
    found = audit(from_counts(np.ones((12, 345), np.int64), test=0, val=0))
    assert charts.count_chart(found) is None


# ---- page and terminal


class Tags(HTMLParser):
    """Every opened element with its attributes."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


EVIL = "<script>alert(1)</script>"
SHAPES = {
    "small": from_counts(OPPOSITE, classes=[EVIL, "b", "c", "d"], domains=["[red]x", "</script>y"]),
    "images": from_counts([[30, 0, 4], [2, 9, 40]], images=True),
    "one domain": from_counts([[9, 4, 1]]),
    "an empty domain": from_counts([[9, 4, 1], [0, 0, 0]]),
    "nothing to train on": from_counts([[0, 0], [0, 0]]),
    "many classes": from_counts(np.arange(2 * 345).reshape(2, 345) % 7, test=1, val=0),
    "many domains": from_counts(
        np.arange(20 * 3).reshape(20, 3) + 1, domains=[f"a long name of domain {i}" for i in range(20)]
    ),
    "very many domains": from_counts(
        np.arange(50 * 3).reshape(50, 3) + 1, test=1, val=1, domains=[f"{i}\x1b[2J" for i in range(50)]
    ),
    "the largest grid": from_counts(
        np.arange(8 * 12).reshape(8, 12) * 10,
        features=1,
        domains=[f"domain {i} of 8" for i in range(8)],
        classes=[f"a class with a long name {i}" for i in range(12)],
    ),
}


@pytest.fixture(params=SHAPES)
def shape(request):
    return SHAPES[request.param]


def test_page_of_any_shape_is_well_formed_and_offline(shape):
    text = html.render(page(audit(shape), shape)).replace(html._vega(), "")
    tags = Tags()
    tags.feed(text)
    assert EVIL not in text and "<script>y" not in text
    scripts = [attributes for tag, attributes in tags.found if tag == "script"]
    drawn = [attributes for tag, attributes in tags.found if "data-chart" in attributes]
    assert len(scripts) == len(drawn) + 1 + bool(drawn)  # one specification each, the drawing code, Vega
    assert all(len(attributes["aria-label"]) > 30 for attributes in drawn)
    assert all(attributes.get("alt") for tag, attributes in tags.found if tag == "img")
    links = [v for _, attributes in tags.found for k, v in attributes.items() if k in ("src", "href")]
    assert all(link.startswith(("data:", "#")) for link in links)
    assert CAVEAT in text


def test_page_shows_suspicious_pictures(folder):
    dataset = from_folder(folder)
    galleries = [block for block in page(audit(dataset), dataset).blocks if isinstance(block, Gallery)]
    shown = {gallery.caption: [picture.alternative for picture in gallery.pictures] for gallery in galleries}
    assert shown["a/cat/0.jpg (cat) = a/dog/copy.jpg (dog)"] == ["a/cat/0.jpg", "a/dog/copy.jpg"]
    assert shown["a/cat/1.png (cat) ~ a/dog/smaller.jpg (dog)"] == ["a/cat/1.png", "a/dog/smaller.jpg"]
    assert len(galleries) == 4


def test_terminal_of_any_shape_fits_80_columns(shape):
    console = Console(width=80, record=True, file=io.StringIO())
    terminal.show(summary(audit(shape)), console)
    text = console.export_text()
    assert all(len(line.rstrip()) <= 80 for line in text.splitlines())
    assert "What to expect" in text and shape.name in text
    assert "\x1b" not in text
    if shape is SHAPES["small"]:
        assert "[red]x" in text  # no markup


def test_terminal_colours_cells_but_says_the_number_too():
    console = Console(width=80, force_terminal=True, color_system="truecolor", file=io.StringIO())
    (counts,) = [b for b in summary(audit(from_counts([[100, 0]]))) if isinstance(b, Table) and "pair" in b.title]
    terminal.show([counts], console)
    text = console.file.getvalue()
    assert "48;2;" in text and "100" in text and re.search(r" 0\x1b", text)
