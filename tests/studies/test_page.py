"""The committed page and records: up to date with the code, in agreement with the design, and free of machine paths."""

import json
from pathlib import Path

import pytest
from studies.paper_claims import page
from studies.paper_claims.__main__ import HERE, PROJECT
from studies.paper_claims.claims import verdict
from studies.paper_claims.design import DOMAINS, METHODS, NO_WARMUP, SETTINGS, Cell, Run, Study
from studies.paper_claims.measured import Measured, accuracy, class_mean, few_shot, measured
from studies.paper_claims.records import Records

STUDIES = {name: Study(setting, Records(HERE / "records" / f"{name}.jsonl")) for name, setting in SETTINGS.items()}


def test_the_page_is_what_the_records_give():
    written = (PROJECT / "docs" / "results" / "claims.md").read_text(encoding="utf-8")
    assert written == page.text(STUDIES)
    assert "{{" not in written and len(written) > len(page.TEMPLATE.read_text(encoding="utf-8"))


def test_the_first_ten_lines_answer_with_intervals_and_commands():
    lines = page.text(STUDIES).splitlines()[:10]
    answers = [line for line in lines if line.startswith("- **")]
    assert len(answers) == 6 and all("--only" in line for line in answers)
    for term in ("BoDA's term", "CORAL", "Balanced softmax", "second stage", "authors' code", "warm-up"):
        assert any(term in line.split("**")[1] for line in answers)


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_records_are_runs_of_the_design_and_have_no_path(study):
    design = {run.key: run for run in study.wanted() if run is not None}
    for key, record in study.records.runs.items():
        line = json.dumps(record)
        assert "/tmp" not in line and "/work" not in line and "/home" not in line
        if "failed" not in record:
            spec, kept = study.setting.spec(design[key], Path(study.setting.shared.dataset)), record["spec"]
            assert kept["hparams"] == {name: spec.hparams[name] for name in kept["hparams"]}
            for name in ("dataset", "algorithm", "second_stage", "unseen", "steps", "batch_size", "seed", "backbone"):
                assert kept.get(name) == getattr(spec, name)
            assert tuple(kept.get("labels", ())) == (spec.labels or ())


def record(validation, hits, **more):
    stages = [{"validation": v, "hits": [[h]]} for v, h in zip(validation, hits, strict=True)]
    return {"spec": {}, "counts": [[9]], "totals": [[10]], "stages": stages, **more}


def filled(tmp_path, rows):
    """A study with these records by algorithm, learning rate and seed."""
    study = Study(SETTINGS["frozen"], Records(tmp_path / "none.jsonl"))
    for (algorithm, lr, seed), (validation, hits) in rows.items():
        study.records.runs[Run(Cell(algorithm), lr, seed).key] = record(validation, hits)
    return study


def test_each_stage_has_the_rate_that_is_best_on_its_validation(tmp_path):
    low, high, other = sorted(SETTINGS["frozen"].rates)
    rows = {
        ("erm", low, 0): ((0.2, 0.9), (9, 1)),
        ("erm", high, 0): ((0.8, 0.1), (2, 9)),
        ("erm", high, 1): ((0.0, 0.0), (3, 9)),
    }
    study = filled(tmp_path, rows)
    assert study.chosen(Cell("erm"), 1) is None and measured(study, "erm").by_seed == {}
    rows["erm", other, 0] = ((0.5, 0.5), (5, 5))
    study = filled(tmp_path, rows)
    assert (study.chosen(Cell("erm"), 1), study.chosen(Cell("erm"), 2)) == (high, low)
    one, two = measured(study, "erm"), measured(study, "erm:retrain")
    assert one.by_seed == {0: 20, 1: 30} and two.by_seed == {0: 10}
    assert (len(one.lacking), len(two.lacking)) == (3, 4)
    assert (two - one).by_seed == {0: -10} and len((two - one).lacking) == 7


def test_a_cell_without_a_chosen_rate_lacks_its_trials_and_its_other_seeds(tmp_path):
    study = filled(tmp_path, {})
    assert len(measured(study, "erm").lacking) == 3 + 4
    assert len(measured(study, "boda", changed=NO_WARMUP[0].changed).lacking) == 3 + 5
    assert len((measured(study, "erm:retrain") - measured(study, "erm")).lacking) == 3 + 4
    assert len(measured(Study(SETTINGS["photos"], study.records), "erm", DOMAINS).lacking) == 4 * 3 * 5


def test_accuracy_is_the_mean_over_pairs_or_the_share_of_the_unseen_domain():
    made = {"spec": {}, "counts": [[5, 500], [0, 20]], "totals": [[10, 100], [0, 4]]}
    made["stages"] = [{"hits": [[5, 100], [0, 1]]}]
    assert accuracy(made, 1) == pytest.approx(100 * (0.5 + 1 + 0.25) / 3)
    assert few_shot(made, 1) == pytest.approx(100 * (0.5 + 0.25) / 2)
    made["spec"] = {"unseen": DOMAINS[0]}
    assert accuracy(made, 1) == pytest.approx(100 * 105 / 110)
    assert class_mean(made, 1) == pytest.approx(75)


@pytest.mark.parametrize(
    ("values", "paper", "expected"),
    [
        ([9.0, 10.0, 10.0], 9.5, "reproduced"),
        ([3.0, 3.1, 2.9], 9.5, "partly"),
        ([0.1, -0.1, 0.0], 9.5, "not: no gain"),
        ([-3.0, -3.1, -2.9], 9.5, "not: a loss"),
        ([-9.0, 12.0, 9.0], 9.5, "not shown"),
    ],
)
def test_the_verdict_follows_from_the_interval(values, paper, expected):
    assert verdict(values, paper).startswith(expected)


def gains(*values, lacking=()):
    return Measured(dict(enumerate(values)), frozenset(lacking))


def test_the_second_stage_explains_a_gain_that_the_term_does_not_add_to():
    up, level, down = gains(5.0, 5.1), gains(-1.0, 1.0), gains(-5.0, -5.1)
    said = [page.explained(*parts) for parts in ((up, up, level), (up, up, up), (up, down, up), (level, up, down))]
    assert ["part" in words for words in said] == [False, True, False, False]
    assert ["not" in words for words in said] == [False, False, True, True]
    assert "not finished" in page.explained(gains(1.0, lacking="a"), up, up)
    assert "not finished" in page.effect({"a": up, "b": gains(1.0, lacking="a")})
    assert page.effect({"a": up, "b": down, "c": level}).split(", but ")[1] == "worsens b"


def test_every_method_of_the_design_is_in_the_tables():
    for study in (STUDIES["cnn"], STUDIES["frozen"]):
        assert all(any(f"`{name}`" in line for line in page.methods(study)) for name in METHODS)
