"""crosstail audit, as typed."""

import json

import numpy as np
import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from crosstail.cli.audit import audit

app = typer.Typer(rich_markup_mode="rich")
app.command()(audit)


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


@pytest.fixture
def arrays(tmp_path):
    path = tmp_path / "made set.npz"
    np.savez(
        path,
        x=np.random.default_rng(0).normal(size=(240, 5)).astype(np.float32),
        y=np.tile(np.repeat([0, 1, 2], 40), 2),
        domain=np.repeat([0, 1], 120),
        domains=["photo", "sketch"],
        classes=["cat", "dog", "[b]cow"],
    )
    return path


def test_terminal_names_what_to_do_next(arrays):
    result = run(arrays)
    assert result.exit_code == 0
    assert "[b]cow" in result.stdout and "photo" in result.stdout
    assert f"Next: crosstail fit '{arrays}' --algorithm" in result.stdout
    assert "--out audit.html" in result.stdout
    assert max(map(len, result.stdout[: result.stdout.index("Next:")].splitlines())) <= 80


def test_json_is_all_that_is_printed(arrays):
    record = json.loads(run(arrays, "--json").stdout)
    assert record["domains"] == ["photo", "sketch"] and record["inputs"]["kind"] == "embeddings"


def test_page_is_written_beside_either(arrays, tmp_path):
    for options in ((), ("--json",)):
        page = tmp_path / f"folder{len(options)}" / "audit.html"
        assert run(arrays, "--out", page, *options).exit_code == 0
        assert "made set: before any training" in page.read_text(encoding="utf-8")


def test_label_profiles_and_the_sheets_shots_are_used():
    record = json.loads(run("digits", "--labels", "uniform", "--json").stdout)
    assert record["shots"] == {"many": 30, "few": 8, "pairs": {"many": 30, "medium": 0, "few": 0, "zero": 0}}
    assert json.loads(run("digits", "--json").stdout)["zero_pairs"] == [
        {"domain": "signs", "class": "2", "train": 0},
        {"domain": "signs", "class": "7", "train": 0},
    ]


def test_wrong_input_is_one_sentence(arrays):
    with pytest.raises(ValueError, match=r"--out report.pdf: expected a name that ends in .html"):
        run(arrays, "--out", "report.pdf")
    with pytest.raises(ValueError, match="did you mean 'digits'"):
        run("digit")


def test_help_has_an_example():
    assert "crosstail audit photos/ --out audit.html" in run("--help").stdout


def picture(path, seed):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (20, 24, 3), np.uint8)).save(path)


@pytest.fixture
def folder(tmp_path):
    """Eight pictures per pair, of which one is there twice and one is broken."""
    root = tmp_path / "photos"
    names = [f"{d}/{c}/{i}.png" for d in ("photo", "sketch") for c in ("cat", "dog") for i in range(8)]
    for seed, name in enumerate(names):
        picture(root / name, seed)
    (root / "sketch/dog/0.png").write_bytes((root / "photo/cat/0.png").read_bytes())
    (root / "sketch/dog/1.png").write_bytes(b"no picture")
    return root


def test_a_folder_of_images(folder):
    record = json.loads(run(folder, "--json").stdout)
    assert record["inputs"]["overall"]["median"] == [24, 20]
    assert [name for name, _ in record["inputs"]["broken"]] == ["sketch/dog/1.png"]
    (duplicate,) = record["duplicates"]
    assert {"class", "domain"} <= set(duplicate["across"])
    assert sorted(sample["name"] for sample in duplicate["samples"]) == ["photo/cat/0.png", "sketch/dog/0.png"]


def test_the_next_command_repeats_what_was_asked_for(folder):
    rows = [f"{path.relative_to(folder)},{path.parts[-3]},{path.parts[-2]}" for path in sorted(folder.glob("*/*/*"))]
    (folder / "list.csv").write_text("\n".join(["path,site,label", *rows]), encoding="utf-8")
    result = run(folder / "list.csv", "--column", "domain=site", "--seed", 3, "--labels", "uniform")
    assert "--labels uniform --column domain=site --data-seed 3 --skip-broken --out run" in result.stdout
    with pytest.raises(ValueError, match="for example --column domain=hospital"):
        run(folder / "list.csv", "--column", "site")
