"""Selection as in DomainBed and SubpopBench, against loops over the records of a sweep."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
import torch

from crosstail import discovery
from crosstail.data import load_source, protocols, to_input
from crosstail.sweeps import plan, rules
from crosstail.sweeps.store import Store
from crosstail.testing import save_separable
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.resolve import resolve
from crosstail.workflows.select import select
from crosstail.workflows.sweep import sweep

SMALL = {"width": 8, "steps": 12, "batch_size": 4, "evaluations": 4}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """The folder of a sweep with four domains, each of them unseen in turn, and what it ended with."""
    folder = tmp_path_factory.mktemp("rules")
    save_separable(folder / "v.npz", [[30, 8, 2], [5, 9, 25], [10, 10, 10], [7, 20, 4]])
    spec = RunSpec(dataset=str(folder / "v.npz"), protocol="dg", **SMALL)
    how = {"algorithm": ["erm", "coral"], "trials": 3, "seeds": 2, "launcher": "inline", "rule": "leave_one_domain_out"}
    return folder / "sweep", sweep(spec, folder / "sweep", **how)


def runs_of(folder):
    """The spec, the evaluations and the domains of every run."""
    found = []
    for run in sorted((folder / "runs").iterdir()):
        spec, result = (json.loads((run / name).read_text()) for name in ("spec.json", "result.json"))
        records = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
        found.append((spec, records, result["domains"]))
    return found


def recall(table, d=None):
    """Share of hits, in a domain or in all."""
    rows = range(len(table["hits"])) if d is None else [d]
    hits = sum(sum(table["hits"][r]) for r in rows)
    return hits / sum(sum(table["totals"][r]) for r in rows)


def by_domainbed(found, method, unseen, seed, hparams):
    """The validation and the test accuracy of a trial at the step that leave-one-domain-out selects."""
    same = [
        (spec, records)
        for spec, records, _ in found
        if (spec["algorithm"], spec["seed"], spec["hparams"]) == (method, seed, hparams)
    ]
    ((_, own),) = [each for each in same if each[0]["unseen"] == unseen and each[0]["left_out"] is None]
    pairs = [each for each in same if each[0]["left_out"] and unseen in (each[0]["unseen"], each[0]["left_out"])]
    assert len(pairs) == 3
    best = None
    for i in range(len(own)):
        over = [recall(r[i]["test"] if s["left_out"] == unseen else r[i]["validation"]) for s, r in pairs]
        if best is None or fmean(over) > best[0]:
            best = fmean(over), recall(own[i]["test"])
    return best


def test_leave_one_domain_out_is_domainbeds(swept) -> None:
    folder, ended = swept
    found = runs_of(folder)
    assert len(found) == 2 * 3 * 2 * (4 + 6)  # methods, trials, seeds, domains and pairs of them
    accuracies = {}
    for choice in ended.chosen:
        shared = choice.plan.shared
        trials = [
            by_domainbed(found, choice.method, shared.unseen, shared.seed, h) for h in choice.plan.drawn[choice.method]
        ]
        best = max(range(3), key=lambda t: (trials[t][0], t))  # the last of ties
        assert choice.trial == best and choice.validation == pytest.approx(trials[best][0])
        accuracies.setdefault((choice.method, shared.seed), []).append(trials[best][1])
    for row in ended.rows:
        seeds = [np.mean(accuracies[row.method, seed]) for seed in (0, 1)]
        assert row.accuracy["accuracy"][0] == pytest.approx(np.mean(seeds))
    assert ended.file.name == "selected-leave_one_domain_out.json"


@pytest.mark.parametrize("rule", ["oracle", "worst_group", "no_attribute"])
def test_other_rules_select_from_the_same_runs(swept, rule) -> None:
    folder, _ = swept
    found, chosen = runs_of(folder), select(folder, rule=rule).chosen
    for choice in chosen:
        shared, values = choice.plan.shared, []
        for hparams in choice.plan.drawn[choice.method]:
            ((_, records, _),) = [
                each
                for each in found
                if (each[0]["algorithm"], each[0]["unseen"], each[0]["seed"])
                == (choice.method, shared.unseen, shared.seed)
                and each[0]["left_out"] is None
                and each[0]["hparams"] == hparams
            ]
            if rule == "oracle":
                values.append(recall(records[-1]["unseen"]))
                continue
            over = []
            for record in records:
                hits, totals = (np.array(record["validation"][name]) for name in ("hits", "totals"))
                if rule == "no_attribute":
                    hits, totals = hits.sum(0), totals.sum(0)
                over.append(min(h / n for h, n in zip(hits.flat, totals.flat, strict=True) if n))
            values.append(max(over))
        assert choice.validation == pytest.approx(max(values))
        assert choice.trial == max(range(3), key=lambda t: (values[t], t))
    assert (folder / f"selected-{rule}.json").exists()
    assert not (folder / "selected.json").exists()  # what a rule selects is no default for fit


def test_the_oracle_is_said_to_be_for_comparison_only() -> None:
    assert rules.find("oracle").label == "test-domain, for comparison only"
    assert "test-domain, for comparison only" in discovery.docstring(rules.PACKAGE, "oracle").partition("\n")[0]


def test_held_out_samples_of_the_unseen_domain_are_evaluated_after_the_last_step(swept, tmp_path) -> None:
    folder, _ = swept
    spec = resolve(RunSpec(dataset=str(folder.parent / "v.npz"), algorithm="erm", protocol="dg", unseen="2", **SMALL))
    run = train_run(replace(spec, evaluations=1, hparams={"lr": 0.05}), tmp_path / "run")
    first, last = run.records
    assert first.unseen is None and run.result.selected_step == 12
    data = run.inputs.embedded()
    rows = np.flatnonzero((data.domain == 2) & (data.split == "none"))
    assert len(rows) == (data.domain == 2).sum() // 5
    with torch.no_grad():
        said = run.model().eval()(to_input(data.x[rows])).argmax(1).numpy()
    assert np.sum(last.unseen.hits) == (said == data.y[rows]).sum() and np.sum(last.unseen.totals) == len(rows)


def test_two_domains_that_are_left_out_are_not_trained_on(swept) -> None:
    folder, _ = swept
    source = load_source(RunSpec(dataset=str(folder.parent / "v.npz")))
    one, other = (
        protocols.split(source, RunSpec(dataset="v", protocol="dg", unseen=a, left_out=b)) for a, b in ("13", "31")
    )
    rows = {name: set(one.rows(name)) for name in ("train", "val", "test")}
    domains = {name: set(one.domain[list(own)]) for name, own in rows.items()}
    assert domains == {"train": {0, 2}, "val": {3}, "test": {1}}
    assert rows["train"] == set(other.rows("train")) and rows["val"] == set(other.rows("test"))
    usual = protocols.split(source, RunSpec(dataset="v", protocol="dg", unseen="1"))
    assert rows["test"] == set(usual.rows("test")) and rows["train"] < set(usual.rows("train"))


def test_groups_of_a_domain_that_is_left_out_are_not_trained_on(swept) -> None:
    folder, _ = swept
    source = load_source(RunSpec(dataset=str(folder.parent / "v.npz")))
    source = replace(source, group=np.arange(len(source)) % 40)
    found = protocols.split(source, RunSpec(dataset="v", protocol="dg", unseen="1", left_out="3"))
    out = np.isin(found.domain, (1, 3))
    assert not set(source.group[found.rows("train")]) & set(source.group[out])


@pytest.mark.parametrize(
    ("changes", "rule", "message"),
    [
        ({}, "oracle", "test-domain, for comparison only needs unseen domains: add --protocol dg"),
        ({}, "leave_one_domain_out", "needs unseen domains: add --protocol dg"),
        ({}, "worst", "unknown rule 'worst': did you mean 'worst_group'?"),
        ({"protocol": "dg", "left_out": "1"}, None, "--left-out 1 needs another domain as --unseen"),
        ({"protocol": "dg", "unseen": "1", "left_out": "1"}, None, "--left-out 1 needs another domain as --unseen"),
        ({"protocol": "dg", "unseen": "1", "left_out": "9"}, None, "--left-out is '9', expected one of the domains"),
    ],
)
def test_mistakes(swept, tmp_path, changes, rule, message) -> None:
    data = str(swept[0].parent / "v.npz")
    with pytest.raises(ValueError, match=message):
        if rule:
            sweep(RunSpec(dataset=data, **SMALL, **changes), tmp_path / "s", algorithm=["erm"], rule=rule)
        else:
            train_run(RunSpec(dataset=data, algorithm="erm", **SMALL, **changes), tmp_path / "run")


def test_a_sweep_without_the_runs_for_a_rule_says_so(swept, run, tmp_path) -> None:
    spec = RunSpec(dataset=str(swept[0].parent / "v.npz"), protocol="dg", unseen="1", **SMALL)
    run(plan.make(spec, ["erm"], trials=1, seeds=1), Store(tmp_path / "sweep"))
    with pytest.raises(ValueError, match="lacks runs that leave out one more domain: give its sweep"):
        select(tmp_path / "sweep", rule="leave_one_domain_out")
    with pytest.raises(ValueError, match="two ways to select"):
        select(tmp_path / "sweep", rule="oracle", select_on="average")
    assert Path(select(tmp_path / "sweep", rule="oracle").file).name == "selected-oracle.json"


def test_a_trial_without_one_of_its_runs_is_not_selected(swept, tmp_path) -> None:
    folder = shutil.copytree(swept[0], tmp_path / "sweep")
    before = select(folder, rule="leave_one_domain_out").chosen
    choice = before[0]
    spec = choice.plan.leaving_two(choice.method, choice.hparams)[0]
    shutil.rmtree(folder / "runs" / spec.key)
    after = {c.name: c for c in select(folder, rule="leave_one_domain_out").chosen}
    assert after[choice.name].trial != choice.trial and after[choice.name].missing == 1
