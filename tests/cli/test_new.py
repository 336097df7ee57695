"""crosstail new: each file that it writes works and passes all checks; it overwrites nothing."""

import shlex

import pytest

from crosstail.cli.new import TRY
from crosstail.testing import check_algorithm, check_file


@pytest.mark.parametrize("kind", TRY)
def test_the_file_works_and_passes_all_checks(crosstail, tmp_path, monkeypatch, capsys, kind):
    monkeypatch.chdir(tmp_path)
    done = crosstail(f"new {kind} my_part")
    *_, check, tried = done.out.splitlines()
    assert done.code == 0 and "mine" not in (tmp_path / "my_part.py").read_text().lower().split()
    assert check == "python -m crosstail.testing ./my_part.py"
    check_file("./my_part.py")
    assert all(line.startswith("✓") for line in capsys.readouterr().out.splitlines())
    small = "--algorithm erm" if kind in ("backbone", "metric", "dataset") else ""
    width = "" if kind == "second-stage" else "--width 8"
    crosstail(f"{shlex.join(shlex.split(tried)[1:])} --steps 2 --evaluations 1 {small} {width}").ok()


def test_the_checklist_ends_with_what_fails(crosstail, tmp_path, capsys):
    crosstail("new algorithm mine")
    file = tmp_path / "mine.py"
    file.write_text(file.read_text().replace('"domains": ', '"domains": 0 * torch.rand(3) + '))
    with pytest.raises(ValueError, match=r"mine\.py: the loss term 'domains' has the shape \(3,\)"):
        check_algorithm("./mine.py")
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("✓") and second.startswith("✗") and "halves the cross-entropy" in second


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("algorithm my-loss", "'my-loss'"),
        ("algorithm 1st", "'1st'"),
        ("algorithm there.py", "there.py: exists"),
        ("dataset sheet", "sheet.toml: exists"),
    ],
)
def test_wrong_names(crosstail, tmp_path, words, message):
    for name in ("there.py", "sheet.toml"):
        (tmp_path / name).write_text("mine")
    done = crosstail(f"new {words}")
    assert done.code == 2 and message in done.err and not (tmp_path / "sheet.py").exists()
    assert (tmp_path / "there.py").read_text() == (tmp_path / "sheet.toml").read_text() == "mine"
