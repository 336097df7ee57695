"""docs/howto/own-parts.md: every file passes the contract of its kind, and every command works."""

import re
from pathlib import Path

import pytest

from crosstail.testing import check_file

PAGE = (Path(__file__).parents[2] / "docs/howto/own-parts.md").read_text(encoding="utf-8")
FILE = re.compile(r'^```\w+ title="(.+?)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
SECTIONS = PAGE.split("\n## ")[1:]
SMALL = " --steps 2 --evaluations 1 --batch-size 4"
SCREEN = 50  # lines


@pytest.fixture
def written(tmp_path, monkeypatch):
    """All files of the page."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILE.findall(PAGE):
        Path(name).write_text(text, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.partition("\n")[0])
def test_a_kind_fits_on_a_screen_and_its_commands_work(crosstail, written, section):
    assert len(section.splitlines()) <= SCREEN
    (script,) = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    for command in script.splitlines():
        words = command.removeprefix("crosstail ")
        if words.startswith("sweep"):
            words += " --trials 1 --seeds 1 --launcher inline"
        crosstail(words + SMALL * words.startswith(("fit", "sweep"))).ok()


@pytest.mark.parametrize("name", [name for name, _ in FILE.findall(PAGE) if name.endswith(".py")])
def test_a_file_passes_the_contract_of_its_kind(written, name, capsys):
    check_file(f"./{name}")
    assert all(line.startswith("✓") for line in capsys.readouterr().out.splitlines())
