"""Write docs/results/claims.md and its charts from the records and a template with places for their tables.

python -m studies.paper_claims.page
"""

import argparse
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import altair as alt
import pandas as pd
from studies.paper_claims import tables
from studies.paper_claims.accuracies import finals, varied_table
from studies.paper_claims.claims import bound_row, claims, correlation_row, discrepancy_claim, level_row, photo_claims
from studies.paper_claims.digits import BODA, CONFIGURATIONS, ERM, SETTINGS, Setting
from studies.paper_claims.records import FOLDER, HERE, Records

from crosstail.report.charts import PALETTE

DOCS = HERE.parents[1] / "docs"
PAGE, IMAGES, TEMPLATE = DOCS / "results" / "claims.md", DOCS / "images", FOLDER / "template.txt"


def read(folder: Path) -> dict[str, Records]:
    """The committed records, by the name of their file."""
    return {name: Records(folder / f"{name}.jsonl") for name in (*(f"digits-{s}" for s in SETTINGS), "photos")}


def separations(records: dict[str, Records]) -> pd.DataFrame:
    """The ERM models of all settings."""
    found = [varied_table(setting, records[f"digits-{name}"]) for name, setting in SETTINGS.items()]
    return pd.concat(found, ignore_index=True)


def curves(setting: Setting, records: Records) -> pd.DataFrame:
    """Validation accuracy over the first stage: mean and range over the seeds, by configuration and method."""
    rows = []
    for configuration in CONFIGURATIONS:
        for method, entry in (("ERM", ERM), ("BoDA_r", BODA)):
            seeds = finals(setting.plan(configuration), entry, 1, records)
            for (record,) in seeds:
                rows += [(configuration, method, step, 100 * v) for step, v in record["stages"][0]["curve"]]
    table = pd.DataFrame(rows, columns=["labels", "method", "step", "accuracy"])
    return table.groupby(["labels", "method", "step"], sort=False)["accuracy"].agg(["mean", "min", "max"]).reset_index()


def curve_chart(table: pd.DataFrame) -> alt.FacetChart:
    """One panel per configuration."""
    base = alt.Chart(width=150, height=150).encode(
        x=alt.X("step:Q", title="step", axis=alt.Axis(tickCount=3)),
        color=alt.Color(
            "method:N",
            title=None,
            sort=None,
            scale=alt.Scale(range=PALETTE),
            legend=alt.Legend(orient="top", symbolOpacity=1),
        ),
    )
    band = base.mark_area(opacity=0.2).encode(
        y=alt.Y("min:Q", title="validation, %", scale=alt.Scale(zero=False)), y2="max:Q"
    )
    line = base.mark_line(point=True).encode(y="mean:Q")
    shown = table[table["step"] > 0]
    return alt.layer(band, line, data=shown).facet(column=alt.Column("labels:N", title=None, sort=list(CONFIGURATIONS)))


def separation_chart(table: pd.DataFrame) -> alt.FacetChart:
    """One panel per network and configuration, each with its own scales."""
    points = (
        alt.Chart(table, width=150, height=130)
        .mark_point(filled=True, color=PALETTE[0], opacity=0.7)
        .encode(
            x=alt.X("separation:Q", title="(β + γ) − α", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=4)),
            y=alt.Y("accuracy:Q", title="test, %", scale=alt.Scale(zero=False)),
        )
    )
    faceted = points.facet(
        column=alt.Column("labels:N", title=None, sort=list(CONFIGURATIONS)),
        row=alt.Row("setting:N", title=None, sort=[setting.title for setting in SETTINGS.values()]),
    )
    return faceted.resolve_scale(x="independent", y="independent")


def text(records: dict[str, Records], template: str) -> str:
    """The page: in the template, a line {{table}} or {{table setting}} stands for a table."""
    return re.sub(r"\{\{(\w+) ?(\w*)\}\}\n", lambda place: "\n".join([*_block(records, *place.groups()), ""]), template)


def _block(records: dict[str, Records], name: str, setting: str) -> list[str]:
    if setting:
        return BLOCKS[name](SETTINGS[setting], records[f"digits-{setting}"])
    if name == "verdicts":
        return verdicts(records)
    if name == "unseen":
        return tables.unseen_domains(records["photos"])
    whole = {"missing": tables.missing, "cost": tables.cost, "budget": tables.budget}
    return whole[name](records)


def verdicts(records: dict[str, Records]) -> list[str]:
    """One row per claim and network."""
    rows = []
    for name, setting in SETTINGS.items():
        own = records[f"digits-{name}"]
        rows += [row(setting, own) for row in (level_row, correlation_row, bound_row)]
        rows += [claim.row() for claim in (*claims(setting, own), discrepancy_claim(setting, own))]
    rows += [claim.row() for claim in photo_claims(records["photos"])]
    header = ["claim (a gain: in points)", "data and network", "paper", "ours", "95 % interval", "verdict"]
    known = [row for row in rows if row[-1] != "missing"]
    others = dict.fromkeys(row[0] for row in rows if row[-1] == "missing")
    lines = tables.table(header, sorted(known, key=lambda row: [other[0] for other in rows].index(row[0])))
    return [*lines, f"Not finished, for one network or both: {'; '.join(others)}.", ""] if others else lines


BLOCKS: dict[str, Callable[[Setting, Records], list[str]]] = {
    "comparison": tables.comparison,
    "choices": tables.choices,
    "correlations": tables.correlations,
    "gaps": tables.gaps,
    "bounds": tables.bounds,
    "discrepancies": tables.discrepancies,
    "nu": partial(tables.ablation, name="nu", symbol="ν"),
    "weight": partial(tables.ablation, name="weight", symbol="ω"),
    "temperature": partial(tables.ablation, name="temperature", symbol="temperature"),
    "second_stages": tables.second_stages,
}


def main(words: Sequence[str] | None = None) -> None:
    """Write the page and draw its charts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=Path, default=FOLDER)
    parser.add_argument("--template", type=Path, default=TEMPLATE)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--images", type=Path, default=IMAGES, help="folder of the charts")
    given = parser.parse_args(words)
    records, images = read(given.records), given.images
    given.page.write_text(text(records, given.template.read_text(encoding="utf-8")), encoding="utf-8")
    models = separations(records)
    if len(models):
        separation_chart(models).save(str(images / "claims-separation.png"), scale_factor=2.0)
    for name, setting in SETTINGS.items():
        table = curves(setting, records[f"digits-{name}"])
        if len(table):
            curve_chart(table).save(str(images / f"claims-curves-{name}.png"), scale_factor=2.0)


if __name__ == "__main__":
    main()
