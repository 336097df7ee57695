"""The demo's page: the report of its runs, and what only the demo has to tell."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from crosstail import data
from crosstail.report.compare.feature_charts import see
from crosstail.report.compare.page import add_results
from crosstail.report.compare.read_runs import Runs
from crosstail.report.compare.tables import summary_table
from crosstail.report.page import Page


def write_page(path: Path, runs: Runs, graphs: Sequence[Path]) -> None:
    """What the runs of the demo found; `graphs` are those to draw the features of."""
    spec = runs.table["result"].iloc[0]["spec"]
    page = Page("BoDA beside ERM on digits of three domains")
    page.text(
        "Three domains, ten digits, thirty (domain, class) pairs. Each domain has its own long tail, so that a digit "
        "which is rare in one is common in another, and two pairs have no training sample at all. The test set is "
        "balanced. Every image was embedded once by EfficientNet-Lite0 (ImageNet weights, frozen); each method then "
        f"trains the same two-layer network on the vectors for {spec['steps']} steps."
    )
    page.text(verdict(summary_table(runs.chosen)))
    page.text(
        "One caution: the form of BoDA's automatic scale was chosen in earlier trials on these images with test "
        "figures in view, and ERM had no such trials, so BoDA's gain here is likely to be somewhat too good "
        "(docs/decisions/boda-scale.md)."
    )
    page.heading("The domains look different")
    page.text("Handwriting, handwriting over coloured textures, and printed type as on signs; one image per digit.")
    images = data.load(spec["dataset"], labels=["uniform"], seed=spec["data_seed"])
    for d, name in enumerate(images.domains):
        rows = [np.flatnonzero((images.domain == d) & (images.y == c))[0] for c in range(images.num_classes)]
        page.images(images.x[rows], name)
    add_results(page, runs, "erm", [see(run) for run in graphs])
    page.heading("How it was done")
    page.text(
        "Hyperparameters: for each method the best of 20 random trials on the validation set (the first is the "
        "defaults), the same budget for all; then a new run for each seed. The evaluation with the best validation "
        "figure is reported. The command `crosstail demo` repeats everything on this page."
    )
    page.save(path)


def verdict(summary: pd.DataFrame) -> str:
    """Decoupled BoDA against ERM and against ERM with the same second stage, in a sentence."""
    of_pairs = summary[(summary["kind"] == "figure") & (summary["figure"] == "pair average")].set_index("method")
    mean, std = of_pairs["mean"], of_pairs["std"]
    ours, crt = "boda, decoupled", "erm, decoupled"
    over_crt, spread = mean[ours] - mean[crt], max(std[ours], std[crt])
    if np.isnan(spread):
        sure = "one seed cannot tell whether that is more than chance"
    elif over_crt > 2 * spread:
        sure = f"more than twice the spread over the seeds (± {spread:.1f})"
    else:
        sure = f"with a spread over the seeds of ± {spread:.1f}, so BoDA does not beat CRT here"
    return (
        f"Over all pairs decoupled BoDA reaches {mean[ours]:.1f} %: {mean[ours] - mean['erm']:+.1f} points against "
        f"ERM. Against ERM with the same second stage, which is the method CRT, it is {over_crt:+.1f} points, {sure}."
    )
