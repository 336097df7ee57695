"""Algorithms, second stages and backbones in users' files: kept in the run, used elsewhere, changed, and combined."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from crosstail.prediction.predictor import Predictor
from crosstail.reports.document import markdown
from crosstail.reports.run.certainty_data import Certainty
from crosstail.reports.run.model_card import model_card
from crosstail.reports.run.page import run_document
from crosstail.sweeps import plan
from crosstail.sweeps.drive import sweep
from crosstail.sweeps.launchers._launcher import Resources, launcher
from crosstail.sweeps.store import Store
from crosstail.training.fit import train_run
from crosstail.training.loop import Diverged
from crosstail.training.run import Run

SOURCE = '''
import torch.nn.functional as F
from crosstail.algorithms.erm import ERM

class Smooth(ERM):
    """Label smoothing (Szegedy et al., 2016)."""

    def losses(self, z, batch):
        return {"cross_entropy": F.cross_entropy(self.head(z), batch.y, label_smoothing=0.1)}
'''

ADDED = '''
from crosstail.algorithms import hp
from crosstail.algorithms.erm import ERM

class Added(ERM):
    """A penalty of large features (Me, 2026)."""

    adds_term = True

    class Hparams(ERM.Hparams):
        weight: float = hp(0.1, None, "weight of the penalty")

    def losses(self, z, batch):
        return super().losses(z, batch) | {"TERM": self.hparams.weight * (z**2).mean()}
'''

STAGE = '''
"""The class whose mean feature is nearest."""

import numpy as np
from crosstail.second_stages import FittedStage, LinearHead

def fit(features):
    means = np.stack([features.z[features.y == c].mean(0) for c in range(features.counts.shape[1])])
    return LinearHead.of(2 * means, -(means**2).sum(1))

STAGE = FittedStage(fit=fit, head=LinearHead)
'''

BACKBONE = '''
"""One layer."""

from torch import nn
from crosstail.backbones import Backbone

def build(input_shape, width=None):
    return Backbone(nn.Sequential(nn.Linear(*input_shape, width or 7), nn.ReLU()), width or 7)
'''

COPIES = {"algorithm": ("mine.py", SOURCE), "second_stage": ("stage.py", STAGE), "backbone": ("net.py", BACKBONE)}
"""The file of each part and its content, by the field of the spec, which names the folder of the copy."""

UNDECLARED = SOURCE.replace("    def", "    class Hparams(ERM.Hparams):\n        eps: float = 0.1\n    def")


@pytest.fixture
def spec(tmp_path, tiny):
    (tmp_path / "mine.py").write_text(SOURCE)
    balanced = [[20] * 3] * 2
    return tiny(balanced, algorithm=f"{tmp_path}/mine.py", hparams={"lr": 0.05}, steps=20, evaluations=2)


@pytest.mark.parametrize(("term", "stage"), [("", None), ("boda+", None), ("", "retrain"), ("", "blend")])
def test_a_run_predicts_elsewhere_when_its_code_is_trusted(spec, tmp_path, term, stage):
    train_run(replace(spec, algorithm=term + spec.algorithm, second_stage=stage), tmp_path / "run")
    shutil.move(tmp_path / "run", tmp_path / "moved")
    (tmp_path / "mine.py").unlink()
    with pytest.raises(ValueError, match=r"moved/algorithm/mine\.py.*--trust"):
        Predictor(tmp_path / "moved")
    found = Predictor(tmp_path / "moved", trust=True).probabilities(np.zeros((2, 6), np.float32))
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)


def test_files_of_a_combination_keep_their_names_and_hyperparameters(spec, tmp_path):
    """A hyperparameter that two parts have is called PART.NAME, by the name of the file."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(ADDED.replace("TERM", name))
    both = f"{tmp_path}/one.py+{tmp_path}/two.py"
    hparams = {"one.weight": 0.5, "two.weight": 0.25}
    train_run(replace(spec, algorithm=both, hparams=hparams), tmp_path / "run")
    shutil.move(tmp_path / "run", tmp_path / "moved")
    assert Predictor(tmp_path / "moved", trust=True).algorithm.hparams.one__weight == 0.5
    assert {file.name for file in (tmp_path / "moved/algorithm").iterdir()} == {"one.py", "two.py"}


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
        (
            "class Other: pass",
            r"defines 0 subclasses of Algorithm, expected 1; its classes are Other \(line 1\): derive one from",
        ),
        (SOURCE + "\nclass More(Smooth): pass", r"defines 2 subclasses of Algorithm.*Smooth \(line \d+\), More \(line"),
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


@pytest.fixture
def parts(spec, tmp_path):
    """The same with a second stage and a backbone in files, and no algorithm."""
    for name, source in COPIES.values():
        (tmp_path / name).write_text(source)
    changes = {"second_stage": f"{tmp_path}/stage.py", "backbone": f"{tmp_path}/net.py", "width": None}
    return replace(spec, algorithm="erm", **changes)


def test_each_file_of_a_run_is_kept_and_trusted_together(spec, parts, tmp_path):
    trained = train_run(replace(parts, algorithm=spec.algorithm), tmp_path / "run")
    shutil.move(tmp_path / "run", tmp_path / "moved")
    for copy, (name, source) in COPIES.items():
        assert (tmp_path / "moved" / copy / name).read_text() == source
        (tmp_path / name).unlink()
    with pytest.raises(ValueError, match=r"moved/algorithm/mine\.py.*--trust"):
        Predictor(tmp_path / "moved")
    data = trained.dataset
    found = Predictor(tmp_path / "moved", trust=True)
    assert found.probabilities(data.x[data.rows("test")]).argmax(1).tolist() == trained.test.predicted.tolist()
    assert found.algorithm.backbone.num_features == 7


@pytest.mark.parametrize("copy", ["second_stage", "backbone"])
def test_one_file_alone_asks_for_trust_and_may_not_change(spec, parts, tmp_path, copy):
    own, (name, _) = replace(spec, algorithm="erm", **{copy: getattr(parts, copy)}), COPIES[copy]
    run = train_run(own, tmp_path / "run")
    with pytest.raises(ValueError, match=rf"its own {copy.replace('_', ' ')}: read .*run/{copy}/{name}"):
        run.model()
    run.model(trust=True)
    with (tmp_path / name).open("a") as file:
        file.write("# changed\n")
    with pytest.raises(ValueError, match=rf"{name} has changed since .*run"):
        train_run(own, tmp_path / "run")


def test_the_pages_of_a_run_do_not_execute_its_files(spec, parts, tmp_path):
    run = train_run(replace(parts, algorithm=spec.algorithm), tmp_path / "run")
    for name, _ in COPIES.values():
        (tmp_path / name).write_text("raise RuntimeError('executed')")
    run = Run(run.path)
    card, page = markdown.render(model_card(run, None)), markdown.render(run_document(run, Certainty.of(run)))
    assert "mine.py (a user-defined file)" in card and "on fixed features (a user-defined file)" in card
    assert "was fitted on the features" in card and "was fitted on the features" in page
    assert run.dataset is not None


@pytest.mark.parametrize(
    ("copy", "source", "message"),
    [
        ("second_stage", "x = 1", r"STAGE \(TrainedStage or FittedStage\), which is missing here"),
        ("second_stage", "STAGE = 3", r"STAGE .*, which is of type int here"),
        ("second_stage", "import nothing_of_this_name", r"cannot be imported \(ModuleNotFoundError"),
        ("backbone", "x = 1", r"a backbone defines build \(Callable\), which is missing here"),
        ("backbone", "def build(shape, width): return 3", "build returns int, expected a Backbone"),
        ("backbone", None, "cannot be read"),
    ],
)
def test_a_part_that_does_not_work_is_named(parts, tmp_path, copy, source, message):
    file = tmp_path / COPIES[copy][0]
    file.unlink() if source is None else file.write_text(source)
    with pytest.raises(ValueError, match=rf"{file.name}:? .*{message}"):
        train_run(parts, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_backbone_in_a_file_is_not_frozen(parts, tmp_path):
    with pytest.raises(ValueError, match=r"net\.py: a backbone in a file of yours can be trained with --tune all only"):
        train_run(replace(parts, dataset="digits", tune="none"), tmp_path / "run")


def test_methods_of_a_sweep_name_files(spec, parts, tmp_path):
    shared = replace(parts, steps=4, evaluations=1, hparams={}, second_stage=None)
    methods = ["erm", f"erm:{parts.second_stage}", f"{spec.algorithm}:{parts.second_stage}"]
    planned, store = plan.make(shared, methods, trials=1, seeds=1), Store(tmp_path / "sweep")
    with launcher("inline", store, Resources()) as inline:
        assert [done.how for _, done in sweep(planned, store, inline)] == ["done"] * 3
    kept = [{file.parent.name for file in run.glob("*/*.py")} for run in (tmp_path / "sweep/runs").iterdir()]
    assert sorted(kept, key=len) == [{"backbone"}, {"backbone", "second_stage"}, {"backbone", *COPIES}]
