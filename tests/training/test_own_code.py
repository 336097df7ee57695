"""A custom algorithm file: kept in the run, used on another machine, changed, and combined."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from crosstail import testing
from crosstail.prediction.predictor import Predictor
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.loop import Diverged

SOURCE = '''
import torch.nn.functional as F
from crosstail.algorithms.erm import ERM

class Smooth(ERM):
    """Label smoothing (Szegedy et al., 2016)."""

    def losses(self, z, batch):
        return {"cross_entropy": F.cross_entropy(self.head(z), batch.y, label_smoothing=0.1)}
'''

UNDECLARED = SOURCE.replace("    def", "    class Hparams(ERM.Hparams):\n        eps: float = 0.1\n    def")


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "mine.py").write_text(SOURCE)
    testing.save_separable(tmp_path / "easy.npz")
    return RunSpec(
        dataset=str(tmp_path / "easy.npz"),
        algorithm=f"{tmp_path}/mine.py",
        backbone="mlp",
        width=8,
        hparams={"lr": 0.05},
        steps=20,
        batch_size=4,
        evaluations=2,
    )


@pytest.mark.parametrize(("term", "stage"), [("", None), ("boda+", None), ("", "retrain"), ("", "blend")])
def test_a_run_predicts_elsewhere_when_its_code_is_trusted(spec, tmp_path, term, stage):
    train_run(replace(spec, algorithm=term + spec.algorithm, second_stage=stage), tmp_path / "run")
    shutil.move(tmp_path / "run", tmp_path / "moved")
    (tmp_path / "mine.py").unlink()
    with pytest.raises(ValueError, match=r"moved/algorithm\.py.*--trust"):
        Predictor(tmp_path / "moved")
    found = Predictor(tmp_path / "moved", trust=True).probabilities(np.zeros((2, 6), np.float32))
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)


def test_a_file_that_changed_is_refused(spec, tmp_path):
    train_run(spec, tmp_path / "run")
    (tmp_path / "mine.py").write_text(SOURCE.replace("0.1", "0.2"))
    with pytest.raises(ValueError, match=r"mine\.py has changed since .*run"):
        train_run(spec, tmp_path / "run")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "cannot be read"),
        ("def f(:", r"cannot be imported \(SyntaxError"),
        ("import nothing_of_this_name", r"cannot be imported \(ModuleNotFoundError"),
        ("x = 1", "defines 0 subclasses of Algorithm, expected 1; it has no class at all"),
        ("class Other: pass", "defines 0 subclasses of Algorithm, expected 1; its classes are Other: derive one from"),
        (SOURCE + "\nclass More(Smooth): pass", "defines 2 subclasses of Algorithm.*Smooth, More"),
        (SOURCE.replace("ERM", "Algorithm").replace("erm", "_algorithm").replace("losses", "loss"), "Smooth.* losses"),
        (UNDECLARED, "the hyperparameter 'eps' is not declared by hp"),
    ],
)
def test_a_file_that_does_not_work_is_named(spec, tmp_path, source, message):
    file = tmp_path / "mine.py"
    file.unlink() if source is None else file.write_text(source)
    with pytest.raises(ValueError, match=rf"mine\.py:? {message}"):
        train_run(spec, tmp_path / "run")
    assert not (tmp_path / "run").exists()


LOSS = 'return {"cross_entropy": F.cross_entropy(self.head(z), batch.y, label_smoothing=0.1)}'
TERMS = {
    "a vector": (LOSS.replace("0.1)", "0.1, reduction='none')"), r"'cross_entropy' has the shape \(8,\).*mean"),
    "no dictionary": (LOSS[:7] + LOSS[25:-1], "losses returns a Tensor, expected named terms"),
    "nothing": ("pass", "losses returns a NoneType"),
    "no term": ("return {}", "losses returns an empty dictionary"),
    "a number": ("return {'ce': 0.5}", "'ce' is a float"),
    "detached": (LOSS.replace("0.1)", "0.1).detach()"), r"no loss term \(cross_entropy\) depends on the weights"),
}


@pytest.mark.parametrize(
    ("what", "term"), [*((what, "") for what in TERMS), ("a vector", "boda+"), ("a number", "boda+")]
)
def test_wrong_terms_are_named_with_their_file(spec, tmp_path, what, term):
    source, message = TERMS[what]
    (tmp_path / "mine.py").write_text(SOURCE.replace(LOSS, source))
    with pytest.raises(ValueError, match=rf"mine\.py: .*{message}") as error:
        train_run(replace(spec, algorithm=term + spec.algorithm), tmp_path / "run")
    assert len(str(error.value).splitlines()) == 1


def test_nan_at_the_first_step_is_no_matter_of_the_learning_rate(spec, tmp_path):
    (tmp_path / "mine.py").write_text(SOURCE.replace("0.1)", "0.1) * (z.sum() / 0 - z.sum() / 0)"))
    with pytest.raises(Diverged, match=r"mine\.py: the loss term 'cross_entropy' is nan at the first step") as error:
        train_run(spec, tmp_path / "run")
    assert "learning rate" not in str(error.value)


def test_an_unknown_hyperparameter_is_named_with_the_file(spec, tmp_path):
    with pytest.raises(ValueError, match=r"mine\.py: unknown hyperparameter 'dropuot': .*did you mean 'dropout'"):
        train_run(replace(spec, hparams={"dropuot": 0.5}), tmp_path / "run")


def test_a_file_named_without_its_suffix_is_found(spec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"unknown algorithm 'mine'.*'\./mine\.py'"):
        train_run(replace(spec, algorithm="mine"), tmp_path / "run")
