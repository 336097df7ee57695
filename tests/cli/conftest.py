"""Run the command line in this process, with its exit code and its messages."""

import shlex
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import pytest
from PIL import Image

from crosstail import cli
from crosstail.reports.document.model import Document
from crosstail.testing import save_separable


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    def ok(self) -> Self:
        """The same, once it is known that it succeeded."""
        assert self.code == 0, self.err
        return self


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
def refused(crosstail):
    """Run a command that ends with exit code 2 and an error of at most two lines; return them as one."""

    def run(words):
        done = crosstail(words)
        assert done.code == 2 and done.out == ""
        lines = done.err.splitlines()
        assert 1 <= len(lines) <= 2 and max(map(len, lines)) <= 80, done.err
        assert done.err.startswith("error: ")
        return " ".join(line.strip() for line in lines)

    return run


@pytest.fixture
def asked(monkeypatch):
    """The specs to train, without training any."""
    specs = []

    def stop(spec, out, **options):
        specs.append(spec)
        raise SystemExit(0)

    monkeypatch.setattr("crosstail.workflows.fit.train_run", stop)
    return specs


@pytest.fixture
def full_page():
    """For tests that read the page of a run."""


@pytest.fixture(autouse=True)
def short_page(request, monkeypatch):
    """Without `full_page`, the page of a run is only a title: its charts take longer than the run itself."""
    if "full_page" not in request.fixturenames:
        monkeypatch.setattr(
            "crosstail.reports.run.page.run_document", lambda run, *_: Document(run.result.spec.key, [])
        )


@pytest.fixture
def vectors(tmp_path):
    """A data set of vectors in the folder of the test."""
    save_separable(tmp_path / "v.npz", [[30, 8, 2], [0, 9, 25]])
    return "v.npz"


@pytest.fixture
def make_photos(crosstail):
    """Plain and striped pictures of two domains, so many a pair."""

    def make(number):
        rng = np.random.default_rng(0)
        for domain, light in (("day", 120), ("night", 0)):
            for name, stripes in (("plain", 0), ("striped", 100)):
                folder = Path("photos") / domain / name
                folder.mkdir(parents=True)
                for i in range(number):
                    pixels = rng.integers(0, 30, (40, 50, 3)) + light
                    pixels[:, :: 8 + i % 3] += stripes
                    Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{i}.jpg")
        return "photos"

    return make
