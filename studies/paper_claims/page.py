"""The page and its charts, from the records alone: every sentence with a measured number is built from them."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from studies.paper_claims import measured as of
from studies.paper_claims.claims import claims, correlations, models
from studies.paper_claims.design import (
    CONFIGURATIONS,
    DIVERGENT,
    DOMAINS,
    EVERYWHERE,
    METHODS,
    NO_WARMUP,
    NU,
    PHOTO_METHODS,
    RESCALED,
    SEEDS,
    SETTINGS,
    UNIFORM,
    Study,
)
from studies.paper_claims.measured import Measured, measured

from crosstail.reports.charts import PALETTE
from crosstail.reports.document.files import save_drawing
from crosstail.reports.vega_lite import Drawing, draw, facet, field

Studies = dict[str, Study]
TEMPLATE = Path(__file__).parent / "template.txt"
ONE_OR_TWO = {"one stage": "", "two stages": ":retrain"}
COLD = NO_WARMUP[0].changed


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Markdown, with an empty line after it."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (header, *rows)]
    return [lines[0], "|" + "---|" * len(header), *lines[1:], ""]


def shown(study: Study, method: str, where: Sequence[str] | None = None, form: str = ".1f", **options: Any) -> str:
    """A cell of a table: mean ± standard deviation of a method."""
    return measured(study, method, where or (DIVERGENT,), **options).mean(form)


def summary(study: Study) -> list[str]:
    """What holds, what does not, and why: one line each."""
    names = ("erm", "coral", "boda", "boda+coral")
    (erm, coral, boda, both), (crt, coral2, boda2, both2) = (
        [measured(study, name + stage) for name in names] for stage in ONE_OR_TWO.values()
    )
    soft, softer, three = (measured(study, name) for name in ("bsoftmax", "bsoftmax+coral", "boda+bsoftmax+coral"))
    authors = measured(study, "boda@reference")
    cold, cold_both = (measured(study, name, changed=COLD) for name in ("boda", "boda+coral"))
    term = {"ERM": boda - erm, "CRT": boda2 - crt, "CORAL": both - coral}
    term |= {"CORAL with a second stage": both2 - coral2, "balanced softmax + CORAL": three - softer}
    align = {"ERM": coral - erm, "CRT": coral2 - crt, "BoDA_r": both - boda, "BoDA_{r,c}": both2 - boda2}
    alone = {"ERM": soft - erm, "BoDA_r": soft - boda, "BoDA_{r,c}": soft - boda2}
    alone["BoDA_{r,c} + CORAL (both with CORAL)"] = softer - both2
    whole = {"BoDA_{r,c} over ERM (paper: +9.5)": boda2 - erm, "of which CRT": crt - erm, "the rest": boda2 - crt}
    theirs = {"ERM": authors - erm, "CORAL": authors - coral, "our `boda+coral`": authors - both}
    wait = {"BoDA_r": boda - cold, "BoDA_r + CORAL": both - cold_both}
    rest = "boda+coral bsoftmax bsoftmax+coral"
    lines = [
        (f"BoDA's term {effect(term)}", term, "erm coral boda boda+coral bsoftmax+coral boda+bsoftmax+coral"),
        (f"CORAL, which the paper's text does not mention, {effect(align)}", align, "erm coral boda boda+coral"),
        (f"Balanced softmax in one stage {effect(alone, RANK)}", alone, f"erm boda {rest}"),
        (explained(*whole.values()), whole, "erm boda"),
        (f"The authors' code in one stage {effect(theirs, RANK)}", theirs, "erm coral boda+coral boda@reference"),
        (f"The warm-up {effect(wait)}", wait, "boda boda+coral"),
    ]
    return [f"- **{head}**: {said(gains)}. `--only {only}`" for head, gains, only in lines] + [""]


def said(gains: dict[str, Measured]) -> str:
    """Each gain with its interval, or how many runs are missing before there is any."""
    if not any(gain.by_seed for gain in gains.values()):
        return Measured({}, frozenset().union(*(gain.lacking for gain in gains.values()))).missing()
    return ", ".join(f"{what} {gain.gain()}" for what, gain in gains.items())


EFFECT = {1: "improves {}", -1: "worsens {}", 0: "has no effect beyond the noise on {}"}
RANK = {1: "is ahead of {}", -1: "is behind {}", 0: "is level with {} within the noise"}


def effect(gains: dict[str, Measured], words: dict[int, str] = EFFECT) -> str:
    """What the intervals of some gains say: where there is a gain, a loss, or nothing beyond the noise.

    >>> noise, gain = Measured({0: -1.0, 1: 1.0}), Measured({0: 1.0, 1: 1.1})
    >>> effect({"a": gain, "b": noise}), effect({"a": gain})
    ('improves a, but has no effect beyond the noise on b', 'improves all of these')
    """
    if any(gain.lacking for gain in gains.values()):
        return "is not finished"
    found = {sign: [name for name, gain in gains.items() if gain.sign == sign] for sign in words}
    found = {sign: names for sign, names in found.items() if names}
    if len(found) == 1:
        sign = next(iter(found))
        return words[sign].format("all of these" if sign else "these")
    return ", but ".join(words[sign].format(joined(names)) for sign, names in found.items())


def joined(names: Sequence[str]) -> str:
    """Several names in a sentence."""
    return " and ".join([", ".join(names[:-1])] * (len(names) > 1) + [names[-1]])


def explained(whole: Measured, stage: Measured, term: Measured) -> str:
    """Whether the second stage explains what BoDA_{r,c} gains over ERM."""
    if whole.lacking or stage.lacking:
        return "Whether the second stage explains BoDA_{r,c} is not finished"
    if whole.sign < 1:
        return "BoDA_{r,c} does not gain over ERM beyond the noise"
    if stage.sign < 1:
        return "The second stage does not explain BoDA_{r,c}'s gain"
    return f"The second stage explains {'part of ' if term.sign == 1 else ''}BoDA_{{r,c}}'s gain"


def verdicts(studies: Studies) -> list[str]:
    """One row per claim and setting."""
    rows = [claim.row(study) for study in studies.values() for claim in claims(study)]
    order = list(dict.fromkeys(row[0] for row in rows))
    header = ["claim (a gain: in points)", "data and network", "paper", "ours", "95 % interval", "verdict"]
    return table(header, sorted(rows, key=lambda row: order.index(row[0])))


def methods(study: Study) -> list[str]:
    """Accuracies of every method on divergent labels."""
    kinds = {"pairs": of.accuracy, "few-shot pairs": of.few_shot, "worst pair": of.worst_pair}
    columns = {f"{kind}, {words}": (kinds[kind], stage) for words, stage in ONE_OR_TWO.items() for kind in kinds}
    rows = [
        [f"`{name}`", *(shown(study, name + stage, measure=measure) for measure, stage in columns.values())]
        for name in (*METHODS, RESCALED.algorithm)
    ]
    return table(["method", *columns], rows)


def ablation(study: Study) -> list[str]:
    """BoDA's term × CORAL × warm-up × second stage, then ν."""
    columns = {f"{how} CORAL, {words}": (how, s) for how in ("without", "with") for words, s in ONE_OR_TWO.items()}
    none, both = {"without": "erm", "with": "coral"}, {"without": "boda", "with": "boda+coral"}
    rows = [
        [term, *(shown(study, names[how] + stage, changed=changed) for how, stage in columns.values())]
        for term, names, changed in (("none", none, ()), ("without warm-up", both, COLD), ("with warm-up", both, ()))
    ]
    nus = [
        [
            f"{nu:g}",
            *(shown(study, "boda" + s, changed=(("nu", nu),) * (nu != 1), seeds=SEEDS) for s in ONE_OR_TWO.values()),
        ]
        for nu in (*NU, 1.0)
    ]
    return table(["BoDA's term", *columns], rows) + table([f"ν of `boda`, {SEEDS} seeds", *ONE_OR_TWO], nus)


def configurations(study: Study) -> list[str]:
    """Accuracy by label configuration, before and after the second stage."""
    rows = [
        [where, *(" / ".join(shown(study, name + s, (where,)) for s in ONE_OR_TWO.values()) for name in EVERYWHERE)]
        for where in CONFIGURATIONS
    ]
    return table(["labels", *(f"`{name}`, one / two stages" for name in EVERYWHERE)], rows)


def correlation_table(study: Study) -> list[str]:
    """How (β + γ) − α goes along with accuracy, by configuration."""
    rows = []
    for r in correlations(study).itertuples():
        spans = [f"{r.least:.1f} to {r.most:.1f}", f"{r.r:+.2f}", f"{r.low:+.2f} to {r.high:+.2f}"]
        rows.append([str(r.labels), str(r.models), *spans])
    return table(["labels", "models", "accuracy, %", "r", "95 % interval"], rows)


def features(study: Study) -> list[str]:
    """α and β, and how far test features of few-shot pairs are from training, of ERM and BoDA_r."""
    distances = {"α / γ": of.over_gamma("alpha"), "β / γ": of.over_gamma("beta")}
    few = {"few-shot, own pair": of.discrepancy("mean"), "few-shot, other domain": of.discrepancy("other_mean")}
    rows = []
    for where in CONFIGURATIONS:
        for name in ("erm", "boda"):
            cells = [shown(study, name, (where,), ".2f", measure=measure) for measure in distances.values()]
            cells += [
                "–" if where == UNIFORM else shown(study, name, (where,), ".2f", measure=measure)
                for measure in few.values()
            ]
            rows.append([where, f"`{name}`", *cells])
    return table(["labels", "method", *distances, *few], rows)


def unseen_domains(study: Study) -> list[str]:
    """Accuracy on each unseen domain, and the means of accuracy and of the class mean."""
    names = [name + stage for name in PHOTO_METHODS for stage in ONE_OR_TWO.values()]
    each = [(domain,) for domain in DOMAINS] + [DOMAINS]
    rows = []
    for name in names:
        means = shown(study, name, DOMAINS, measure=of.class_mean)
        rows.append([f"`{name}`", *(shown(study, name, where) for where in each), means])
    return table(["method", *DOMAINS, "mean", "mean of class means"], rows)


def cost(studies: Studies) -> list[str]:
    """What a run takes, what is done, and what is left."""
    rows = []
    for name, study in studies.items():
        runs, shared, (left, hours) = study.records.runs, study.setting.shared, study.cost()
        seconds = [run["seconds"] for key, run in runs.items() if "seconds" in run and not key.endswith(" short")]
        cells = [f"{shared.steps:,}", f"{np.median(seconds):.0f}" if seconds else "–", str(len(runs))]
        cells += [str(sum("failed" in run for run in runs.values())), f"{left}" + f" ({hours:.1f} h)" * bool(hours)]
        rows.append([study.setting.title, f"`--setting {name}`", *cells])
    header = ["steps per stage", "seconds per run (median)", "runs", "failed", "runs left"]
    return table(["setting", "option", *header], rows)


def separation_chart(found: pd.DataFrame) -> Drawing:
    """One panel per network and configuration, each with its own scales."""
    points = draw(width=150, height=130).mark("point", filled=True, color=PALETTE[0], opacity=0.7)
    panel = points.encode(
        x=field("separation:Q", title="(β + γ) − α", scale={"zero": False}, axis={"tickCount": 4}),
        y=field("accuracy:Q", title="test, %", scale={"zero": False}),
    )
    by = {
        "row": field("setting:N", title=None, sort=[setting.title for setting in SETTINGS.values()]),
        "column": field("labels:N", title=None, sort=list(CONFIGURATIONS)),
    }
    return facet(panel, found, by, resolve={"scale": {"x": "independent", "y": "independent"}})


FROM_PIXELS: dict[str, Callable[[Study], list[str]]] = {
    "methods": methods,
    "ablation": ablation,
    "configurations": configurations,
    "correlations": correlation_table,
    "features": features,
}


def blocks(studies: Studies) -> dict[str, list[str]]:
    """The lines that stand for each place in the template."""
    digits = [study for study in studies.values() if not study.setting.photos]
    found = {"verdicts": verdicts(studies), "cost": cost(studies), "unseen": unseen_domains(studies["photos"])}
    found |= {f"summary-{study.setting.name}": summary(study) for study in digits}

    found |= {name: section(studies["cnn"]) for name, section in FROM_PIXELS.items()}
    picture = "![Points: accuracy against (β + γ) − α, per network and configuration](../images/claims-separation.png)"
    return found | {"separation": [picture, ""] if len(separations(studies)) else []}


def text(studies: Studies) -> str:
    """The page: the template, where a line such as {{methods}} stands for what the records say."""
    made, template = blocks(studies), TEMPLATE.read_text(encoding="utf-8")
    return re.sub(r"\{\{(\S+)\}\}\n", lambda place: "\n".join([*made[place[1]], ""]), template)


def separations(studies: Studies) -> pd.DataFrame:
    """The short ERM models of all settings."""
    return pd.concat([models(study) for study in studies.values() if not study.setting.photos], ignore_index=True)


def write(studies: Studies, docs: Path) -> Path:
    """Write results/claims.md and its chart in images/."""
    page, chart = docs / "results" / "claims.md", docs / "images" / "claims-separation.png"
    for file in (page, chart):
        file.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text(studies), encoding="utf-8")
    found = separations(studies)
    if len(found):
        save_drawing(separation_chart(found), chart)
    return page
