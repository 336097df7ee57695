"""A data set and a metric in users' files: kept in the run, trusted on request, and named where they are wrong."""

import json
import shutil
import subprocess
import sys

import pytest

FIT = "fit ./mine.py --algorithm erm --width 8 --steps 4 --batch-size 4 --evaluations 2"


@pytest.fixture
def own(crosstail, tmp_path):
    """A data set and a metric, as `crosstail new` writes them."""
    crosstail("new dataset mine").ok()
    crosstail("new metric judge").ok()
    sheet = tmp_path / "mine.toml"
    sheet.write_text(sheet.read_text() + "many = 25\nfew = 5\n")
    return tmp_path


def test_a_run_keeps_both_and_is_read_without_running_them(own, crosstail, refused):
    crosstail(f"{FIT} --select-on ./judge.py --out run").ok()
    for kept in ("dataset/mine.py", "dataset/mine.toml", "select_on/judge.py"):
        assert (own / "run" / kept).read_text() == (own / kept.partition("/")[2]).read_text()
    result = json.loads((own / "run/result.json").read_text())
    assert result["thresholds"] == [25, 5] and result["spec"]["labels"] == ["forward:10", "backward:10"]
    assert set(result["validation"]["others"]) >= {"./judge.py"}
    (own / "mine.toml").unlink()
    (own / "mine.py").write_text("raise RuntimeError('executed')")
    (own / "judge.py").write_text((own / "judge.py").read_text().replace("METRIC", "raise RuntimeError\nMETRIC"))
    crosstail("report run --out report").ok()
    assert "probability of the true class" in (own / "report/index.html").read_text()
    crosstail("export run --out model.onnx").ok()  # a model needs neither
    assert "its own data set: read run/dataset/mine.py" in refused("graph run").replace("run/ ", "run/")
    crosstail("graph run --trust").ok()


def test_data_beside_an_unchanged_file_are_found(own, crosstail):
    """The file in the run is a copy, which has no data beside it."""
    file = own / "mine.py"
    file.write_text(
        file.read_text().replace("    each =", "    open(__file__.replace('mine.py', 'beside')).close()\n    each =")
    )
    (own / "beside").touch()
    crosstail(f"{FIT} --out run").ok()
    crosstail("graph run --trust").ok()


def test_a_file_or_sheet_that_changed_is_refused(own, crosstail, refused):
    crosstail(f"{FIT} --out run").ok()
    with (own / "mine.toml").open("a") as sheet:
        sheet.write("batch_size = 7\n")
    assert "mine.toml has changed since run was started" in refused(f"{FIT} --out run")


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("mine.py", "def load", "def lode", "mine.py: a data set defines load (Callable), which is missing"),
        ("mine.py", "return DomainDataset", "return len", "mine.py, line 18: TypeError: len() takes"),
        ("mine.py", "def load", "def load(", "mine.py: cannot be imported (SyntaxError"),
        ("mine.py", "* domain", "* domains", "mine.py, line 16: NameError: name 'domains' is not defined"),
        ("mine.toml", "classes =", "class =", "mine.toml: "),
        ("mine.toml", 'inputs = "images"', 'inputs = "sounds"', "unknown kind of input 'sounds'"),
        ("judge.py", "assert", "answers.y[:] = 0; assert", "judge.py, line 11: assignment destination is read-only"),
        ("judge.py", "METRIC", "JUDGE", "judge.py: has no METRIC, expected METRIC = Metric(...)"),
        ("judge.py", "needs=", "needs='t' +", "judge.py: needs of METRIC is computed, expected a plain value"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_line(own, refused, file, old, new, message):
    path = own / file
    path.write_text(path.read_text().replace(old, new, 1))
    assert message in refused(f"{FIT} --select-on ./judge.py --out run")


def test_a_data_set_without_its_sheet_is_refused(own, refused):
    (own / "mine.toml").unlink()
    assert "mine.py: has no data sheet beside it, expected mine.toml" in refused(f"{FIT} --out run")


def test_an_error_of_an_algorithm_is_named_with_its_line(crosstail, refused, tmp_path):
    crosstail("new algorithm mine").ok()
    file = tmp_path / "mine.py"
    file.write_text(file.read_text().replace("means.var(0", "means.var(9"))
    found = refused("fit digits --algorithm ./mine.py --width 8 --steps 2 --out run")
    assert "mine.py, line 30: IndexError: Dimension out of range" in found
    words = [sys.executable, "-m", "crosstail.testing", "mine.py"]
    told = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False).stderr.splitlines()
    assert told[0].endswith('mine.py", line 30, in losses') and "means.var(9" in told[1] and "IndexError" in told[-1]


def test_the_sheet_and_a_folder(own, crosstail, refused):
    assert "crosstail fit ./mine.py" in crosstail("data ./mine.py").ok().out
    assert "mine.py takes no folder, it is generated" in refused("fit ./mine.py:folder --out run")
    shutil.copy(own / "mine.py", own / "rooted.py")
    shutil.copy(own / "mine.toml", own / "rooted.toml")
    (own / "rooted.py").write_text((own / "mine.py").read_text().replace("(seed: int", "(root=None, seed: int"))
    crosstail(f"{FIT.replace('mine', 'rooted')} --out run".replace("rooted.py", "rooted.py:folder")).ok()
    assert "names a folder already" in refused("data pacs:one --root other --check")
    assert "one: there is no such folder" in refused("data pacs:one --check")


@pytest.mark.parametrize(
    ("kind", "option", "old", "new", "line"),
    [
        ("algorithm", "--algorithm ./mine.py", "        means =", "        batch.x.zero_()\n        means =", 27),
        ("algorithm", "--algorithm ./mine.py", "        means =", "        batch.y[0] = 1\n        means =", 27),
        (
            "backbone",
            "--algorithm erm --backbone ./mine.py",
            "nn.Sequential(*",
            "nn.Sequential(nn.ReLU(inplace=True), *",
            0,
        ),
    ],
)
def test_code_that_writes_into_a_batch_is_refused(crosstail, refused, tmp_path, kind, option, old, new, line):
    crosstail(f"new {kind} mine").ok()
    file = tmp_path / "mine.py"
    file.write_text(file.read_text().replace(old, new))
    found = refused(f"fit digits {option} --width 8 --steps 2 --out run")
    assert "writes into batch." in found and "which other parts read too: use batch." in found
    assert not line or f"mine.py, line {line}: " in found


def test_a_benchmark_of_vectors_gets_an_mlp(own, crosstail):
    for name, old, new in (
        ("py", "x.astype(np.uint8)", "x.reshape(len(x), -1).astype(np.float32)"),
        ("toml", '"images"', '"vectors"'),
    ):
        file = own / f"mine.{name}"
        file.write_text(file.read_text().replace(old, new))
    crosstail(f"{FIT} --out run").ok()
    assert json.loads((own / "run/spec.json").read_text())["backbone"] == "mlp"
