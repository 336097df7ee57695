"""Every verb is a function of the package, whatever is imported; it returns an object and prints nothing."""

import importlib
import pkgutil
from contextlib import contextmanager
from pathlib import Path

import pytest

import crosstail
from crosstail import RunSpec
from crosstail.testing import save_separable
from crosstail.training.resolve import resolve
from crosstail.workflows.fit import Fitted
from crosstail.workflows.sweep import estimate

OPTIONAL = {"crosstail.integrations.lightning", "crosstail.integrations.transformers"}


@pytest.fixture(scope="module", autouse=True)
def every_module() -> None:
    """Import all of them: a verb must not be a module with the same name."""
    for module in pkgutil.walk_packages(crosstail.__path__, "crosstail."):
        if module.name not in OPTIONAL and not module.name.endswith("__main__"):
            importlib.import_module(module.name)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verbs")
    save_separable(folder / "v.npz")
    return folder


def spec_of(place: Path, **more) -> RunSpec:
    return RunSpec(dataset=str(place / "v.npz"), algorithm="erm", width=8, steps=4, evaluations=1, **more)


@pytest.fixture(scope="module")
def fitted(place: Path) -> Fitted:
    return crosstail.fit(spec_of(place), place / "run")


@pytest.fixture(autouse=True)
def silence(capfd: pytest.CaptureFixture[str]):
    yield
    assert capfd.readouterr() == ("", "")


def test_fit(fitted: Fitted, place: Path) -> None:
    assert fitted.run.result.spec.algorithm == "erm" and fitted.final is None and not fitted.notes
    assert {"report.html", "model_card.md", "metrics.csv"} <= {file.name for file in (place / "run").iterdir()}


def test_fit_with_folds_and_a_final_model(place: Path) -> None:
    told = []
    out = place / "cv"
    fitted = crosstail.fit(spec_of(place, folds=2), out, refit=True, progress=lambda *step: told.append(step))
    assert [run.result.spec.fold for run in fitted.runs] == [1, 2] and fitted.run is fitted.final
    assert fitted.to_json()["refit"].estimate.hits == fitted.to_json()["test"].hits
    assert (out / "report.html").exists() and (out / "refit" / "model_card.md").exists()
    assert {what.partition(":")[0] for what, _, _ in told} >= {"fold 1 of 2", "fold 2 of 2"}


def test_race(place: Path) -> None:
    out = place / "race"
    raced = crosstail.race(spec_of(place), out, algorithm=("erm", "focal"), trials=1, seeds=1, workers=1)
    assert {row.method for row in raced.result.leaderboard} == {"erm", "focal"} and raced.result.complete
    assert raced.best and (raced.best / "result.json").exists() and (out / "report.html").exists()
    with pytest.raises(ValueError, match="a race is on all domains"):
        crosstail.race(spec_of(place, protocol="dg"), out)


def test_sweep_estimate_and_select(place: Path) -> None:
    told = []

    @contextmanager
    def watch(plan):
        yield lambda job, outcome: told.append((job.name, outcome.how))

    out, how = place / "sweep", {"algorithm": ["erm"], "trials": 2, "seeds": 1, "launcher": "inline"}
    assert estimate(spec_of(place), out, **how).runs == 2 and not out.exists()
    swept = crosstail.sweep(spec_of(place), out, **how, watch=watch)
    assert told == [("trial 0", "done"), ("trial 1", "done")] and swept.complete
    selected = crosstail.select(out, out=place / "best.json", select_on="worst_pair")
    assert set(selected.hparams) == {"erm"} == set(swept.hparams) and selected.file == place / "best.json"
    assert crosstail.fit(spec_of(place), place / "best", hparams=selected.file).run.result.spec.hparams == {
        **resolve(spec_of(place)).hparams,
        **selected.hparams["erm"],
    }
