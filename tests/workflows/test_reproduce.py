"""A table of the paper by one command, on folders with a handful of synthetic pictures per pair."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from crosstail import cli, discovery
from crosstail.workflows import reproduce as work
from crosstail.workflows._output import PLANS

PICTURES = {"train": 2, "val": 1, "test": 1}  # of each pair


def small(name: str, root: Path) -> Path:
    """The layout of a benchmark: four pictures per pair, all links to the same, and a split file like the paper's."""
    sheet = discovery.find("crosstail.data.benchmarks", name, "benchmark").SHEET
    root.mkdir()
    if name == "digits_mlt":
        y, domain = np.tile(np.arange(10), 16), np.repeat([0, 1], 80)
        split = np.tile(np.repeat(["train", "val", "test"], [40, 20, 20]), 2)
        x = np.random.default_rng(0).integers(0, 256, (160, 32, 32, 3)).astype(np.uint8)
        labels = {"domains": list(sheet.domains), "classes": list(sheet.classes)}
        np.savez(root / "digits-mlt.npz", x=x, y=y, domain=domain, split=split, **labels)
        return root
    for i in range(4):
        pixels = np.random.default_rng(i).integers(0, 256, (16, 16, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(root / f"{i}.png")
    rows = []
    for d in sheet.domains:
        for c, kind in enumerate(sheet.classes):
            (root / d / kind).mkdir(parents=True)
            for i, split in enumerate(part for part, number in PICTURES.items() for _ in range(number)):
                os.link(root / f"{i}.png", root / d / kind / f"{i}.png")
                rows.append([d, c, f"{d}/{kind}/{i}.png", split])
    with (root / sheet.split_file).open("w", newline="") as file:
        csv.writer(file).writerows([["env", "label", "path", "split"], *rows])
    return root


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("benchmarks")
    for name in ("vlcs", "pacs", "digits_mlt"):
        small(name, root / name)
    return root


@pytest.fixture
def run(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Run `crosstail reproduce WORDS` on the folders; the exit code, and what it printed."""
    monkeypatch.setenv("CROSSTAIL_DATA", str(data))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("crosstail.reports.compare.page.FORMATS", ("svg",))

    def run(words: str) -> tuple[int, str, str]:
        code = 0
        try:
            cli.main(["reproduce", *words.split()])
        except SystemExit as end:
            code = int(end.code or 0)
        return (code, *capsys.readouterr())

    return run


SMALL = "--quick --backbone small_cnn --resolution 16 --launcher inline"


def test_every_table_has_a_plan_whose_methods_exist_and_that_sweep_takes_too() -> None:
    expected = {f"table{n}" for n in (*range(2, 10), 24, 25)} | {f"figure{n}" for n in range(2, 9)}
    assert set(work.tables()) == expected
    for name in expected:
        for job in work.jobs(name):
            assert job.how["algorithm"] and job.how["trials"] in (1, 20) and job.how["seeds"] in (1, 3)
    assert [job.data for job in work.jobs("figure6")] == [job.data for job in work.jobs("table7")]
    assert [job.how["hparams"].get("nu") for job in work.jobs("table25")[:9]] == [
        None,
        0,
        0.5,
        0.7,
        0.9,
        1,
        1.1,
        1.2,
        1.5,
    ]
    methods = work.jobs("table2")[0].how["algorithm"]
    assert len(methods) == 22 and len(set(methods)) == 22 and "boda@reference:retrain" in methods


@pytest.mark.parametrize("plan", sorted(file.stem for file in PLANS.glob("*.toml") if file.stem != "tables"))
def test_sweep_takes_the_plan_by_its_name(plan, data, monkeypatch, tmp_path) -> None:
    seen = {}
    monkeypatch.setenv("CROSSTAIL_DATA", str(data))
    monkeypatch.setattr(
        "crosstail.workflows.sweep.estimate", lambda spec, out, **how: seen.update(how, spec=spec) or 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        cli.main(["sweep", "pacs", "--plan", plan, "--out", str(tmp_path / "s"), "--dry-run"])
    own = next(job for name in work.tables() for job in work.jobs(name) if work.tables()[name].get("plan") == plan)
    assert seen["spec"].protocol == own.spec.protocol and seen["spec"].backbone == own.spec.backbone
    assert seen["spec"].tune == own.spec.tune and seen["trials"] in (1, 20)


def test_a_table_runs_to_its_page_with_the_published_figures(run) -> None:
    code, out, err = run(f"table2 {SMALL} --out t")
    assert (code, out.splitlines()[-1]) == (0, "Next: open t/report/index.html"), err
    page = Path("t/report/index.html").read_text(encoding="utf-8")
    assert all(method in page for method in work.jobs("table2")[0].how["algorithm"] if method != "crt")
    with Path("t/report/tables/published.csv").open() as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    own = rows["boda@reference:retrain"]
    assert float(own["published"]) == 77.3 and float(own["error"]) == 0.2
    assert float(own["difference"]) == pytest.approx(float(own["ours"]) - 77.3)
    assert rows["erm"]["published"] == rows["erm"]["difference"] == ""


def test_the_digits_have_graphs_and_table_8_its_bound(run) -> None:
    code, _, err = run("table8 --quick --launcher inline --out t")
    assert code == 0, err
    page = Path("t/report/index.html").read_text(encoding="utf-8")
    assert "theoretical lower bound" in page and "Features" in page


def test_every_benchmark_and_every_plan_runs_from_its_folder_to_its_page(run, monkeypatch, tmp_path) -> None:
    """Each plan on another benchmark; the plans of table 2 and of the digits are above."""
    for name in ("terra_incognita", "office_home", "domain_net"):
        small(name, tmp_path / name)
    for source in ("vlcs", "pacs"):
        (tmp_path / source).symlink_to(Path(os.environ["CROSSTAIL_DATA"]) / source)
    runs = {"table9": "terra_incognita", "table25": "vlcs", "table24": "pacs", "figure7": "office_home"}
    for name, data in (runs | {"table6": "domain_net"}).items():
        monkeypatch.setitem(work.tables()[name], "data", [data])
        methods = "" if name in ("table24", "figure7") else "--algorithm boda:retrain"
        code, out, err = run(f"{name} {SMALL} --out {name} --data {tmp_path} {methods}")
        assert code == 0 and out.splitlines()[-1] == f"Next: open {name}/report/index.html", err
        if name != "table25":  # whose published figures are means over five sets
            assert Path(name, "report/tables/published.csv").exists()
    nu = Path("table25/report/tables/nu.csv").read_text().splitlines()
    assert len(nu) == 9 and nu[0].startswith("data,method,")
    with Path("table9/report/tables/published.csv").open() as file:
        assert {row["published"] for row in csv.DictReader(file) if row["method"] == "boda:retrain"} == {"50.2"}
    page = Path("table24/report/index.html").read_text(encoding="utf-8")
    assert "Not like for like on pacs, authors: backbone small_cnn, not resnet50; trials 1, not 20; seeds 1" in page


def test_a_dry_run_needs_no_data_and_says_what_is_missing(run, tmp_path, monkeypatch) -> None:
    (tmp_path / "none").mkdir()
    code, out, _ = run(f"table25 {SMALL.replace('--launcher inline', '')} --dry-run --json --data none")
    found = json.loads(out)
    assert code == 0 and [need["data"] for need in found["needs"]] == work.tables()["table25"]["data"]
    for need in found["needs"]:
        assert need["problems"] == [f"{tmp_path / 'none' / need['data']}: there is no such folder"]
        assert need["state"] == "missing" and need["runs"] == 9 and need["seconds"] > 0 and need["size"] > 0
    assert found["device"] == "cpu" and list(found["per_image"]) == ["small_cnn"]
    assert not list(Path().glob("table25*"))


def test_without_a_folder_that_is_said_once(run, monkeypatch) -> None:
    monkeypatch.delenv("CROSSTAIL_DATA")
    code, out, _ = run("table24 --quick --backbone small_cnn --resolution 16 --dry-run")
    assert code == 0 and out.count("no folder given") == 1 and out.count("missing") == 5
    code, _, err = run("table24")
    assert code == 2 and "no folder given: use --data or set CROSSTAIL_DATA" in " ".join(err.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("tabel2", "unknown table 'tabel2': did you mean 'table2'?"),
        ("", "NAME is missing, such as table2: crosstail reproduce --list shows all"),
        ("table4 --out t", "office_home: there is no such folder"),
        (
            "table2 --out t --launcher inline",
            "bird: images 4, expected 237",
        ),  # only a quick run takes folders of another size
        ("table2 --out t --backbone resnt50", "unknown backbone 'resnt50'"),
    ],
)
def test_a_mistake_is_one_sentence_before_anything_is_made(run, words, message) -> None:
    code, _, err = run(words)
    assert code == 2 and message in " ".join(err.split()) and not Path("t").exists()


def test_a_folder_that_lacks_a_domain_is_named(run, data, tmp_path) -> None:
    small("vlcs", tmp_path / "vlcs")
    (tmp_path / "vlcs/SUN09").rename(tmp_path / "SUN")
    code, _, err = run(f"table2 {SMALL} --out t --data {tmp_path}")
    assert code == 2 and "SUN09" in err and not Path("t").exists()


def test_a_run_that_fails_loses_nothing_and_the_same_command_repeats_it(run, monkeypatch) -> None:
    from crosstail.algorithms.coral import CORAL

    losses = CORAL.losses
    monkeypatch.setattr(CORAL, "losses", lambda *given: (_ for _ in ()).throw(MemoryError("out of memory")))
    words = f"table2 {SMALL} --algorithm erm --algorithm coral --out t"
    code, out, _ = run(words)
    assert code == 1 and "Runs failed in vlcs: crosstail status t/vlcs says why; the same command goes on" in out
    (first,) = Path("t").rglob("result.json")
    before = first.stat().st_mtime_ns
    assert Path("t/report/index.html").exists()
    monkeypatch.setattr(CORAL, "losses", losses)
    assert run(words)[0] == 0 and len(list(Path("t").rglob("result.json"))) == 2
    assert first.stat().st_mtime_ns == before
