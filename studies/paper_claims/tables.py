"""The tables of the page, in Markdown."""

from collections.abc import Sequence

import numpy as np
from studies.paper_claims import photos
from studies.paper_claims.accuracies import (
    METHODS,
    OTHERS,
    PHOTOS,
    accuracy,
    by_seed,
    correlation_table,
    finals,
    mean_sd,
    minus,
)
from studies.paper_claims.digits import BODA, CONFIGURATIONS, DIVERGENT, ERM, SETTINGS, Setting
from studies.paper_claims.records import Record, Records
from studies.paper_claims.series import chosen

from crosstail import algorithms
from crosstail.sweep.plan import Plan
from crosstail.training.spec import split_method

FLAT = 1.0  # points of validation accuracy in the last fifth of the steps, up to which a curve counts as flat


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Markdown, with an empty line after it."""
    if not rows:
        return ["Not finished yet.", ""]
    lines = ["| " + " | ".join(cells) + " |" for cells in (header, *rows)]
    return [lines[0], "|" + "---|" * len(header), *lines[1:], ""]


def comparison(setting: Setting, records: Records) -> list[str]:
    """Accuracy by configuration and method, and how flat the curves were."""
    rows = []
    for configuration in CONFIGURATIONS:
        plan = setting.plan(configuration)
        found = {method: by_seed(plan, *entry, records) for method, entry in METHODS.items()}
        gain = minus(found["BoDA_{r,c}"], found["ERM"])
        late = [late_gain(finals(plan, entry, 1, records)) for entry in (ERM, BODA)]
        if any(found.values()):
            rows.append([configuration, *map(mean_sd, found.values()), mean_sd(gain, sign="+"), *late])
    return table(["labels", *METHODS, "BoDA_{r,c} − ERM", "late gain, ERM", "late gain, BoDA_r"], rows)


def late_gain(seeds: list[list[Record]]) -> str:
    """What validation still gained in the last fifth of the first stage, in points; in bold where that is much."""
    gains = [
        100 * (curve[-1][1] - value_at(curve, 0.8)) for (record,) in seeds for curve in [record["stages"][0]["curve"]]
    ]
    if not gains:
        return "–"
    text = f"{np.mean(gains):+.1f}"
    return f"**{text}**" if np.mean(gains) > FLAT else text


def value_at(curve: list[list[float]], part: float) -> float:
    """A curve's value at the last evaluation that is not after a part of its steps."""
    return [value for step, value in curve if step <= part * curve[-1][0]][-1]


def choices(setting: Setting, records: Records) -> list[str]:
    """The selected hyperparameters, with the validation accuracy of the defaults and of the selection."""
    rows = []
    for configuration in CONFIGURATIONS:
        plan = setting.plan(configuration)
        for method, (entry, stage) in METHODS.items():
            choice = chosen(plan, entry, stage, records)
            if choice.trial is None:
                continue
            default = records.validation(stage).get(choice.keys[0][0])
            cells = ["–" if v is None else f"{100 * v:.1f}" for v in (default, choice.validation)]
            searched = {
                name: choice.hparams[name]
                for name in algorithms.ranges(algorithms.find(split_method(entry)[0]).Hparams)
            }
            words = (
                ", ".join(f"{name} {value:.2g}" for name, value in searched.items()) if choice.trial else "the defaults"
            )
            rows.append([configuration, method, str(choice.finished), *cells, words])
    return table(["labels", "method", "trials", "defaults, validation", "best, validation", "chosen"], rows)


def correlations(setting: Setting, records: Records) -> list[str]:
    """How (β + γ) − α goes along with accuracy, by configuration."""
    rows = []
    for row in correlation_table(setting, records).itertuples():
        accuracies, span = f"{row.least:.1f} to {row.most:.1f}", f"{row.low:+.2f} to {row.high:+.2f}"
        rows.append([str(row.labels), str(row.models), accuracies, f"{row.r:+.2f}", span, f"{row.rank:+.2f}"])
    return table(["labels", "models", "accuracy, %", "r", "95 % interval", "rank correlation"], rows)


def gaps(setting: Setting, records: Records) -> list[str]:
    """α and β in units of γ, by configuration and method."""
    rows = []
    for configuration in CONFIGURATIONS:
        cells = []
        for method in ("ERM", "BoDA_r"):
            found = [
                record["transferability"]
                for (record,) in finals(setting.plan(configuration), *METHODS[method], records)
            ]
            cells += [mean_sd([t[name] / t["gamma"] for t in found], 2) for name in ("alpha", "beta")]
        rows.append([configuration, *cells])
    return table(["labels", "α / γ, ERM", "β / γ, ERM", "α / γ, BoDA_r", "β / γ, BoDA_r"], rows)


def bounds(setting: Setting, records: Records) -> list[str]:
    """The loss of the whole training set per sample, and the least that it can be by the theorems."""
    rows = []
    for configuration in ("uniform–uniform", DIVERGENT):
        for method in ("ERM", "BoDA_r"):
            seeds = finals(setting.plan(configuration), *METHODS[method], records)
            seen = [record["bound"] for (record,) in seeds if "bound" in record]
            for one in zip(*seen, strict=True):  # the same ν of every seed
                empirical, theoretical = ([entry[i] for entry in one] for i in (1, 2))
                cells = [mean_sd(v, 5) for v in (empirical, theoretical, minus(empirical, theoretical))]
                rows.append([configuration, method, f"{one[0][0]:g}", *cells])
    return table(["labels", "trained with", "ν", "empirical", "theoretical", "gap"], rows)


def discrepancies(setting: Setting, records: Records) -> list[str]:
    """How far test features are from training, in units of γ, by shots."""
    rows = []
    for configuration in CONFIGURATIONS:
        for method in ("ERM", "BoDA_r"):
            seeds = finals(setting.plan(configuration), *METHODS[method], records)
            seen = [record for (record,) in seeds if "discrepancy" in record]
            if not seen or "few" not in seen[0]["discrepancy"]:
                continue
            cells = [
                mean_sd([r["discrepancy"][shot][kind] / r["transferability"]["gamma"] for r in seen], 2)
                for shot in ("many", "few")
                for kind in ("mean", "other_mean")
            ]
            raw = mean_sd([r["discrepancy"]["few"]["mean"] for r in seen], 2)
            rows.append([configuration, method, *cells, raw])
    header = ["many, own pair", "many, other domain", "few, own pair", "few, other domain", "few, own pair, raw"]
    return table(["labels", "method", *header], rows)


def ablation(setting: Setting, records: Records, name: str, symbol: str) -> list[str]:
    """Validation and test accuracy by the value of one hyperparameter, first by the one that was chosen."""
    plan = setting.plan(DIVERGENT, (BODA,))
    own = chosen(plan, BODA, 2, records).hparams[name]
    label = own if isinstance(own, str) else f"{own:.2g}"
    runs = {f"{label} (chosen)": [record for (record,) in finals(plan, BODA, 2, records)]}
    for value, specs in setting.ablated(name, records).items():
        found = [records.runs[spec.key] for spec in specs if "stages" in records.runs.get(spec.key, {})]
        runs[f"{value:g}"] = found
    rows = []
    for label, found in runs.items():
        cells = []
        for stage in (1, 2):
            cells.append(mean_sd([100 * record["stages"][stage - 1]["validation"] for record in found]))
            cells.append(mean_sd([accuracy(record, stage) for record in found]))
        if found:
            rows.append([label, str(len(found)), *cells])
    header = ["seeds", "BoDA_r, validation", "BoDA_r, test", "BoDA_{r,c}, validation", "BoDA_{r,c}, test"]
    return table([symbol, *header], rows)


def second_stages(setting: Setting, records: Records) -> list[str]:
    """Each method before and after its second stage, on divergent labels."""
    rows = []
    for name, entry in {"ERM": ERM, **OTHERS, "BoDA": BODA}.items():
        entries = (ERM, BODA) if name in ("ERM", "BoDA") else tuple(OTHERS.values())
        before, after = (by_seed(setting.plan(DIVERGENT, entries), entry, stage, records) for stage in (1, 2))
        if before or after:
            rows.append([name, mean_sd(before), mean_sd(after), mean_sd(minus(after, before), sign="+")])
    return table(["method", "one stage", "two stages", "gain"], rows)


def unseen_domains(records: Records) -> list[str]:
    """Accuracy on every unseen domain, and their mean."""
    plan, rows = photos.plan(), []
    for name, (entry, stage) in PHOTOS.items():
        seeds = finals(plan, entry, stage, records)
        domains = [[accuracy(runs[i], stage) for runs in seeds] for i in range(len(plan.unseen))]
        if seeds:
            rows.append([name, *map(mean_sd, domains), mean_sd(by_seed(plan, entry, stage, records))])
    return table(["method", *photos.DOMAINS, "mean"], rows)


def missing(records: dict[str, Records]) -> list[str]:
    """What is not finished, as a list."""
    lines = []
    for name, setting in SETTINGS.items():
        own = records[f"digits-{name}"]
        parts = {f"the search on {labels}": setting.plan(labels) for labels in CONFIGURATIONS}
        parts["DA, DANN and CORAL"] = setting.plan(DIVERGENT, tuple(OTHERS.values()))
        lacks = [part for part, plan in parts.items() if not _finished(plan, own)]
        models = [spec.key not in own.runs for labels in CONFIGURATIONS for spec in setting.varied(labels)]
        lacks += [f"{sum(models)} of {len(models)} ERM models"] if any(models) else []
        for part in setting.ablations:
            wanted = [spec for specs in setting.ablated(part, own).values() for spec in specs]
            lacks += [f"the ablation of {part}"] if any(spec.key not in own.runs for spec in wanted) else []
        lines += [f"- {setting.title}: {', '.join(lacks)}."] if lacks else []
    lines += [] if _finished(photos.plan(), records["photos"]) else ["- Office-Caltech10: all of it."]
    return [*(lines or ["Nothing."]), ""]


def _finished(plan: Plan, records: Records) -> bool:
    return all(by_seed(plan, entry, stage, records) for entry in plan.methods for stage in (1, 2))


def cost(records: dict[str, Records]) -> list[str]:
    """How many runs are in the records, and how long they took."""
    rows = []
    for name, own in records.items():
        runs = own.runs.values()
        failed = sum("failed" in run for run in runs)
        hours = sum(run.get("seconds", 0) for run in runs) / 3600
        rows.append([f"`{name}.jsonl`", str(len(runs)), str(failed), f"{hours:.1f}"])
    return table(["records", "runs", "failed", "hours of a process on the busy machine"], rows)


def budget(records: dict[str, Records]) -> list[str]:
    """What each setting grants a method."""
    settings = SETTINGS.values()
    rows = [
        ["steps of 2 × 24 images (the paper: 2 × 64)", *(f"{setting.network.steps:,}" for setting in settings)],
        ["trials per method (the paper: 20)", *(str(setting.trials) for setting in settings)],
        ["seeds (the paper: 3)", *(str(setting.seeds) for setting in settings)],
    ]
    return table(["", *(setting.title for setting in settings)], rows)
