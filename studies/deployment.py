"""Are critical classes found as often as asked for, and are answers that need no look as often right as the page says?

The test samples of real sets are divided at random into two halves of whole groups: thresholds and the figures of the
page come from one, the other is counted. Writes docs/results/deployment.md:

    python -m studies.deployment --data ../shared/data --out runs/coverage
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from studies.coverage import runs
from studies.paper_claims.page import table
from studies.result_options import result_options

from crosstail.metrics import Answers
from crosstail.prediction.critical import SITE, Alarms
from crosstail.prediction.cross_fit import covered
from crosstail.prediction.sets import PredictionSets
from crosstail.reports.run.tested import share_of
from crosstail.training.run import Run
from crosstail.workflows.export import needs

PAGE = Path(__file__).parents[1] / "docs/results/deployment.md"
SPLITS = 200
CRITICAL = {"ham10000 by lesion": ("mel", "bcc"), "crisis": (), "digits": ()}  # () is the rarest class
RECALLS, COVERAGES = (0.8, 0.9, 0.95), (0.8, 0.9, 0.95)


def halves(test: Answers) -> Iterator[np.ndarray]:
    """The samples of the first half, with whole groups."""
    group = np.arange(len(test)) if test.group is None else np.unique(test.group, return_inverse=True)[1]
    rng = np.random.default_rng(0)
    for _ in range(SPLITS):
        yield (rng.random(group.max() + 1) < 0.5)[group]


def said(run: Run, test: Answers) -> np.ndarray:
    """Calibrated probabilities (N, C), with the site known."""
    assert run.calibration is not None and test.told.log_p is not None
    return run.calibration.probabilities(test.told.log_p, test.domain, test.domains)


def recalls(run: Run, name: str, recall: float) -> list[str]:
    """At sites that promise the recall: how often new groups are found, the bound, and what it costs."""
    assert run.held_out is not None
    test, c = run.held_out.test, run.result.classes.index(name)
    p, counts = said(run, test), np.array(run.result.counts, float)
    own, found, below, flagged, alarms = p[np.arange(len(p)), test.y], [], [], [], []
    for half in halves(test):
        group = None if test.group is None else test.group[half]
        given = Alarms.calibrated(own[half], test.y[half], test.domain[half], group, {c: recall}, len(test.domains))
        other = test.keep(~half)
        raised = given.raised(p[~half], other.domain)[:, 0]
        for d in np.flatnonzero(given.source[:-1, 0] == SITE):
            mine = (other.domain == d) & (other.y == c)
            if mine.any():
                _, one, size = np.unique(
                    np.arange(mine.sum()) if other.group is None else other.group[mine],
                    return_inverse=True,
                    return_counts=True,
                )
                hit = float(np.mean(np.bincount(one, raised[mine]) / size))  # groups count equally
                found.append((d, hit))
                below.append(hit < given.sure[d, 0])
                every = share_of(other, raised).weighted(counts)
                flagged.append(every.domains[d])
                right = share_of(other, other.y == c, raised).weighted(counts * np.nan_to_num(every.matrix))
                alarms.append(right.domains[d])
    if not found:
        return [name, f"{recall:g}", "0", "–", "–", "–", "–", "–"]
    by_site = [np.array([hit for at, hit in found if at == d]) for d in sorted({d for d, _ in found})]
    means = [values.mean() for values in by_site]
    false = np.mean([1 - value for value in alarms if value is not None])
    return [
        name,
        f"{recall:g}",
        str(len(by_site)),
        f"{100 * np.mean(means):.1f}",
        f"{100 * min(means):.1f} to {100 * max(means):.1f}",
        f"{100 * np.mean(below):.0f}",
        f"{100 * np.mean(np.array(flagged, float)):.1f}",
        f"{100 * false:.1f}",
    ]


def no_look(run: Run, coverage: float) -> list[str]:
    """What the page says of one half, and what is true of the other with thresholds from the first."""
    assert run.held_out is not None and run.calibration is not None
    test = run.held_out.test
    p, sizes = said(run, test), {"num_sites": len(test.domains), "num_classes": len(test.classes)}
    own, rows, overlap = p[np.arange(len(p)), test.y], [], []
    for half in list(halves(test))[: SPLITS // 5]:
        here, other = test.keep(half), test.keep(~half)
        sets = PredictionSets.calibrated(own[half], test.y[half], test.domain[half], **sizes, coverage=coverage)
        members = sets.members(p[~half], other.domain)
        page = covered(here, run.calibration, coverage)
        parts = []
        for of, sure, right in (
            (here, ~page["review"].to_numpy(), page["inside"].to_numpy()),
            (other, members.sum(1) == 1, members[np.arange(len(other)), other.y]),
        ):
            alone = share_of(of, sure).weighted(np.ones(of.counts.shape))
            parts.append((alone, share_of(of, right, sure).weighted(np.nan_to_num(alone.matrix))))
        rows.append([part.pair_average or np.nan for both in parts for part in both])
        ends = [both[1].interval() or (0.0, 1.0) for both in parts]
        overlap.append(ends[0][0] <= ends[1][1] and ends[1][0] <= ends[0][1])
    mean = 100 * np.nanmean(rows, 0)
    return [f"{coverage:g}", *(f"{mean[i]:.1f}" for i in (0, 2, 1, 3)), f"{100 * np.mean(overlap):.0f}"]


def page(found: dict[str, Run]) -> Iterator[str]:
    """The page."""
    yield "# From a model to daily use"
    yield ""
    yield "What a run's page and `predict` say about [a decision at a site](../howto/deploy.md), on real sets:"
    yield f"the default on fixed features. Test samples are divided {SPLITS} times at random into two halves of"
    yield "whole groups: thresholds come from one, the other is counted. Written by `python -m"
    yield "studies.deployment`."
    yield ""
    yield "## Critical classes"
    yield ""
    yield "At the sites that have enough samples for `--critical CLASS=RECALL`: recall on the other half, in %"
    yield "(mean over sites, and the lowest and highest site; groups count equally), how often it is below the"
    yield "bound of which the page is 95 % sure (the other half is a small sample as well, so this may exceed 5"
    yield "%), and the price in % of all inputs."
    yield ""
    rows = []
    for name, run in found.items():
        counts = np.array(run.result.counts).sum(0)
        for label in CRITICAL[name] or (run.result.classes[int(counts.argmin())],):
            rows += [[name, *recalls(run, label, recall)] for recall in RECALLS]
    header = ["set", "class", "asked for", "sites", "recall", "lowest to highest site", "below the bound"]
    yield from table([*header, "flagged", "false alarms"], rows)
    yield "## What needs no look"
    yield ""
    yield f"Every pair equal, {SPLITS // 5} divisions. Said: by the page of one half. True: of the other, with"
    yield "its thresholds. Agree: how often the two 95 % intervals of what is right overlap."
    yield ""
    rows = [[name, *no_look(run, coverage)] for name, run in found.items() for coverage in COVERAGES]
    header = ["set", "`--coverage`", "no look, %: said", "true", "right of these, %: said", "true", "agree, %"]
    yield from table(header, rows)
    yield "## Files for other programs"
    yield ""
    yield "`crosstail export RUN` for the model of HAM10000, 224 by 224 pixels, on two cores that other programs"
    yield "used as well: compare the rows, not the figures with those of another machine."
    yield ""
    rows = [
        [name, f"{need.per_second:.0f}", f"{need.memory or np.nan:.0f}", f"{need.size:.1f}"]
        for name, need in needs(found["ham10000 by lesion"].path).items()
    ]
    yield from table(["`--format`", "photos per second", "memory, MiB", "size, MB"], rows)


def main() -> None:
    """Fit, measure, and write the page."""
    given = result_options(__doc__, "runs/coverage").parse_args()
    torch.set_num_threads(1)
    found = {name: Run(run.path) for name, run in runs(given.data, given.out)}
    PAGE.write_text("\n".join(page(found)), encoding="utf-8")


if __name__ == "__main__":
    main()
