"""crosstail new: the file that it writes trains and passes all checks; it overwrites nothing."""

import pytest

from crosstail.testing import CHECKS, check_algorithm


def test_the_file_trains_and_passes_all_checks(crosstail, tmp_path, capsys):
    done = crosstail("new algorithm my_loss")
    *_, check, fit = done.out.splitlines()
    assert done.code == 0 and "class MyLoss(ERM)" in (tmp_path / "my_loss.py").read_text()
    assert check == "python -m crosstail.testing ./my_loss.py"
    check_algorithm("./my_loss.py")
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == len(CHECKS) and all(line.startswith("✓") for line in listed)
    crosstail(f"{fit.removeprefix('crosstail ')} --steps 2 --width 8").ok()


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
    [("my-loss", "'my-loss'"), ("1st", "'1st'"), ("there", "there.py: exists"), ("there.py", "there.py: exists")],
)
def test_wrong_names(crosstail, tmp_path, words, message):
    (tmp_path / "there.py").write_text("mine")
    done = crosstail(f"new algorithm {words}")
    assert done.code == 2 and message in done.err and (tmp_path / "there.py").read_text() == "mine"
