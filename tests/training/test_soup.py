"""Soups: the greedy choice by loops, mean weights and mean probabilities, and a run that all commands take."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from crosstail import cli, testing
from crosstail.prediction.export import export
from crosstail.prediction.predictor import Predictor
from crosstail.reports.compare.read_runs import read_runs
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder
from crosstail.training.soup import greedy, make_soup


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Runs that began with the same weights (a, b, c), with others (seed), and with another head (blend)."""
    place = tmp_path_factory.mktemp("soup")
    testing.save_separable(place / "easy.npz", [[20, 3, 9], [2, 14, 0]])
    testing.save_separable(place / "other.npz", [[20, 3, 9], [2, 14, 0]], seed=1)
    spec = RunSpec(dataset=str(place / "easy.npz"), algorithm="erm", width=8, steps=20, batch_size=4, evaluations=2)
    runs = {
        "a": {"hparams": {"lr": 0.01}},
        "b": {"hparams": {"lr": 0.03}, "algorithm": "coral"},
        "c": {"hparams": {"lr": 0.001}},
        "seed": {"seed": 1, "algorithm": "mtl"},
        "blend": {"second_stage": "blend"},
        "other": {"dataset": str(place / "other.npz")},
    }
    for name, changes in runs.items():
        train_run(replace(spec, **changes), place / name)
    return place


def published(order, score):
    """Recipe 1 of Wortsman et al. (2022)."""
    ingredients = []
    for i in order:
        if not ingredients or score([*ingredients, i]) >= score(ingredients):
            ingredients = [*ingredients, i]
    return ingredients


def test_the_greedy_choice_is_the_published_one():
    sizes = []
    for seed in range(50):
        values = np.random.default_rng(seed).integers(0, 9, 8)

        def score(chosen, values=values):
            return float(np.mean([values[i] for i in chosen]) + 0.3 * len(chosen) + np.var([values[i] for i in chosen]))

        order = np.argsort(-values).tolist()
        found = greedy(order, score)
        assert found == published(order, score)
        sizes.append(len(found))
    assert len(set(sizes)) > 3


def test_runs_that_began_alike_have_their_weights_averaged(place, tmp_path):
    runs = [place / name for name in "abc"]
    made = make_soup(runs, tmp_path / "soup", uniform=True)
    assert not made.result.soup.ensemble and {*made.result.soup.runs} == {*map(str, runs)}
    found, each = RunFolder(tmp_path / "soup").weights(), [RunFolder(run).weights() for run in runs]
    for name, value in found.items():
        torch.testing.assert_close(value, (each[0][name] + each[1][name] + each[2][name]) / 3)


def test_a_greedy_soup_is_no_worse_on_validation_than_its_best_run(place, tmp_path):
    runs = [place / name for name in ("a", "b", "c", "seed")]
    made = make_soup(runs, tmp_path / "soup").result
    best = max(RunFolder(run).finished_result().validation.pair_average for run in runs)
    assert made.validation.pair_average >= best and 1 <= len(made.soup.runs) <= made.soup.offered == 4


@pytest.mark.parametrize("other", ["seed", "blend"])
def test_others_have_their_probabilities_averaged_with_and_without_the_site(place, tmp_path, other):
    runs = [place / "a", place / other]
    made = make_soup(runs, tmp_path / "soup", uniform=True)
    assert made.result.soup.ensemble and (made.result.known is not None)
    x = made.inputs.raw.x[made.inputs.raw.rows("test")]
    for site in (-1, 1):
        soup, *each = (np.exp(one.scored(one.features(x), site)) for one in map(Predictor, (tmp_path / "soup", *runs)))
        np.testing.assert_allclose(soup, (each[0] + each[1]) / 2, rtol=1e-4, atol=1e-6)
    if other == "seed":
        export(tmp_path / "soup", tmp_path / "model.pt2", "torch", dataset=made.inputs.raw)  # compares the two


def test_runs_on_other_data_and_soups_are_refused(place, tmp_path):
    with pytest.raises(ValueError, match=r"other and .*a differ in their data or split"):
        make_soup([place / "a", place / "other"], tmp_path / "soup")
    assert not (tmp_path / "soup").exists()
    make_soup([place / "a", place / "c"], tmp_path / "soup", uniform=True)
    with pytest.raises(ValueError, match="is a soup itself"):
        make_soup([place / "a", tmp_path / "soup"], tmp_path / "again")
    with pytest.raises(ValueError, match="holds a soup of 2 runs"):
        train_run(RunFolder(tmp_path / "soup").spec(), tmp_path / "soup")


def test_the_command_writes_a_page_that_names_the_command(place, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cli.main(["soup", str(place / "a"), str(place / "c"), "--uniform", "--out", "soup"])
    assert "mean weights of 2 of 2 runs" in capsys.readouterr().out
    page = (tmp_path / "soup" / "report.html").read_text()
    assert "The mean weights of 2 runs" in page and f"crosstail soup {place / 'a'}" in page
    methods = read_runs([place / "a", tmp_path / "soup"]).table["method"]  # not two of the same
    assert sorted(methods) == ["erm", "erm, soup of 2"]
