"""Run the command line in this process, with its exit code and its messages."""

import shlex
from typing import NamedTuple

import pytest

from crosstail import cli
from crosstail.report.document.model import Document
from crosstail.testing import save_separable


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def crosstail(monkeypatch, capsys, tmp_path):
    """Run a command in an empty folder, on a terminal of 80 columns; return its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(words):
        capsys.readouterr()
        try:
            cli.main(shlex.split(words))
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture
def full_page():
    """For tests that read the page of a run."""


@pytest.fixture(autouse=True)
def short_page(request, monkeypatch):
    """Without `full_page`, the page of a run is only a title: its charts take longer than the run itself."""
    if "full_page" not in request.fixturenames:
        monkeypatch.setattr("crosstail.report.run.page.run_document", lambda run: Document(run.result.spec.key, []))


@pytest.fixture
def vectors(tmp_path):
    """A data set of vectors in the folder of the test."""
    save_separable(tmp_path / "v.npz", [[30, 8, 2], [0, 9, 25]])
    return "v.npz"
