"""The trial and the step of every search that a rule selects, and the test accuracies there."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean

import msgspec

from crosstail.data import protocols
from crosstail.sweeps.index import Judged, Summary, views
from crosstail.sweeps.plan import Plan
from crosstail.sweeps.rules import Rule
from crosstail.sweeps.select import SelectedTrial
from crosstail.training.folder import RunFolder
from crosstail.training.result import Averaged, Evaluation, SplitAccuracy
from crosstail.training.spec import RunSpec


def judge(rule: Rule, runs: Path, results: Mapping[str, Summary], plan: Plan, method: str) -> dict[str, Judged | None]:
    """What a rule selects the finished trials of a method by, by key."""
    rule.check(plan.shared)
    specs = [s for search in plan.searches for hparams in search.drawn[method] for s in search.runs(method, hparams)]
    values = {spec.key: _selected(rule, runs, spec)[0] for spec in specs if spec.key in results}
    found = {key: None if value is None else Judged(value, value) for key, value in values.items()}
    # Without a run that leaves out one more domain, a trial is not finished.
    return {key: one for key, one in found.items() if one or not rule.left_out}


def tested(
    rule: Rule, runs: Path, results: Mapping[str, Summary], chosen: Iterable[SelectedTrial]
) -> dict[str, Summary]:
    """The results, those of the chosen trials with the test accuracies at the step that the rule selects."""
    found = dict(results)
    for choice in chosen:
        for spec in [spec for specs in choice.plan.finals(choice.method, choice.hparams) for spec in specs]:
            if choice.trial is not None and spec.key in results:
                test = _selected(rule, runs, spec)[1].test
                changes = {"test": views(test), "pairs": test if spec.fold else None, "known": None}
                found[spec.key] = msgspec.structs.replace(results[spec.key], **changes, known_pairs=None)
    return found


def _selected(rule: Rule, runs: Path, spec: RunSpec) -> tuple[float | None, Evaluation | Averaged]:
    """The value and the evaluation that a rule selects of a finished run, the first of the best."""
    own = _evaluations(runs, spec.key)
    if rule.oracle:
        last = own[max(own)]
        if last.unseen is None:
            raise ValueError(f"{runs / spec.key}: its records lack held-out samples of the unseen domain: sweep again")
        return rule.value(last.unseen), last.averaged or last
    known = [{step: _final(record).validation for step, record in own.items()}]
    if rule.left_out:
        domains = RunFolder(runs / spec.key).finished_result().domains
        known = [
            _on(other, runs, protocols.leave_out_two(spec, other, domains)) for other in domains if other != spec.unseen
        ]
    values = {}
    for step in own:
        found = [value for of in known if step in of and (value := rule.value(of[step])) is not None]
        if len(found) == len(known):
            values[step] = fmean(found)
    best = max(values, key=lambda step: values[step], default=max(own))
    return values.get(best), _final(own[best])


def _on(domain: str, runs: Path, spec: RunSpec) -> dict[int, SplitAccuracy]:
    """The accuracies by step on one of the two domains that a run was not trained on."""
    found = {step: _final(record) for step, record in _evaluations(runs, spec.key).items()}
    return {step: record.test if spec.unseen == domain else record.validation for step, record in found.items()}


def _final(record: Evaluation) -> Evaluation | Averaged:
    """Of the weights that count."""
    return record.averaged or record


def _evaluations(runs: Path, key: str) -> dict[int, Evaluation]:
    """The evaluations of the last stage of a finished run, by step; none of a run that is not finished."""
    records = RunFolder(runs / key).records()
    return {record.step: record for record in records if record.stage == records[-1].stage}
