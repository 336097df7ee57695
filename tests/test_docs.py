"""The documentation works: code runs, commands and options exist, links resolve, and the site builds."""

import importlib
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest
from cyclopts import UNSET

import crosstail
from crosstail import cli

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r'^(?:<!-- not run: (?P<why>.+) -->\n)?```(?P<kind>\w+)(?: title="(?P<file>.+?)")?\n(?P<text>.*?)^```$',
    re.MULTILINE | re.DOTALL,
)
ONE_LINER = re.compile(r"python3? -c ")
ANSWERED = re.compile(r"""^\$ python -c "(?P<code>.+)"\n(?P<answer>(?:(?!```).+\n)+)""", re.MULTILINE)
INLINE = re.compile(r"`(crosstail [^`]+)`")
LINK = re.compile(r"(?:\]\(|<img src=\")(?!\w+:|#)([^)#\s\"]+)")


def name(page):
    return page.relative_to(ROOT).as_posix()


def blocks(page, kind):
    text = page.read_text(encoding="utf-8")
    found = [match for match in BLOCK.finditer(text) if match["kind"] == kind]
    return [(text[: match.start("text")].count("\n"), match) for match in found]


def add_file(name, text, monkeypatch):
    """Write a file that a page shows; one of ours is found beside our own files."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if path.parts[0] == "src":
        package = importlib.import_module(".".join(path.parent.parts[1:]))
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(path.parent.absolute())])


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shared = {"__name__": "__docs__"}
    for line, block in blocks(page, "toml") + blocks(page, "python"):
        if block["file"]:
            add_file(block["file"], block["text"], monkeypatch)
        elif block["kind"] == "python" and not block["why"]:
            exec(compile("\n" * line + block["text"], str(page), "exec"), shared)


@pytest.mark.parametrize(
    "code, answer",
    [
        pytest.param(*line, id=line[0][:60])
        for page in PAGES
        for line in ANSWERED.findall(page.read_text(encoding="utf-8"))
    ],
)
def test_a_one_liner_gives_the_answer_that_stands_below_it(code, answer, capsys):
    exec(compile(code, "one-liner", "exec"), {})
    assert capsys.readouterr().out == answer


def test_every_one_liner_has_an_answer():
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    answered = [len(ANSWERED.findall(text)) for text in texts]
    assert answered == [len(ONE_LINER.findall(text)) for text in texts]
    assert sum(answered) >= 5


def test_few_blocks_are_not_run():
    """A block that needs a GPU or data of the user's has `<!-- not run: why -->` before it, and is counted here."""
    assert [(name(page), block["why"]) for page in PAGES for _, block in blocks(page, "python") if block["why"]] == []


def commands(text):
    """The words of every crosstail command in a block of shell."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line.replace("…", " "), comments=True)
        while words and "=" in words[0]:  # variables
            words.pop(0)
        if words and words[0] == "crosstail":
            yield words[1 : words.index("|") if "|" in words else None]


def mistakes(words):
    """What is wrong with a command, in words, without running it."""
    if words[0].startswith("-"):
        return [] if words[0] in ("--help", "--version") else [f"crosstail has no {words[0]}"]
    if words[0] not in cli.VERBS:
        return [f"there is no crosstail {words[0]}"]
    arguments = cli.app[words[0]].assemble_argument_collection()
    wrong = []
    for word, following in zip(words, [*words[1:], "--"], strict=True):
        if not word.startswith("--"):
            continue
        try:
            *_, implied = arguments.match(word)
        except ValueError:
            wrong.append(f"crosstail {words[0]} has no {word}")
            continue
        if following.startswith("--") and implied is UNSET:
            wrong.append(f"{word} of crosstail {words[0]} lacks a value")
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_commands_of_a_page_exist(page):
    shown = [words for _, block in blocks(page, "sh") for words in commands(block["text"])]
    for text in INLINE.findall(BLOCK.sub("", page.read_text(encoding="utf-8"))):
        shown += commands(text.replace("\n", " "))
    assert [mistake for words in shown for mistake in mistakes(words)] == []


def test_the_checker_of_commands_finds_mistakes():
    text = """
    A=1 crosstail fit photos/ --algoritm boda \\
        --second-stage retrain --out
    crosstail fitt x   # crosstail fit --nothing
    pip install x
    crosstail sweep … --launcher ray | crosstail nonsense
    """
    assert [mistakes(words) for words in commands(text)] == [
        ["crosstail fit has no --algoritm", "--out of crosstail fit lacks a value"],
        ["there is no crosstail fitt"],
        [],
    ]


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=name)
def test_the_links_of_a_page_lead_to_files(page):
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The whole site, as `make docs` builds it: what mkdocs warns of is an error."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


LOADED = re.compile(r"<(?:script|link|img|iframe|source|video|object)\b[^>]*?\b(?:src|href|data)=[\"']?([^\"'\s>]+)")


def test_the_site_loads_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(PAGES)
    for page in pages:
        for address in LOADED.findall(page.read_text(encoding="utf-8")):
            assert not re.match(r"(\w+:)?//", address), f"{page.relative_to(site)} loads {address}"
            if page.name != "404.html" and not address.startswith("data:"):
                assert (page.parent / address.split("?")[0].split("#")[0]).exists(), f"{page.name}: no {address}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//|@import", style.read_text(encoding="utf-8")), style.name


FOLLOWED = re.compile(r"<a\b[^>]*?\bhref=[\"']?([^\"'\s>]*)")
PLACE = re.compile(r"\b(?:id|name)=[\"']?([^\"'\s>]+)")


def test_every_link_of_the_site_leads_somewhere(site):
    """Links to pages and to places inside them; the theme's 404 page is left out, which has addresses from the root."""
    texts = {
        page.resolve(): page.read_text(encoding="utf-8") for page in site.rglob("*.html") if page.name != "404.html"
    }
    places = {page: {unquote(name) for name in PLACE.findall(text)} | {"", "__top"} for page, text in texts.items()}
    dead, followed = [], 0
    for page, text in texts.items():
        for address in map(unescape, FOLLOWED.findall(text)):
            if re.match(r"\w+:", address):
                continue
            followed += 1
            file, _, place = unquote(address).partition("#")
            target = (page.parent / file).resolve() if file else page
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (target in places and place not in places[target]):
                dead.append(f"{page.relative_to(site.resolve())}: {address}")
    assert dead == [] and followed > len(texts)


def test_the_pages_of_the_commands_are_current():
    pages = runpy.run_path(str(ROOT / "studies/command_pages.py"))["pages"]()
    written = {path: path.read_text(encoding="utf-8") for path in pages if path.exists()}
    assert written == pages, "run: python -m studies.command_pages"
    assert set((ROOT / "docs/commands").iterdir()) <= set(pages)


def test_formulas_are_drawn_without_scripts(site):
    source = BLOCK.sub("", (ROOT / "docs/paper.md").read_text(encoding="utf-8"))
    blocks = source.count("$$") // 2
    inline = len(re.findall(r"(?<!\$)\$(?!\$)", source)) // 2
    page = (site / "paper.html").read_text(encoding="utf-8")
    assert blocks > 5 and inline > 5
    assert page.count("<math ") == blocks + inline == page.count("</math>")
    for page in site.rglob("*.html"):
        assert "arithmatex" not in page.read_text(encoding="utf-8"), page.name


def test_the_search_finds_words_beside_punctuation_and_no_listings(site):
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    separator = re.compile(index["config"]["separator"])
    found = {entry["location"]: separator.split(unescape(entry["text"]).lower()) for entry in index["docs"]}
    assert found["backbones.html#which-one"].count("dinov2") == 2  # (DINOv2 uses, timm:vit_small_patch14_dinov2
    assert not any(place.startswith("source/") for place in found)
    assert not any("Source code in" in entry["text"] for entry in index["docs"])


def test_the_navigation_is_short():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert 20 < len(re.findall(r"[\w/-]+\.md\b", text.partition("\nnav:")[2].partition("\nnot_in_nav:")[0])) <= 48


def test_every_public_name_is_in_the_reference(site):
    shown = "".join(page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html"))
    for public in crosstail.__all__:
        found = getattr(crosstail, public)
        parts = found.__module__.split(".")
        places = [f'id="{".".join(parts[:n])}.{public}"' for n in range(1, len(parts) + 1)]
        assert any(place in shown for place in places), f"{public} is in no page of docs/reference"
