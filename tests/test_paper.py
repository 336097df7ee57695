"""docs/paper.md lists every item of the paper, and every function and test that it names exists."""

import os
import re
from dataclasses import fields
from pathlib import Path

import pytest

from crosstail import algorithms, discovery
from crosstail.algorithms._hparams import Choice, LogUniform, OneMinus, Rounded

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/paper.md"
NAMED = re.compile(r"\[`(\w+)`\]\((\.\./[^)]+\.py)\)")
ITEM = re.compile(r"(?P<kind>[A-Z]\w+) \(?(?P<first>[\w.]+)\)?(?:–\(?(?P<last>[\w.]+)\)?)?$")


def rows():
    """The cells of the table, row by row."""
    table = PAGE.read_text(encoding="utf-8").partition("## Every item of the paper")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def items(cell):
    """The items that a first cell names; Table 2–7 are six.

    >>> list(items("Section 6.1, Table 2–3, Appendix F.1–F.2, Equation (6)–(7)"))[1:]
    ['Table 2', 'Table 3', 'Appendix F.1', 'Appendix F.2', 'Equation 6', 'Equation 7']
    """
    for part in cell.split(", "):
        found = ITEM.match(part)
        assert found, f"{part!r} is no item"
        prefix, first = re.fullmatch(r"((?:\w\.)?)(\w+)", found["first"]).groups()
        last = found["last"].removeprefix(prefix) if found["last"] else first
        numbers = [first] if first == last else map(str, range(int(first), int(last) + 1))
        yield from (f"{found['kind']} {prefix}{number}" for number in numbers)


@pytest.fixture(scope="module")
def latex():
    """The paper's text, all files in one, without comments."""
    folder = Path(os.environ.get("CROSSTAIL_SHARED", ROOT.parent / "shared")) / "seeds"
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("*.txt")]
    found = next((text for text in texts if "Multi-Domain Long-Tailed Recognition" in text), None)
    if found is None:
        pytest.skip(f"{folder} does not have the paper's LaTeX source (CROSSTAIL_SHARED says where)")
    files = dict(re.findall(r"%% file: (\w+)\.tex\n(.*?)(?=%% file: |\Z)", found, re.DOTALL))
    whole = re.sub(r"\\input\{(\w+)\}", lambda name: files[name[1]], files["0_main"])
    return re.sub(r"(?<!\\)%.*", "", whole).partition(r"\begin{document}")[2]


TOKEN = re.compile(
    r"\\(?P<appendix>appendix)\b|\\(?P<section>(?:sub)?section)\{|\\begin\{(?P<statement>definition|theorem|lemma|corollary)\}"
    r"|\\begin\{(?:wrap)?(?P<float>figure|table|algorithm)\}|(?P<caption>\\caption)\b"
    r"|\\(?P<side>begin|end)\{(?:equation|align)\}|(?P<label>\\label)\{"
)


def numbered(latex):
    """Every item that LaTeX numbers, in order; a numbered equation has a label."""
    counts, inside, appendix, equation = dict[str, int](), "", False, False

    def count(kind):
        counts[kind] = counts.get(kind, 0) + 1
        return counts[kind]

    for token in TOKEN.finditer(latex):
        if token["appendix"]:
            appendix, counts["section"] = True, 0
        elif token["section"]:
            number = count(token["section"])
            if token["section"] == "section":
                counts["subsection"] = 0
            section = chr(ord("A") + counts["section"] - 1) if appendix else str(counts["section"])
            kind = "Appendix" if appendix else "Section"
            yield f"{kind} {section}" if token["section"] == "section" else f"{kind} {section}.{number}"
        elif token["statement"]:
            yield f"{token['statement'].title()} {count(token['statement'])}"
        elif token["float"]:
            inside = token["float"]
        elif token["caption"]:
            yield f"{inside.title()} {count(inside)}"
        elif token["side"]:
            equation = token["side"] == "begin"
        elif equation:
            yield f"Equation {count('equation')}"


def test_every_item_of_the_paper_is_in_the_table_once(latex):
    listed = [item for cells in rows() for item in items(cells[0])]
    expected = list(numbered(latex))
    assert len(set(expected)) == len(expected) > 100
    assert sorted(listed) == sorted(expected)


def test_the_numbering_of_the_source_knows_every_label(latex):
    """A label stands in a section, a statement, a float or an equation: none is of a kind that would be missed."""
    found = len(list(numbered(latex)))
    unlabelled = len(re.findall(r"\\(?:sub)?section\{[^\n]*\n(?!\\label)", latex))
    assert len(re.findall(r"\\label\{", latex)) == found - unlabelled


@pytest.mark.parametrize("cells", rows(), ids=lambda cells: cells[0])
def test_the_functions_and_tests_of_a_row_exist(cells):
    assert len(cells) == 4
    for name, link in NAMED.findall(" ".join(cells)):
        file = (PAGE.parent / link).resolve()
        text = file.read_text(encoding="utf-8")
        assert re.search(rf"^\s*(?:def|class) {name}\b|^{name}\b.* = ", text, re.MULTILINE) or file.stem == name, link
    checks = NAMED.findall(cells[3])
    assert all(name.startswith("test_") for name, _ in checks)
    admitted = cells[3] == "–" or "Needs a GPU" in cells[3] or "results/claims.md" in cells[3]
    assert checks or admitted, "a row has a test, a page, or says why not"


METHODS = {
    **{"ERM": "erm", "GroupDRO": "group_dro", "Mixup": "mixup", "SagNet": "sagnet", "MLDG": "mldg", "IRM": "irm"},
    **{"DANN": "dann", "CDANN": "cdann", "CORAL": "coral", "MMD": "mmd", "MTL": "mtl", "Fish": "fish"},
    **{"Focal": "focal", "CBLoss": "cb_loss", "LDAM": "ldam", "BSoftmax": "bsoftmax", "SSP": "ssp", "CRT": "crt"},
}


def test_every_method_of_the_paper_is_there(latex):
    described = latex.partition("all-algo-details}\n")[2].partition(r"\subsection")[0]
    assert sorted(re.findall(r"\(\\textbf\{(\w+)\}\)", described)) == sorted(METHODS)
    assert set(METHODS.values()) <= set(discovery.names("crosstail.algorithms"))


# Table 12: default and search range. A rate of the generator is that of the whole model in our optimizers.
SCRATCH_RATE = (1e-3, LogUniform(10**-4.5, 10**-2.5))
SPACE = {
    ("erm", "lr"): (1e-3, LogUniform(10**-4.5, 10**-3.5)),
    ("erm", "weight_decay"): (0.0, LogUniform(1e-6, 1e-2)),
    ("dann", "lr"): SCRATCH_RATE,
    ("dann", "discriminator_lr"): SCRATCH_RATE,
    ("irm", "penalty"): (100.0, LogUniform(1e-1, 1e5)),
    ("irm", "anneal"): (500, Rounded(1, 1e4)),
    ("group_dro", "eta"): (0.01, LogUniform(1e-3, 1e-1)),
    ("mixup", "alpha"): (0.2, LogUniform(1, 1e4)),
    ("mldg", "beta"): (1.0, LogUniform(1e-1, 1e1)),
    ("coral", "gamma"): (1.0, LogUniform(1e-1, 1e1)),
    ("mmd", "gamma"): (1.0, LogUniform(1e-1, 1e1)),
    ("dann", "adversary"): (1.0, LogUniform(1e-2, 1e2)),
    ("dann", "discriminator_decay"): (0.0, LogUniform(1e-6, 1e-2)),
    ("dann", "discriminator_steps"): (1, Rounded(1, 8)),
    ("dann", "gradient_penalty"): (0.0, LogUniform(1e-2, 1e1)),
    ("dann", "beta1"): (0.5, Choice(0.0, 0.5)),
    ("mtl", "ema"): (0.99, Choice(0.5, 0.9, 0.99, 1.0)),
    ("sagnet", "adversary"): (0.1, LogUniform(1e-2, 1e1)),
    ("fish", "meta_lr"): (0.5, Choice(0.05, 0.1, 0.5)),
    ("focal", "gamma"): (1.0, LogUniform(0.5, 5)),
    ("cb_loss", "beta"): (0.9999, OneMinus(LogUniform(1e-5, 1e-2))),
    ("ldam", "max_m"): (0.5, LogUniform(10**-1, 10**-0.1)),
    ("ldam", "scale"): (30.0, Choice(10.0, 30.0)),
    ("boda", "nu"): (1.0, LogUniform(10**-0.5, 1.0)),
    ("boda", "weight"): (0.1, LogUniform(10**-2, 10**-0.5)),
}
RESNET = {
    "lr": (5e-5, LogUniform(10**-5, 10**-3.5)),
    "discriminator_lr": (5e-5, LogUniform(10**-5, 10**-3.5)),
    "dropout": (0.0, Choice(0.0, 0.1, 0.5)),
}
DIFFERENT = {("erm", "lr"), ("mixup", "alpha")}  # docs/algorithms.md: the printed ranges exclude their own defaults


def test_the_search_space_is_the_papers():
    declared = {(name, f.name): f for name, _ in SPACE for f in fields(algorithms.find(name).Hparams)}
    ours = {key: (declared[key].default, str(declared[key].metadata["search"])) for key in SPACE}
    printed = {key: (default, str(search)) for key, (default, search) in SPACE.items()}
    assert {key for key in SPACE if ours[key] != printed[key]} <= DIFFERENT
    for name, (default, search) in RESNET.items():
        found, its_search = declared["dann", name].metadata["finetune"]
        assert (found, str(its_search)) == (default, str(search)), name
