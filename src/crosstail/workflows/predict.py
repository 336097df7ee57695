"""Classes for unlabelled files."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.data import kind_of
from crosstail.data.images.files import ImageFiles
from crosstail.prediction import scoring
from crosstail.prediction.answers import CSV, JSON, AnswerFile, Parts, blocks_of, mark_of, shown_classes
from crosstail.prediction.decision import Decision, decide
from crosstail.prediction.familiar import Familiar, said_of
from crosstail.prediction.predictor import Predictor, find_inputs
from crosstail.prediction.scoring import NamedInputs, Scores, in_process, on_ray, predict_inputs
from crosstail.prediction.sets import require_coverage
from crosstail.prediction.sites import sites_of
from crosstail.progress import Progress, silent
from crosstail.reports.review import UNLIKE, Review
from crosstail.reports.wording import several


@dataclass(frozen=True, eq=False)
class Predicted:
    """The answers for all inputs that can be read."""

    predictor: Predictor
    number: int
    table: pd.DataFrame | None
    """Without `out`: input, class, with a site the site, with a coverage the set and whether to review it."""
    probabilities: NDArray[np.float32] | None
    """Without `out`: of every class (N, C), in the order of `predictor.classes`."""
    skipped: Sequence[str]
    """The inputs that cannot be read, and why."""
    site_notes: Sequence[str]
    decision: Decision | None
    """With its notes and, for the prior `estimate`, the shares; None if no input was left to predict."""
    page: Path | None = None
    """To look at the photos."""
    drift: Sequence[str] = ()
    """A line for each site with enough inputs: how they differ from training, and what to do."""


class NothingPredicted(ValueError):
    """No input can be read."""

    def __init__(self, text: str, skipped: Sequence[str], notes: Sequence[str]) -> None:
        super().__init__(text)
        self.skipped, self.notes = skipped, notes


def predict(
    run: Path,
    files: Sequence[Path],
    *,
    site: str | None = None,
    prior: str | None = None,
    coverage: float | None = None,
    per: Literal["all", "site", "class", "pair"] = "pair",
    top: int | None = None,
    out: Path | TextIO | None = None,
    weights: Path | None = None,
    skip_broken: bool = False,
    trust: bool = False,
    launcher: Literal["inline", "ray"] = "inline",
    workers: int | None = None,
    as_json: bool = False,
    page: bool = False,
    progress: Progress = silent,
) -> Predicted:
    """Predict the class of images or vectors, with a calibrated probability for each class.

    Args:
        run: Folder of a finished run.
        files: Images, folders of images, one .csv with a column `path`, or one .npy or .npz file of inputs.
        site: The site that the inputs are from: a domain of the run; `folder`, if the path of each file contains its
            site; or `column:NAME` of the .csv. Without it, the site is unknown.
        prior: How frequent the classes are: `uniform`; `train` (as frequent as in training at the site); a .csv file
            with the columns `class` and `share`; or `estimate` (from these inputs). Default: the model's own answer,
            for which all pairs are equally frequent.
        coverage: For each input, add a set of classes that contains the true one with this probability, such as 0.9,
            and mark the input for review unless the set contains exactly one class.
        per: Groups for which the coverage holds separately.
        top: Write only this many of the most probable classes, with their probabilities; default: all classes, or 5 if
            there are more than 1,000.
        out: A .csv or .json file or an open stream to write to; with a file, an interrupted call resumes. Default: the
            answers are in memory.
        weights: Weights of the frozen backbone, if the file has moved.
        skip_broken: Skip images that cannot be read.
        trust: Run the Python files that are stored with the run.
        launcher: inline: in this process; ray: on the cluster at $RAY_ADDRESS, or here.
        workers: Actors on Ray; default: one per GPU, or one per core.
        as_json: Write JSON, whatever `out` is.
        page: If `out` is a file and the inputs are photos, also write a page beside it, to look at them and to correct
            the answers; it saves labels as a manifest.
        progress: Called as the work advances.
    """
    if coverage is not None:
        require_coverage(coverage)
    predictor = Predictor(run, weights, trust)
    names, x, table, missing = find_inputs(files, predictor, skip_missing=skip_broken)
    where = sites_of(predictor, names, site, table)
    review = None
    if page and isinstance(out, Path) and isinstance(x, ImageFiles):
        asked = coverage is not None or any(predictor.run.result.critical.values())
        review = Review(x, names, predictor.classes, where.names, asked)
        x = x if launcher == "ray" else review.watched
    named, classes = NamedInputs(names, x, where.domain, skip_broken), np.array(predictor.classes, object)
    shown, blocks = shown_classes(len(classes), top), blocks_of(len(names), len(classes), scoring.BATCH)
    if prior == "estimate" and len(blocks) > 1:
        size = f"{len(names):,} inputs × {len(classes):,} classes are too many probabilities"
        raise ValueError(f"--prior estimate: {size}. Give at most {blocks[0].stop:,} inputs at a time")
    form = JSON if as_json or (isinstance(out, Path) and out.suffix == ".json") else CSV
    mark = ""
    if isinstance(out, Path):
        sources = files if kind_of(x).names is None else [Path(name) for name in names]
        mark = mark_of(predictor.run.path / "result.json", sources, where.domain)
    answers = AnswerFile(out, mark, how=repr((form.end, shown, prior, coverage, per, site)))
    found: Decision | None = None
    familiar = Familiar.of(predictor)
    tables: list[pd.DataFrame] = []
    kept_probabilities: list[NDArray[np.float32]] = []

    def parts(rows: NDArray[np.int64], scores: Scores) -> Parts:
        assert found is not None
        for one in found.chunks(scores.log_p, where.domain[rows]):
            some, probabilities, members, alarms = one
            columns = {"input": [names[row] for row in rows[some]]}
            columns |= {} if site is None else {"site": [where.names[row] for row in rows[some]]}
            table = pd.DataFrame({**columns, "class": classes[probabilities.argmax(1)]})
            if members is not None:
                table["set"] = [classes[row].tolist() for row in members]
            if found.alarms is not None and alarms is not None:
                table["alarm"] = [classes[np.sort(found.alarms.classes[row])].tolist() for row in alarms]
            if one.review is not None:
                table["review"] = one.review
            if familiar is not None:
                sites, far = where.domain[rows[some]], scores.distance[some]
                table["unlike_training"] = familiar.flags(sites, far, scores.log_p[some])
            if review is not None:
                review.add(rows[some], probabilities, members, _flags(table))
            yield some.start == 0 and not answers.written, table, probabilities

    def texts(rows: NDArray[np.int64], scores: Scores) -> Iterable[str]:
        if out is not None:
            return form.texts(parts(rows, scores), predictor.classes, shown)
        for _, table, probabilities in parts(rows, scores):
            tables.append(table)
            kept_probabilities.append(probabilities)
        return ()

    def scored(block: slice) -> Scores:
        kept, some = answers.scores(block, len(classes)), named.part(block)
        if launcher == "ray":
            parts = on_ray(predictor, some, kept, workers, weights, trust)
        else:
            parts = in_process(predictor, some, kept)
        return predict_inputs(some, kept, parts, _counted(progress, block.start, len(names)))

    todo = [block for block in blocks if block.start not in answers.blocks]
    first = scored(todo[0]) if prior == "estimate" and todo else None  # of the only block
    if first is not None or prior != "estimate":
        log_p, sites = (first.log_p, where.domain[first.rows]) if first else (np.empty((0, 0)), where.domain)
        found = decide(predictor, log_p, sites, prior=prior, coverage=coverage, per=per) if len(sites) else None
    for block in todo:
        scores = first or scored(block)
        rows = block.start + scores.rows
        skipped = [f"{names[block.start + row]}: {problem}" for row, problem in scores.problems.items()]
        answers.add(block, len(rows), skipped, texts(rows, scores) if len(rows) else ())
    if not answers.written:
        answers.remove()
        text = f"{files[0]}: none of the {len(names):,} inputs can be read"
        raise NothingPredicted(text, [*missing, *answers.skipped], where.notes)
    number, unread = answers.written, [*missing, *answers.skipped]
    answers.finish(form.end)
    made = out.with_suffix(".html") if review is not None and review.parts and isinstance(out, Path) else None
    if review is not None and made is not None:
        review.save(made, f"{predictor.run.path.name}: answers for {several(number, 'photo')}")
    whole = pd.concat(tables, ignore_index=True) if out is None else None
    probable = np.concatenate(kept_probabilities) if out is None else None
    of_sites = [*predictor.run.result.domains, "unknown site"]
    drift = familiar.drift() if familiar else {}
    lines = [said_of(one, of_sites[d], predictor.classes, prior) for d, one in drift.items()]
    return Predicted(predictor, number, whole, probable, unread, where.notes, found, made, lines)


def _flags(table: pd.DataFrame) -> list[list[str]]:
    """Why to look at each input."""
    found = (table.get(name, [()] * len(table)) for name in ("unlike_training", "review", "alarm"))
    return [
        [UNLIKE] * bool(unlike) + ["needs a look"] * bool(look) + [f"may be {name}" for name in of]
        for unlike, look, of in zip(*found, strict=True)
    ]


def _counted(progress: Progress, start: int, total: int) -> Progress:
    """Progress in a block of the inputs as progress in all of them."""
    return lambda what, done, _: progress(what, start + done, total)
