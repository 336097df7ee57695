"""The page on tuning the last stage, from the records."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from studies.tuning.rules import RULES, Rule, Said, always
from studies.tuning.sets import SPLITS, sets

from crosstail.metrics import mean_interval
from crosstail.training.tuned_share import EMPTY, SHARES

BASE, CHOSEN = "10 epochs", "unbeaten, 5 %, few empty"
DEVISED = ("ham10000 by lesion", "Office-Caltech10")
FIGURES = ("pairs", "few", "zero", "tenth")


def validation(record: dict[str, Any]) -> Said:
    """What validation samples say of every α."""
    return {a: record["alphas"][str(a)]["val"] for a in SHARES}


def test(record: dict[str, Any], alpha: float, figure: str = "pairs") -> float:
    """A figure of the test samples, in percent; NaN where there is none."""
    value = record["alphas"][str(alpha)]["test"][figure]
    return np.nan if value is None else value


def gain(record: dict[str, Any], alpha: float, figure: str = "pairs") -> float:
    """By how many points α is better than 0."""
    return test(record, alpha, figure) - test(record, 0.0, figure)


def by_set(records: Iterable[dict[str, Any]], recipe: str = BASE) -> dict[str, list[dict[str, Any]]]:
    """The records of a recipe by set."""
    own = sorted((record for record in records if record["recipe"] == recipe), key=lambda record: record["split"])
    names = [photos.name for photos in sets(Path())]
    found = {name: [record for record in own if record["set"] == name] for name in names}
    return {name: part for name, part in found.items() if part}


def cell(parts: Sequence[dict[str, Any]], alpha: float) -> str:
    """Mean figures over the splits."""
    with np.errstate(invalid="ignore"):
        means = [np.mean([test(record, alpha, name) for record in parts]) for name in FIGURES]
    return " / ".join("–" if np.isnan(v) else f"{v:.1f}" for v in means)


def gains(parts: Sequence[dict[str, Any]], rule: Rule, figure: str = "pairs") -> list[float]:
    """By how many points a rule's α is better than 0, of every split."""
    return [gain(record, rule(validation(record)), figure) for record in parts]


def signed(points: float) -> str:
    """A difference with its sign."""
    return f"{points:+.1f}".replace("-", "−")


def shown(values: Sequence[float]) -> str:
    """Mean and Student's interval over splits; of one split there is none."""
    if np.isnan(values).any():
        return "–"
    mean, *ends = map(signed, (np.mean(values), *(mean_interval(values) if len(values) > 1 else ())))
    return f"{mean} ({ends[0]} to {ends[1]})" if ends else mean


def page(records: Sequence[dict[str, Any]]) -> str:
    """All of it."""
    found = by_set(records)
    by_rule = {name: gains(parts, RULES[CHOSEN]) for name, parts in found.items()}
    return TEXT.format(
        figures="\n".join(figure_rows(found)),
        gains="\n".join(gain_rows(found)),
        rules="\n".join(rule_rows(found)),
        recipes="\n".join(recipe_rows(records)),
        number=len(RULES),
        runs=sum(map(len, found.values())),
        chosen=CHOSEN,
        devised=" and ".join(DEVISED),
        confounded=lost(found),
        planned=SPLITS * len(sets(Path())),
        below=sum(value < 0 for values in by_rule.values() for value in values),
        low=signed(min(by_rule[DEVISED[0]])),
        high=signed(max(by_rule[DEVISED[0]])),
        lesion_splits=len(by_rule[DEVISED[0]]),
        lesions=shown(by_rule[DEVISED[0]]),
        office=shown(by_rule[DEVISED[1]]),
        opposite=shown(by_rule["ham10000, opposite tails"]),
        digits=shown(by_rule["digits"]),
        mlt=shown(by_rule["digits-mlt"]),
        empty=f"{100 * EMPTY:.0f}",
        header=" | ".join(f"α = {a:g}" for a in SHARES),
    )


def lost(found: dict[str, list[dict[str, Any]]]) -> str:
    """From how many to how many points few-shot pairs of the confounded sets lose all the way, in the mean."""
    sides = [np.mean(gains(parts, always(1.0), "few")) for name, parts in found.items() if "confounded" in name]
    return f"{-max(sides):.0f} to {-min(sides):.0f}"


def figure_rows(found: dict[str, list[dict[str, Any]]]) -> Iterable[str]:
    """Every set with the means of every α."""
    for name, parts in found.items():
        seconds = np.mean([record["seconds"]["tuning"] for record in parts])
        yield f"| {name} | {len(parts)} | {' | '.join(cell(parts, a) for a in SHARES)} | {seconds:.0f} s |"


def gain_rows(found: dict[str, list[dict[str, Any]]]) -> Iterable[str]:
    """Every set with the gains half of the way, all the way, and by the chosen rule."""
    for name, parts in found.items():
        splits = ", ".join(str(record["split"]) for record in parts)
        chosen = ", ".join(f"{RULES[CHOSEN](validation(record)):g}" for record in parts)
        cells = [shown(gains(parts, rule)) for rule in (always(0.5), always(1.0), RULES[CHOSEN])]
        few = shown(gains(parts, RULES[CHOSEN], "few"))
        yield f"| {name} | {splits} | {' | '.join(cells)} | {few} | {chosen} |"


def rule_rows(by: dict[str, list[dict[str, Any]]]) -> Iterable[str]:
    """Every rule: mean gain on the sets that it was devised on and on the others, and its worst split and set."""
    for name, rule in RULES.items():
        found = {of: gains(parts, rule) for of, parts in by.items()}
        means = {of: float(np.mean(values)) for of, values in found.items()}
        sides = [[v for of, v in means.items() if (of in DEVISED) == first] for first in (True, False)]
        moved = sum(rule(validation(record)) > 0 for parts in by.values() for record in parts)
        low = min(means, key=lambda of: means[of])
        single = min(min(values) for values in found.values())
        cells = [*(signed(np.mean(side)) for side in sides), f"{signed(means[low])} ({low})", signed(single)]
        yield f"| {name} | {moved} | {' | '.join(cells)} |"


def recipe_rows(records: Sequence[dict[str, Any]]) -> Iterable[str]:
    """Recipes beside the base on the same splits."""
    base = {(record["set"], record["split"]): record for record in records if record["recipe"] == BASE}
    for record in records:
        other = base.get((record["set"], record["split"]))
        if record["recipe"] == BASE or other is None:
            continue
        cells = [f"{test(of, a):.1f} / {test(of, a, 'few'):.1f}" for of in (other, record) for a in (0.5, 1.0)]
        seconds = f"{other['seconds']['tuning']:.0f} → {record['seconds']['tuning']:.0f} s"
        yield f"| {record['recipe']} | {record['set']}, split {record['split']} | {' | '.join(cells)} | {seconds} |"


TEXT = """# Tuning the last stage of a pretrained network

The default for photos classifies frozen ImageNet features. Here the last blocks of EfficientNet-Lite0 (`blocks.6` and
the convolution behind it, a million weights) are trained on kept activations of what is in front of them. Their weights
are averaged with the pretrained ones, θ = (1 − α) θ_pretrained + α θ_tuned (WiSE-FT, Wortsman et al., 2022), and the
default classifier `blend` is fitted to the features of each α. α = 0 is the default today.

- **It helps where photos are unlike ImageNet**, by the rule below: digits-mlt {mlt} points of pair average, digits
  {digits}. On HAM10000 it seems to, but {lesion_splits} splits do not show it: by lesion {lesions}, with opposite tails
  {opposite}. Single splits go from {low} to {high}.
- **Where they are like it, the rule leaves them alone**: Office-Caltech10 {office}.
- **In small confounded sets few-shot pairs lose** {confounded} points at α = 1, mean over the splits of a set, and
  validation does not notice: it says little about rare pairs and nothing about those without training samples. The
  rule does not tune there.
- **It is not the default** before HAM10000 shows a gain. The rule is below frozen features on {below} of {runs} splits,
  so `--tune last` is worth its time where photos are unlike ImageNet.
- **Log loss must be compared after a temperature for each α.** `blend` is fitted to features that tuning has seen,
  which makes it overconfident, the more so the larger α. Without a temperature, the validation log loss of a split of
  digits said α = 0 by far (0.89, others up to 1.79), where tuning gains three points.

Balanced softmax, AdamW with a learning rate of 10⁻³ and a cosine, 24 samples per domain in a batch, mirrored at random
except for digits, 10 epochs but at most 300 steps, batch norm with its ImageNet statistics, bfloat16. `--tune last` of
`crosstail fit` does so for 300 steps in float32; its figures differ. A split is one of the product's, by
lesion for HAM10000; *confounded* sets have so many photos for training and validation, in which each class
comes from about half
of its sources, and all test photos. digits-mlt has at most 50 validation and test samples of a pair. {runs} splits were
run, of {planned} planned. Written by `python -m studies.tuning` from the records; `--resume` runs what they lack.

## Gain over frozen features

In pair average on the test samples, in points; mean over splits and Student's 95 % interval over them, where there is
more than one. The last columns are the chosen rule's gain for few-shot pairs (1 to 20 training samples), and its α of
each split.

| set | splits | always ½ | always 1 | chosen | few-shot pairs | α |
|---|---|---|---|---|---|---|
{gains}

## All figures

Pair average / few-shot pairs / pairs without training samples / 10th percentile over pairs, in percent; mean over
splits. Last, processor time for tuning, after the activations: 7 ms for a photo of HAM10000.

| set | splits | {header} | tuning |
|---|---|---|---|---|---|---|---|
{figures}

## Which rule chooses α?

{number} rules were compared, all on the same validation samples. Those without *few empty* were written down when one
split of digits had been run, `unbeaten` for the first version of `--tune last`; *few empty* was added after a
confounded set: α = 0 if more than {empty} % of the pairs have no training samples. Then we chose the rule on {devised},
for its worst split first, then for its mean; the others confirm it.

- *figure, p*: the α with the best figure, of those that beat α = 0 in a paired test at this level, if any;
- *unbeaten, p*: the smallest α that the one with the least log loss does not beat in a paired test at this level;
- *½ by figure, p*: ½ if it beats α = 0 in such a test; *both*: by log loss, and in accuracy not below α = 0.

The chosen rule is **{chosen}**. `moved` counts the splits with α > 0; then the mean gain on the sets that it was
chosen on, and on the others; the set with the least gain; and the worst split.

| rule | moved | chosen on | others | least set | worst split |
|---|---|---|---|---|---|
{rules}

## Recipes

Beside the recipe above, on the same splits: pair average / few-shot pairs on the test samples, at α = ½ and 1 with the
recipe above, then with the other one, and processor time. Single splits: differences of a few points are noise. CORAL
has the weight 1; BoDA's term is the rescaled one with ω = 0.1; `head first` trains the classifier alone for 15 steps.

| recipe | set | ½ | 1 | other, ½ | other, 1 | time |
|---|---|---|---|---|---|---|
{recipes}

## What was not run

Whole-network finetuning with the same processor time, fastai's `fine_tune`, a plain timm script; `--tune last` of the
product itself, and `last:2`, which trains `blocks.5` too; 600 steps; biases and norms only; low rank; layer-wise
decay; second stages fitted on features of held-out folds; radiographs; and the splits missing above.
"""
