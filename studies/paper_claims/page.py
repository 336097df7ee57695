"""The page and its charts, from the records alone: every sentence with a number is built from them."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd
from studies.paper_claims.claims import (
    Gain,
    accuracy,
    claims,
    class_mean,
    correlation_table,
    few_shot,
    level,
    mean_sd,
    models_table,
    worst_pair,
)
from studies.paper_claims.design import (
    CONFIGURATIONS,
    DOMAINS,
    EVERYWHERE,
    METHODS,
    NO_WARMUP,
    NU,
    PHOTO_METHODS,
    RESCALED,
    SETTINGS,
    STAGES,
    UNIFORM,
    Cell,
    Study,
)

from crosstail.report.charts import PALETTE, colours

Studies = dict[str, Study]
FLAT = 1.0  # points of validation accuracy since the last evaluation but one, up to which a curve counts as flat
COLD = NO_WARMUP[0].changed
DRAWN = METHODS[:6]
TITLES = [setting.title for setting in SETTINGS.values()]
COMMAND = "python -m studies.paper_claims --resume"
TEMPLATE = Path(__file__).parent / "template.txt"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Markdown, with an empty line after it."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (header, *rows)]
    return [lines[0], "|" + "---|" * len(header), *lines[1:], ""]


def name_of(cell: Cell) -> str:
    """An algorithm with what is changed.

    >>> name_of(NO_WARMUP[0])
    '`boda`, warmup 0'
    """
    return ", ".join([f"`{cell.algorithm}`", *(f"{name} {value:g}" for name, value in cell.changed)])


def summary(study: Study) -> list[str]:
    """What holds, what does not, and why: one line each."""
    names = ("erm", "coral", "boda", "boda+coral")
    (erm, coral, boda, both), (crt, coral2, boda2, both2) = (
        [level(study, name + stage) for name in names] for stage in ("", ":retrain")
    )
    soft, softer, authors = (level(study, name) for name in ("bsoftmax", "bsoftmax+coral", "boda@reference"))
    cold = {name: level(study, name, changed=COLD) for name in ("boda", "boda+coral")}
    term = {
        "to ERM": boda - erm,
        "to CRT": boda2 - crt,
        "to CORAL": both - coral,
        "and its second stage": both2 - coral2,
    }
    align = {"to ERM": coral - erm, "to CRT": coral2 - crt, "to BoDA_r": both - boda, "to BoDA_{r,c}": both2 - boda2}
    alone = {"to ERM": soft - erm, "over BoDA_r": soft - boda, "over BoDA_{r,c}": soft - boda2}
    alone["with CORAL over BoDA_{r,c} + CORAL"] = softer - both2
    whole = {"BoDA_{r,c} over ERM (the paper: +9.5)": boda2 - erm, "of which CRT": crt - erm, "the rest": boda2 - crt}
    theirs = {"over ERM": authors - erm, "over CORAL": authors - coral, "over our `boda+coral`": authors - both}
    wait = {"to BoDA_r": boda - cold["boda"], "with CORAL": both - cold["boda+coral"]}
    lines = [
        (f"BoDA's term {effect(term)}", term, "erm coral boda boda+coral"),
        (f"CORAL, which the paper's text does not mention, {effect(align)}", align, "erm coral boda boda+coral"),
        (f"Balanced softmax, in one stage, {effect(alone)}", alone, "erm boda boda+coral bsoftmax bsoftmax+coral"),
        (explained(*whole.values()), whole, "erm boda"),
        (f"The authors' code, in one stage, {effect(theirs)}", theirs, "erm coral boda+coral boda@reference"),
        (f"The warm-up {effect(wait)}", wait, "boda boda+coral"),
    ]
    return [
        f"- **{head}**: {', '.join(f'{what} {gain}' for what, gain in gains.items())}. `--only {only}`"
        for head, gains, only in lines
    ]


def effect(gains: dict[str, Gain]) -> str:
    """What the intervals of some gains say together.

    >>> effect({"a": Gain([1.0, 1.1]), "b": Gain([-1.0, 1.0])}), effect({"a": Gain([-1.0, 1.0])})
    ('adds to some', 'adds nothing beyond the noise')
    """
    signs = {gain.sign for gain in gains.values()}
    if any(gain.missing for gain in gains.values()):
        return "is not finished"
    if -1 in signs:
        return "adds to some and takes from others" if 1 in signs else "takes away"
    if 1 in signs:
        return "adds" if signs == {1} else "adds to some"
    return "adds nothing beyond the noise"


def explained(whole: Gain, stage: Gain, term: Gain) -> str:
    """Whether the second stage explains what BoDA_{r,c} gains over ERM."""
    if whole.missing or stage.missing:
        return "Whether the second stage explains BoDA_{r,c} is not finished"
    if whole.sign < 1:
        return "BoDA_{r,c} does not gain over ERM beyond the noise"
    if stage.sign < 1:
        return "The second stage does not explain BoDA_{r,c}'s gain"
    return "The second stage explains " + ("part of BoDA_{r,c}'s gain" if term.sign == 1 else "BoDA_{r,c}'s gain")


def parts(studies: Studies) -> list[str]:
    """What each part adds, by setting and stage."""
    rows = {
        "BoDA's term to ERM": ("boda", "erm"),
        "BoDA's term to CORAL": ("boda+coral", "coral"),
        "BoDA's term to balanced softmax + CORAL": ("boda+bsoftmax+coral", "bsoftmax+coral"),
        "counts in BoDA's distances: BoDA over DA": ("boda", "da"),
        "CORAL to ERM": ("coral", "erm"),
        "CORAL to BoDA": ("boda+coral", "boda"),
        "CORAL to balanced softmax": ("bsoftmax+coral", "bsoftmax"),
        "balanced softmax to ERM": ("bsoftmax", "erm"),
        "balanced softmax to CORAL": ("bsoftmax+coral", "coral"),
        "DANN over ERM": ("dann", "erm"),
        "the authors' code over CORAL": ("boda@reference", "coral"),
    }
    columns = [(study, stage) for study in studies.values() for stage in ("", ":retrain")]
    header = [f"{study.setting.title}, {'two stages' if stage else 'one stage'}" for study, stage in columns]
    cells = [
        [what, *(str(level(study, a + stage) - level(study, b + stage)) for study, stage in columns)]
        for what, (a, b) in rows.items()
    ]
    return table(["", *header], cells)


def methods(study: Study) -> list[str]:
    """Accuracies of every method on divergent labels."""
    rows = []
    for cell in [*map(Cell, METHODS), RESCALED]:
        found = [
            level(study, cell.algorithm + stage, measure=measure).by_seed.values()
            for stage in ("", ":retrain")
            for measure in (accuracy, few_shot, worst_pair)
        ]
        rows.append([name_of(cell), str(min(map(len, found))), *(mean_sd(list(values)) for values in found)])
    kinds = ("pairs", "few-shot pairs", "worst pair")
    return table(["method", "seeds", *(f"{k}, {s}" for s in ("one stage", "two stages") for k in kinds)], rows)


def ablation(study: Study) -> list[str]:
    """BoDA's term × CORAL × warm-up × second stage, then ν."""

    def cells(name: str, changed: tuple[tuple[str, float], ...], seeds: int | None = None) -> list[str]:
        stages = (level(study, name + stage, changed=changed, seeds=seeds) for stage in ("", ":retrain"))
        return [mean_sd(list(found.by_seed.values())) for found in stages]

    rows = [
        ["none", *cells("erm", ()), *cells("coral", ())],
        ["without warm-up", *cells("boda", COLD), *cells("boda+coral", COLD)],
        ["with warm-up", *cells("boda", ()), *cells("boda+coral", ())],
    ]
    ways = ["without CORAL, one stage", "without CORAL, two stages", "with CORAL, one stage", "with CORAL, two stages"]
    nus = [[f"{nu:g}", *cells("boda", (("nu", nu),), seeds)] for nu, seeds in NU.items()]
    nus.append(["1", *cells("boda", (), max(NU.values()))])
    return table(["BoDA's term", *ways], rows) + table(["ν of `boda`, 3 seeds", "one stage", "two stages"], nus)


def configurations(study: Study) -> list[str]:
    """Accuracy by label configuration, before and after the second stage."""
    rows = []
    for where in CONFIGURATIONS:
        found = [[level(study, name + stage, (where,)) for stage in ("", ":retrain")] for name in EVERYWHERE]
        cells = [" / ".join(mean_sd(list(stage.by_seed.values())) for stage in stages) for stages in found]
        rows.append([where, *cells])
    return table(["labels", *(f"`{name}`, one / two stages" for name in EVERYWHERE)], rows)


def rates(study: Study) -> list[str]:
    """Validation accuracy at each learning rate by stage, the chosen one in bold, and whether the curve is flat."""
    rows = []
    for cell in [*map(Cell, METHODS), RESCALED]:
        cells = []
        for stage in STAGES:
            chosen = study.chosen(cell, stage)
            for run in sorted(study.trials(cell), key=lambda run: run.lr):
                value = 100 * study.records.validation(run.key, stage) if run.key in study.records else None
                text = "–" if value is None else "failed" if value < 0 else f"{value:.1f}"
                cells.append(f"**{text}**" if run.lr == chosen else text)
        curves = [study.records.runs[key]["stages"][0]["curve"] for key in study.done(cell, 1).values()]
        late = [100 * (curve[-1][1] - curve[-2][1]) for curve in curves]
        rows.append(
            [name_of(cell), *cells, mean_sd(late, "+.1f") + (" (rising)" if late and np.mean(late) > FLAT else "")]
        )
    each = [f"{rate:.2g}, {stage}" for stage in ("one stage", "two stages") for rate in sorted(study.setting.rates)]
    return table(["method", *each, "last gain"], rows)


def correlations(study: Study) -> list[str]:
    """How (β + γ) − α goes along with accuracy, by configuration."""
    rows = []
    for row in correlation_table(study).itertuples():
        accuracies, span = f"{row.least:.1f} to {row.most:.1f}", f"{row.low:+.2f} to {row.high:+.2f}"
        rows.append([str(row.labels), str(row.models), accuracies, f"{row.r:+.2f}", span, f"{row.rank:+.2f}"])
    return table(["labels", "models", "accuracy, %", "r", "95 % interval", "rank correlation"], rows)


def features(study: Study) -> list[str]:
    """α and β, the bound, and how far test features of few-shot pairs are from training, of ERM and BoDA_r."""
    rows = []
    for where in CONFIGURATIONS:
        for name in ("erm", "boda"):
            found = [study.records.runs[key] for key in study.done(Cell(name, where), 1).values()]
            scale = [record["transferability"]["gamma"] for record in found]
            cells = [
                mean_sd([record["transferability"][what] / g for record, g in zip(found, scale, strict=True)], ".2f")
                for what in ("alpha", "beta")
            ]
            for kind in ("mean", "other_mean"):
                near = [
                    r["discrepancy"].get("few", {}).get(kind, np.nan) / g for r, g in zip(found, scale, strict=True)
                ]
                cells.append("–" if where == UNIFORM else mean_sd(near, ".2f"))
            for nu in (0, 1):
                ends = [[r["bound"][nu][end] for r in found] for end in (1, 2)]
                cells.append(" / ".join(mean_sd(end, ".4f") for end in ends))
            rows.append([where, f"`{name}`", *cells])
    header = [
        "α / γ",
        "β / γ",
        "few-shot, own pair",
        "few-shot, other domain",
        "loss / bound, ν = 0",
        "loss / bound, ν = 1",
    ]
    return table(["labels", "method", *header], rows)


def unseen_domains(study: Study) -> list[str]:
    """Accuracy on each unseen domain, and the means of accuracy and of the class mean."""
    rows = []
    for method in [name + stage for name in PHOTO_METHODS for stage in ("", ":retrain")]:
        found = [level(study, method, (domain,)) for domain in DOMAINS]
        found += [level(study, method, DOMAINS, measure=measure) for measure in (accuracy, class_mean)]
        rows.append([f"`{method}`", *(mean_sd(list(one.by_seed.values())) for one in found)])
    return table(["method", *DOMAINS, "mean", "mean of class means"], rows)


def cost(studies: Studies) -> list[str]:
    """What a run takes, what is done, and what is left."""
    rows = []
    for study in studies.values():
        runs = [record for key, record in study.records.runs.items() if not key.endswith(" short")]
        seconds = [record["seconds"] for record in runs if "seconds" in record]
        left, hours = study.cost()
        shared, failed = study.setting.shared, sum("failed" in record for record in study.records.runs.values())
        cells = [
            f"{shared.steps:,}",
            f"{shared.batch_size} per domain",
            f"{np.median(seconds):.0f}" if seconds else "–",
        ]
        cells += [str(len(study.records.runs)), str(failed), f"{left}" + (f" ({hours:.1f} h)" if hours else "")]
        rows.append([study.setting.title, f"`{COMMAND} --setting {study.setting.name}`", *cells])
    header = ["command", "steps per stage", "batch", "seconds per run, one core", "runs done", "failed", "runs left"]
    return table(["setting", *header], rows)


def verdicts(studies: Studies) -> list[str]:
    """One row per claim and setting."""
    rows = [claim.row(study) for study in studies.values() for claim in claims(study)]
    order = list(dict.fromkeys(row[0] for row in rows))
    header = ["claim (a gain: in points)", "data and network", "paper", "ours", "95 % interval", "verdict"]
    return table(header, sorted(rows, key=lambda row: order.index(row[0])))


def curves(studies: Studies) -> pd.DataFrame:
    """Validation accuracy over stage one on divergent labels: mean over the seeds."""
    rows = [
        (study.setting.title, name, step, 100 * value)
        for study in studies.values()
        for name in DRAWN
        for key in study.done(Cell(name), 1).values()
        for step, value in study.records.runs[key]["stages"][0]["curve"]
        if step
    ]
    found = pd.DataFrame(rows, columns=["setting", "method", "step", "accuracy"])
    return found.groupby(["setting", "method", "step"], sort=False)["accuracy"].mean().reset_index()


def curve_chart(found: pd.DataFrame) -> alt.FacetChart:
    """One panel per network, one line per method."""
    lines = (
        alt.Chart(found, width=340, height=260)
        .mark_line(point=True)
        .encode(
            x=alt.X("step:Q", title="step"),
            y=alt.Y("accuracy:Q", title="validation, %", scale=alt.Scale(zero=False)),
            color=colours("method", dict(zip(DRAWN, PALETTE, strict=True)), orient="top"),
        )
    )
    return lines.facet(column=alt.Column("setting:N", title=None, sort=TITLES)).resolve_scale(
        x="independent", y="independent"
    )


def separations(studies: Studies) -> pd.DataFrame:
    """The short ERM models of all settings."""
    return pd.concat([models_table(study) for study in studies.values()], ignore_index=True)


def separation_chart(found: pd.DataFrame) -> alt.FacetChart:
    """One panel per network and configuration, each with its own scales."""
    points = (
        alt.Chart(found, width=150, height=130)
        .mark_point(filled=True, color=PALETTE[0], opacity=0.7)
        .encode(
            x=alt.X("separation:Q", title="(β + γ) − α", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=4)),
            y=alt.Y("accuracy:Q", title="test, %", scale=alt.Scale(zero=False)),
        )
    )
    rows = alt.Row("setting:N", title=None, sort=TITLES)
    columns = alt.Column("labels:N", title=None, sort=list(CONFIGURATIONS))
    return points.facet(row=rows, column=columns).resolve_scale(x="independent", y="independent")


DIGITS: dict[str, Callable[[Study], list[str]]] = {
    "methods": methods,
    "ablation": ablation,
    "configurations": configurations,
    "rates": rates,
    "correlations": correlations,
    "features": features,
}
CHARTS: dict[str, tuple[Callable[[Studies], pd.DataFrame], Callable[[pd.DataFrame], alt.TopLevelMixin], str]] = {
    "claims-curves": (curves, curve_chart, "Lines: validation accuracy over the steps of stage one"),
    "claims-separation": (separations, separation_chart, "Points: accuracy against (β + γ) − α"),
}


def block(studies: Studies, name: str) -> list[str]:
    """The lines that stand for a place in the template."""
    digits = {key: study for key, study in studies.items() if not study.setting.photos}
    if name in CHARTS:
        rows, _, alternative = CHARTS[name]
        return [f"![{alternative}](../images/{name}.png)", ""] if len(rows(digits)) else []
    if name in DIGITS:
        return [line for study in digits.values() for line in (f"{study.setting.title}:", "", *DIGITS[name](study))]
    whole = {
        "summary": lambda: [*summary(studies["cnn"]), ""],
        "parts": lambda: parts(digits),
        "verdicts": lambda: verdicts(studies),
        "unseen": lambda: unseen_domains(studies["photos"]),
        "cost": lambda: cost(studies),
    }
    return whole[name]()


def text(studies: Studies) -> str:
    """The page: the template, where a line such as {{methods}} stands for what the records say."""
    template = TEMPLATE.read_text(encoding="utf-8")
    return re.sub(r"\{\{(\S+)\}\}\n", lambda place: "\n".join([*block(studies, place[1]), ""]), template)


def write(studies: Studies, docs: Path) -> Path:
    """Write results/claims.md and its charts in images/."""
    out, images = docs / "results" / "claims.md", docs / "images"
    for folder in (out.parent, images):
        folder.mkdir(parents=True, exist_ok=True)
    out.write_text(text(studies), encoding="utf-8")
    digits = {key: study for key, study in studies.items() if not study.setting.photos}
    for name, (rows, draw, _) in CHARTS.items():
        found = rows(digits)
        if len(found):
            draw(found).save(str(images / f"{name}.png"), scale_factor=2.0)
    return out
