"""Every verb is a function of the package, whatever is imported; it returns an object and prints nothing."""

import importlib
import pkgutil
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import crosstail
from crosstail import RunSpec
from crosstail.reports.run.two_questions import ALIKE, COME
from crosstail.testing import save_separable
from crosstail.training.resolve import resolve
from crosstail.workflows.fit import Fitted
from crosstail.workflows.sweep import estimate

OPTIONAL = {f"crosstail.integrations.{name}" for name in ("lightning", "torchmetrics", "transformers")}


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
    said, run = fitted.to_json(), fitted.run.result
    assert said["test"]["hits"] == run.test.hits and said["spec"]["algorithm"] == "erm"
    both = {(row["question"], row["answers"]): row for row in said["questions"]["accuracy"] if row["site"] == "all"}
    assert set(both) == {(asked, told) for asked in (ALIKE, COME) for told in ("default", said["questions"]["option"])}
    assert both[ALIKE, "default"]["value"] == pytest.approx(run.test.pair_average)


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


def test_evaluate(fitted: Fitted, place: Path) -> None:
    evaluated = crosstail.evaluate(fitted.out, spec_of(place), split="test", out=place / "evaluated.html")
    assert evaluated.found.answers.value().hits.tolist() == fitted.run.result.test.hits
    assert evaluated.page.exists() and evaluated.known_domains == list(evaluated.dataset.domains)
    assert evaluated.to_json()["hits"] == fitted.run.result.test.hits


@pytest.mark.parametrize("more", [{}, {"coverage": 0.9, "per": "all", "site": "0"}])
def test_predict_in_memory_and_to_a_file(fitted: Fitted, place: Path, more) -> None:
    rows = np.load(place / "v.npz")["x"][:7]
    np.save(place / "new.npy", rows)
    found = crosstail.predict(fitted.out, [place / "new.npy"], **more)
    assert found.number == 7 == len(found.table) == len(found.probabilities) and not found.skipped
    written = crosstail.predict(fitted.out, [place / "new.npy"], out=place / "classes.csv", **more)
    assert written.number == 7 and written.table is None
    table = pd.read_csv(place / "classes.csv", dtype={"class": str})
    assert list(table["class"]) == list(found.table["class"])
    assert np.allclose(table.filter(regex=r"^p\(").to_numpy(), found.probabilities, atol=1e-6)


def test_audit(fitted: Fitted, place: Path) -> None:
    audited = crosstail.audit(spec_of(place), run=fitted.out, out=place / "audit.html")
    assert audited.found.counts["train"].sum() == 120 and (place / "audit.html").exists()
    assert "label_errors" in audited.to_json()
    with pytest.raises(ValueError, match=r"ends in \.html"):
        crosstail.audit(spec_of(place), out=place / "audit.pdf")


def test_compare_and_report(fitted: Fitted, place: Path) -> None:
    other = crosstail.fit(spec_of(place, seed=1), place / "other")
    compared = crosstail.compare(other.out, fitted.out, out=place / "compare.html")
    assert compared.samples == 48 and (place / "compare.html").exists()
    found = crosstail.report([fitted.out, other.out], out=place / "report", baseline="irm", charts=False)
    assert len(found.runs.table) == 2 and found.page.exists() and "'irm'" in found.notes[0]


def test_graph(fitted: Fitted, place: Path) -> None:
    of_run = crosstail.graph(fitted.out, out=place / "graph.csv")
    assert (place / "graph.csv").exists() and of_run.to_json()["alpha"] == pytest.approx(
        fitted.run.result.transferability.alpha
    )
    assert crosstail.graph(place / "v.npz").out == place / "v.graph.html"


def test_export(fitted: Fitted, place: Path) -> None:
    exported = crosstail.export(fitted.out, out=place / "model.pt2", format="torch")
    assert exported.check.samples == 48 and not exported.notes and (place / "model.pt2.md").exists()


def test_embed(place: Path) -> None:
    x = np.random.default_rng(0).integers(0, 255, (4, 32, 32, 3), dtype=np.uint8)
    np.savez(place / "images.npz", x=x, y=np.arange(4) % 2, domain=np.arange(4) // 2)
    embedded = crosstail.embed(RunSpec(dataset=str(place / "images.npz")), place / "embedded.npz")
    assert np.load(embedded.out)["x"].shape == embedded.shape == (4, 1280)
