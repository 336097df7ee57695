"""The page of a finished run, or of the folds that leave each domain out in turn."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from crosstail.data import shot_thresholds
from crosstail.report.page import Page
from crosstail.report.run.charts import NUMBERED, accuracy_chart, loss_chart, pair_chart
from crosstail.report.run.command import command
from crosstail.report.run.confusions import show_confusions
from crosstail.report.run.model_card import (
    FIGURES,
    LIMITS,
    VERSIONS,
    Part,
    card_parts,
    figures_part,
    hyperparameters,
    title_of,
    write_card,
)
from crosstail.report.run.tables import (
    Record,
    accuracy_curve,
    fold_table,
    loss_curve,
    pair_table,
    worst_table,
)
from crosstail.report.run.trace import trace_figures
from crosstail.report.tables import Result
from crosstail.training import RunSpec
from crosstail.training.folder import RunFolder

DRAWN = 5000  # pairs up to which there is a heat map
DISTANCES = {
    "α": "of the same class in two domains (small is good)",
    "β": "of two classes in one domain (large is good)",
    "γ": "of two classes in two domains (large is good)",
}


def write_page(out: Path, folders: Sequence[Path]) -> None:
    """Make OUT/report.html from the folder of a finished run and its OUT/model_card.md, or a page of all folds."""
    results = [RunFolder(folder).read_json("result.json") for folder in folders]
    first, folds = results[0], len(results) > 1
    spec = RunSpec.from_json(first["spec"])
    page = Page(title_of(spec, folds))
    parts = {} if folds else {part.title: part for part in card_parts(folders[0])}
    _headline(page, figures_part(results) if folds else parts[FIGURES])
    if folds:
        _folds(page, results)
    _pairs(page, results)
    if not folds:
        show_confusions(page, folders[0], first)
        records = RunFolder(folders[0]).records()
        _training(page, first, records)
        _transferability(page, first, records)
    _data(page, results)
    if not folds:
        _card(page, parts)
        write_card(out / "model_card.md", page.title, parts.values())
    page.heading("How to repeat it")
    page.code(command(replace(spec, unseen=None) if folds else spec, out))
    page.text(hyperparameters(first), dim=True)
    RunFolder(out).write("report.html", page.html().encode())


def _headline(page: Page, figures: Part) -> None:
    if not figures.table or not figures.table.rows:
        page.text("There are no test samples, so nothing is known of its accuracy.")
        return
    page.text(" ".join([f"{figures.title}.", *figures.sentences]))
    page.table(figures.table.header, figures.table.rows, words_last=True)
    page.text(
        "The interval of a worst figure allows for its being the lowest of several, so it is a wide one.", dim=True
    )


def _folds(page: Page, results: Sequence[Result]) -> None:
    page.heading("Each domain as one that was never seen")
    page.text(
        "A row is a run of its own: trained on the other domains, selected on their validation samples, tested on all "
        "samples of this one. Its folder has a page of its own, with the learning curves."
    )
    rows = [
        [row["unseen"], _number(row["accuracy"]), _interval(row)]
        + [_number(row[name]) for name in ("pair average", "validation")]
        + [_number(row[symbol], 2) for symbol in DISTANCES]
        for row in fold_table(results).to_dict("records")
    ]
    header = ["unseen domain", "accuracy", "95 % interval", "pair average", "validation", *DISTANCES]
    page.table(header, rows, best={(len(results), column) for column in range(len(header))})
    page.text("Mean distances between pairs, " + "; ".join(f"{k}: {v}" for k, v in DISTANCES.items()) + ".", dim=True)


def _pairs(page: Page, results: Sequence[Result]) -> None:
    pairs = pair_table(results)
    counted = "training samples" + (" of the class" if results[0]["spec"]["unseen"] is not None else "")
    _, few = shot_thresholds(results[0]["spec"]["dataset"])
    page.heading("Every pair of domain and class")
    if len(pairs) <= DRAWN:
        many = max(pairs["domain"].nunique(), pairs["class"].nunique()) > NUMBERED
        page.text(
            f"The darker a cell, the more it gets wrong. A triangle marks 1 to {few} {counted}, a cross none; a grey "
            "cell has no test samples. Point at a cell for its counts."
            + (" Rows go from the worst to the best, panel by panel." if many else "")
        )
        page.chart(pair_chart(pairs, counted), "Heat map: test accuracy per domain and class")
    else:
        page.text(f"There are {len(pairs):,}, too many for a heat map; result.json has the hits and totals of all.")
    worst = worst_table(pairs)
    if worst.empty:
        return
    page.heading("The worst pairs")
    page.table(
        ["pair", "accuracy", "95 % interval", "right", "tested", counted, "shot"],
        [
            [f"{row['domain']} / {row['class']}", _number(row["accuracy"]), _interval(row)]
            + [f"{row[name]:,}" for name in ("hits", "tested", "count")]
            + [row["shot"]]
            for row in worst.to_dict("records")
        ],
    )
    median = float(pairs["tested"][pairs["tested"] > 0].median())
    page.text(
        f"Wilson's intervals. The median pair has {median:g} test samples, so one answer more or less is "
        f"{100 / median:.1f} points.",
        dim=True,
    )


def _training(page: Page, result: Result, records: Sequence[Record]) -> None:
    if not records:  # somebody may have removed them
        return
    spec = result["spec"]
    page.heading("How it got there")
    page.text(
        f"{spec['steps']:,} steps with {spec['batch_size']} samples per domain, seed {spec['seed']}, in "
        f"{result['seconds']:.0f} s. The evaluation with the best validation figure is reported (ring)."
        + (" Stage two trains a new classifier on the features of stage one." if records[-1]["stage"] == 2 else "")
    )
    page.chart(
        accuracy_chart(accuracy_curve(result, records), spec["steps"]),
        "Lines: pair average on validation and test over the training steps",
    )
    page.text("The terms of the loss, each the mean since the evaluation before.")
    page.chart(loss_chart(loss_curve(result, records), spec["steps"]), "Lines: loss terms over the training steps")


def _transferability(page: Page, result: Result, records: Sequence[Record]) -> None:
    page.heading("How the pairs lie to each other")
    page.text("Mean distance of training features to the mean feature of another pair; `crosstail graph` draws them.")
    values = result["transferability"].values()
    rows = [[s, _number(v, 2), what] for (s, what), v in zip(DISTANCES.items(), values, strict=True)]
    page.table(["", "distance", ""], rows, words_last=True)
    for figure in trace_figures(result, records):
        figure.show(page)


def _data(page: Page, results: Sequence[Result]) -> None:
    first = results[0]
    about = f"{first['spec']['dataset']}: {first['data']['samples']:,} samples"
    if len(results) == 1:
        tested = [f"{int(np.sum(first[split]['totals'])):,} for {split}" for split in ("validation", "test")]
        about += f", {int(np.sum(first['counts'])):,} of them for training, {tested[0]}, {tested[1]}"
    page.heading("The data")
    page.text(f"{about}; {len(first['domains']):,} domains, {len(first['classes']):,} classes.")
    for note in first["data"]["notes"]:
        page.text(f"Note: {note}")


def _card(page: Page, parts: Mapping[str, Part]) -> None:
    """What the model card says that the page has not said yet."""
    for part in (parts[LIMITS], parts[VERSIONS]):
        page.heading(part.title)
        for sentence in part.sentences:
            page.text(sentence)
    page.text("The file model_card.md has this and the rest to go with the model.", dim=True)


def _number(value: float | None, digits: int = 1) -> str:
    return "–" if value is None or np.isnan(value) else f"{value:.{digits}f}"


def _interval(row: Mapping[Hashable, Any]) -> str:
    return "" if np.isnan(row["low"]) else f"{_number(row['low'])} to {_number(row['high'])}"
