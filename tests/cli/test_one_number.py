"""One quantity has one value and one interval, on every page and on the terminal, wherever it stands."""

import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from crosstail.reports.document import html, markdown
from crosstail.reports.document.model import Cards, Heading, Table, Text
from crosstail.sweeps.launchers import _launcher
from crosstail.sweeps.launchers.inline import Inline
from crosstail.testing import save_separable

pytestmark = pytest.mark.usefixtures("full_page")

FIT = "fit v.npz --algorithm erm --second-stage retrain --width 4 --steps 4 --batch-size 4 --evaluations 2"
ENDS = re.compile(r"95 % interval (-?[0-9.]+ to [0-9.]+)")
WITH_ENDS = re.compile(r"([0-9.]+) \(([0-9.]+ to [0-9.]+)\)")
LABELS = {"average over pairs": "pair average", "the run's test set": "pair average", "held-out data": "pair average"}
CARDS = {"average over pairs", "held-out data", "worst pair", "worst domain", "few-shot pairs", "zero-shot pairs"}


class Shown:
    """What pages say of each quantity: value, interval if there is one, and where."""

    def __init__(self):
        self.said = defaultdict(list)

    def add(self, page, name, value, ends=""):
        name = LABELS.get(name.lower(), name)
        if re.fullmatch("[0-9.]+", value):
            self.said[name].append((page, value, ends))

    def one_each(self):
        """Every quantity has one value and one interval."""
        for name, found in self.said.items():
            assert len({value for _, value, _ in found}) == 1, (name, found)
            assert len({ends for *_, ends in found if ends}) <= 1, (name, found)

    def pages(self, name):
        """The pages that show a quantity, and those with its interval."""
        return {page for page, *_ in self.said[name]}, {page for page, _, ends in self.said[name] if ends}


def read(shown, page, blocks, method="erm:retrain"):
    """Everything that a page says in tables, cards and its answer."""
    for block in blocks:
        if isinstance(block, Cards):
            for card in block.cards:
                if card.label.lower() in CARDS:
                    shown.add(page, card.label.lower(), card.value.removesuffix(" %"), *ENDS.findall(card.detail)[-1:])
                if card.label == "Samples as they come":
                    default = re.search("default answers ([0-9.]+) %", card.detail).group(1)
                    shown.add(page, "all, as they come: with option", card.value[:-2], *ENDS.findall(card.detail))
                    shown.add(page, "all, as they come: default", default)
        elif isinstance(block, Text) and block.lead:
            for value, ends in re.findall(
                r"([0-9.]+) % of the answers are right \(95 % interval ([^)]*)\)", block.text
            ):
                shown.add(page, "pair average", value, ends)
            for pair, ends in re.findall(r"(\S+ / \S+) has \d+ of \d+ right \(95 % interval ([^)]*)\)", block.text):
                shown.said[pair] += [(page, value, ends) for _, value, _ in shown.said[pair][:1]]
        elif isinstance(block, Table):
            read_table(shown, page, block, method)


def read_table(shown, page, table, method):
    header, kind = list(table.header), table.header[0]
    for row in table.rows:
        if kind == "site" and header[1].startswith("every pair equal"):
            for name, cell in zip(header[1:], row[1:], strict=True):
                shown.add(page, f"{row[0]}, {name}", *WITH_ENDS.fullmatch(cell).groups())
            if row[0] == "all":
                shown.add(page, "pair average", *WITH_ENDS.fullmatch(row[1]).groups())
            else:
                shown.add(page, row[0], *WITH_ENDS.fullmatch(row[1]).groups())
        elif kind == "site":  # what must not be missed
            shown.add(page, f"{row[0]} / c", row[2], row[3])
        elif kind in ("metric", "pair", "domain") and "95 % interval" in header:
            if kind == "domain" and not {"accuracy, %", "unseen, %"} & set(header):
                continue  # calibration
            place = header.index("95 % interval")
            shown.add(page, row[0], row[place - 1], row[place])
        elif kind == "fold":
            name = "pair average" if row[0] == "pooled" else f"fold {row[0]}"
            shown.add(page, name, row[2], row[3])
        elif header[:3] == ["method", "class", "site"]:
            shown.add(page, f"{row[2]} / {row[1]}", row[3], row[4])
        elif kind == "method" and row[0].lstrip("• ") == method:  # a race or a report
            named = {"test": "pair average"}
            for place, name in enumerate(header):
                if name in ("test", "pair average", "worst pair", "worst domain", *"pqr"):
                    ends = row[place + 1] if "95 % interval" in header[place + 1 : place + 2] else ""
                    value = row[place].split(" ")[0]
                    shown.add(page, named.get(name, name), value, ends)
        elif kind == "accuracy, %":  # a comparison, of which the first is the run
            shown.add(page, {"samples as they come": "all, as they come: with option"}.get(row[0], row[0]), row[1])


@pytest.fixture
def saved(monkeypatch):
    """Every page that is written, by its path."""
    found, save, render = {}, html.save, markdown.render

    def kept(document, path):
        found[str(path)] = document.blocks
        save(document, path)

    def card(document):
        found[f"model card {len(found)}"] = document.blocks
        return render(document)

    monkeypatch.setattr(html, "save", kept)
    monkeypatch.setattr(markdown, "render", card)
    return found


@pytest.fixture
def data(tmp_path):
    """Vectors of groups from three domains, some of which are hard to tell apart."""
    save_separable(tmp_path / "v.npz", [[30, 9, 4], [6, 30, 12], [20, 3, 30]])
    with np.load(tmp_path / "v.npz") as stored:
        arrays = dict(stored)
    rng = np.random.default_rng(0)
    arrays["x"] += 4 * rng.normal(size=arrays["x"].shape).astype(np.float32)
    keep = rng.random(len(arrays["y"])) < 0.8  # so that pairs have different numbers of samples
    arrays = {name: values[keep] for name, values in arrays.items()}
    np.savez(tmp_path / "v.npz", **arrays, domains=list("pqr"), classes=list("abc"))
    return "v.npz"


def done(crosstail, words):
    found = crosstail(words).ok()
    return found.out


def read_terminal(shown, page, text):
    for value, ends in re.findall(r"^pair average, % +([0-9.]+) 95 % interval ([0-9.]+ to [0-9.]+)", text, re.M):
        shown.add(page, "pair average", value, ends)
    for name, value in re.findall(r"^(worst pair|average over domains|  [pqr]) +([0-9.]+) ", text, re.M):
        shown.add(page, name.strip(), value)
    for line, answers in (("default answers", "default"), ("with --site SITE --prior train", "with option")):
        for cells in re.findall(rf"^{line} +(.*)$", text, re.M):
            for question, found in zip(("every pair equal", "as they come"), WITH_ENDS.findall(cells), strict=True):
                shown.add(page, f"all, {question}: {answers}", *found)


def test_of_a_run(crosstail, data, saved):
    shown = Shown()
    read_terminal(shown, "fit", done(crosstail, f"{FIT} --critical c --out run"))
    done(crosstail, f"{FIT} --seed 1 --out other")
    other = {name for name in saved if "other" in name} | {list(saved)[-1]}  # with its model card
    read_terminal(shown, "evaluate", done(crosstail, "evaluate run v.npz --split test"))
    done(crosstail, "compare run other --out compare.html")
    done(crosstail, "report run --out report")
    for page, blocks in saved.items():
        if page not in other:
            read(shown, page, blocks)
    table = pd.read_csv("run/metrics.csv")
    for row in table[table["class"].isna()].fillna("all").to_dict("records"):
        shown.add("metrics.csv", f"{row['domain']}, as they come: with option", f"{100 * row['as_they_come']:.1f}")
        if row["domain"] != "all":
            shown.add("metrics.csv", row["domain"], f"{100 * row['balanced_accuracy']:.1f}")
    shown.one_each()
    every, with_ends = shown.pages("pair average")
    assert len(every) == 7 and len(with_ends) == 5  # a comparison and the table of a report have no intervals
    assert len(shown.pages("worst pair")[1]) == 3 and len(shown.pages("worst pair")[0]) == 7
    for name in "pqr":
        assert len(shown.pages(name)[1]) == 3 and len(shown.pages(name)[0]) >= 5
        assert len(shown.pages(f"{name} / c")[1]) == 4
        assert len(shown.pages(f"{name}, as they come: with option")[1]) == 3
    assert len(shown.pages("all, as they come: with option")[0]) == 7
    assert len(shown.pages("average over domains")[0]) == 6


def test_of_folds_and_the_model_on_every_sample(crosstail, data, saved):
    shown = Shown()
    read_terminal(shown, "fit", done(crosstail, f"{FIT} --folds 3 --refit --critical c --out cv"))
    done(crosstail, "report cv/fold-1 cv/fold-2 cv/fold-3 --out report")
    refit = next(page for page in saved if "refit" in page)
    card = list(saved)[list(saved).index(refit) + 1]
    for page in (refit, card, "cv/report.html", "report/index.html"):
        read(shown, page, saved[page])
    shown.said = {name: found for name, found in shown.said.items() if "-shot" not in name}  # by other counts
    for k in (1, 2, 3):
        own = Shown()
        read(own, f"fold {k}", saved[f"cv/fold-{k}/report.html"])
        own.one_each()
        shown.said[f"fold {k}"] += own.said["pair average"]
    shown.one_each()
    assert len(shown.pages("pair average")[1]) == 4 and len(shown.pages("pair average")[0]) == 5
    assert all(len(shown.pages(f"fold {k}")[1]) == 2 for k in (1, 2, 3))
    assert len(shown.pages("worst pair")[0]) == 5 and len(shown.pages("all, as they come: with option")[1]) == 4


def test_of_unseen_domains(crosstail, data, saved):
    done(crosstail, f"{FIT} --protocol dg --out dg")
    done(crosstail, "report dg --out report")
    shown = Shown()
    read(shown, "dg", saved["dg/report.html"])
    read(shown, "report", saved["report/index.html"])
    for name in "pqr":
        own = Shown()
        read(own, name, saved[f"dg/{name}/report.html"])
        own.one_each()
        shown.said[name] += own.said["all samples"]
    shown.one_each()
    for name in "pqr":
        assert shown.pages(name) == ({"dg", "report", name}, {"dg", name})


def test_of_a_race(crosstail, data, saved, monkeypatch):
    monkeypatch.setattr(_launcher, "launcher", lambda name, store, resources: Inline(store, resources))
    words = "--algorithm erm --trials 1 --seeds 1 --steps 4 --batch-size 4"
    done(crosstail, f"race v.npz {words} --out race")
    done(crosstail, "evaluate race/best v.npz --split test --out best.html")
    done(crosstail, f"report {Path('race/best').resolve()} --out report")
    shown = Shown()
    for page in ("race/report.html", "best.html", "report/index.html"):
        read(shown, page, saved[page], method="erm")
    shown.one_each()
    assert shown.pages("pair average") == (
        {"race/report.html", "best.html", "report/index.html"},
        {"race/report.html", "best.html"},
    )
    assert len(shown.pages("worst domain")[0]) == 3


def test_of_a_race_for_samples_as_they_come(crosstail, data, saved, monkeypatch):
    monkeypatch.setattr(_launcher, "launcher", lambda name, store, resources: Inline(store, resources))
    words = "--trials 1 --seeds 1 --steps 4 --batch-size 4 --select-on as_they_come"
    done(crosstail, f"race v.npz --algorithm erm --algorithm crt {words} --out race")
    done(crosstail, "evaluate race/best v.npz --split test --out best.html")
    come, name = Shown(), "all, as they come: with option"
    read(come, "race", saved["race/report.html"], method=json.loads(Path("race/race.json").read_text())["use"])
    read(come, "evaluate", saved["best.html"])
    come.said[name] += come.said.pop("pair average")[:1]  # what a race calls test
    assert come.said[name][-1][0] == "race"
    come.said = {name: come.said[name]}
    come.one_each()
    assert come.pages(name) == ({"race", "evaluate"}, {"race", "evaluate"})


def test_what_must_not_be_missed_is_stored_and_comes_first_everywhere(crosstail, refused, data, saved):
    key = json.loads(done(crosstail, f"{FIT} --out run --json"))
    assert "critical" not in key  # nor is it in the spec, which identifies the run
    before = Path("run/spec.json").read_bytes()
    shown = done(crosstail, f"{FIT} --critical c --out run")  # of a finished run
    assert "What must not be missed: c" in shown.splitlines()[0] + shown.splitlines()[1]
    assert json.loads(Path("run/result.json").read_text())["critical"] == {"c": None}
    assert Path("run/spec.json").read_bytes() == before
    done(crosstail, f"{FIT} --out run")  # which keeps it
    done(crosstail, f"{FIT} --out other --seed 1")
    done(crosstail, "evaluate run v.npz --split test --out evaluated.html")
    done(crosstail, "compare run other --out compare.html")
    done(crosstail, "report run other --out report")
    done(crosstail, f"{FIT} --folds 2 --critical c --out cv")
    done(crosstail, f"{FIT} --protocol dg --critical c --out dg")
    pages = [
        "run/report.html",
        "evaluated.html",
        "compare.html",
        "report/index.html",
        "cv/report.html",
        "cv/fold-1/report.html",
    ]
    for page in [*pages, "dg/report.html", "dg/p/report.html"]:
        first = saved[page][0]
        assert isinstance(first, Heading) and first.text.startswith("What must not be missed"), page
    assert Path("run/model_card.md").read_text().splitlines()[2] == "## What must not be missed: c"
    assert "--critical c" in Path("run/model_card.md").read_text()
    assert "--critical d: there are a, b, c" in refused(f"{FIT} --critical d --out new")
    assert not Path("new").exists()


def test_of_the_model_that_follows_a_single_run(crosstail, data, saved):
    """Its held-out samples are the run's, of which those for validation are not tested on."""
    shown = Shown()
    read_terminal(shown, "fit", done(crosstail, f"{FIT} --refit --out run"))
    for page in ("run/report.html", "run/refit/report.html"):
        blocks = saved[page]
        read(shown, page, [block for block in blocks if getattr(block, "header", [""])[0] != "site"])
    sizes = [block.note for block in saved["run/refit/report.html"] if getattr(block, "header", [""])[0] == "site"]
    assert len(sizes) == 1 and "known for" not in sizes[0]
    shown.said = {name: found for name, found in shown.said.items() if not re.search("-shot|as they come", name)}
    shown.one_each()  # of what does not depend on the number of training samples
    assert {page for page, *_ in shown.said["pair average"]} == {"fit", "run/report.html", "run/refit/report.html"}
