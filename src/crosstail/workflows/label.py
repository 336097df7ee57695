"""What to label next."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from crosstail.data import examine, kind_of
from crosstail.data.images.files import ImageFiles
from crosstail.prediction.familiar import Familiar
from crosstail.prediction.gains import MORE, PairGain, pair_gains
from crosstail.prediction.predictor import Predictor, find_inputs
from crosstail.prediction.scoring import NamedInputs, Scorer
from crosstail.prediction.sites import sites_of
from crosstail.progress import Progress, silent
from crosstail.reports.review import UNLIKE, Review
from crosstail.storage import write_whole
from crosstail.training.used_samples import UsedSamples


@dataclass(frozen=True, eq=False)
class Labelling:
    """Inputs to label, and what more labels of each pair would bring."""

    table: pd.DataFrame
    """A row for each input: path, domain, predicted class, its probability, whether it is unlike training."""
    pairs: Sequence[PairGain]
    """The largest gain first; none if it cannot be told, which a note explains."""
    notes: Sequence[str]
    page: Path | None
    """To label the photos in a browser."""


def label(
    run: Path,
    pool: Path,
    *,
    budget: int = 100,
    site: str | None = None,
    out: Path | None = None,
    seed: int = 0,
    weights: Path | None = None,
    skip_broken: bool = False,
    trust: bool = False,
    progress: Progress = silent,
) -> Labelling:
    """Draw inputs to label, and estimate how much more labels of each (site, class) pair would improve its recall.

    Inputs are drawn at random: no way to choose them was better on all data sets that were tried.

    Args:
        run: Folder of a finished run.
        pool: A folder of images, a .csv with a column `path`, or an .npy or .npz file; the run's own are left out.
        budget: How many inputs to draw.
        site: The site that the inputs are from: a domain of the run, `folder` or `column:NAME`, as in predict.
        out: The .csv file to write; with photos, also a page beside it, to label them in a browser.
        seed: Another seed draws other inputs.
        weights: Weights of the frozen backbone, if the file has moved.
        skip_broken: Skip images that cannot be read.
        trust: Run the Python files that are stored with the run.
        progress: Called as the work advances.
    """
    if budget < 1:
        raise ValueError(f"--budget is {budget}, expected 1 or more")
    predictor = Predictor(run, weights, trust)
    names, x, table, missing = find_inputs([pool], predictor, skip_missing=skip_broken)
    where, used = sites_of(predictor, names, site, table), UsedSamples.load(predictor.run.folder)
    hashes = examine(x).hashes
    new = ~np.isin(hashes, np.concatenate([used.trained, used.held_out]))
    once = np.zeros(len(new), bool)
    once[np.unique(hashes, return_index=True)[1]] = True
    free = np.flatnonzero(new & once)
    notes = [*where.notes, *missing]
    if not new.all():
        notes.append(f"{int((~new).sum()):,} of {len(new):,} inputs are in the data of the run: they are left out")
    if not len(free):
        raise ValueError(f"{pool}: all {len(new):,} inputs are in the data of the run: nothing is left to label")
    if budget > len(free):
        notes.append(f"only {len(free):,} inputs are new")
    drawn = np.sort(np.random.default_rng(seed).permutation(free)[:budget])
    kept = kind_of(x).take(x, drawn)
    part = NamedInputs([names[row] for row in drawn], kept, where.domain[drawn], skip_broken)
    scores = Scorer(predictor, part)(np.arange(len(part)))
    notes += [f"{part.names[row]}: {problem}" for row, problem in scores.problems.items()]
    read, named = scores.rows, [where.names[row] for row in drawn]
    sites, paths = part.domain[read], [str(Path(part.names[row]).absolute()) for row in read]
    p = predictor.calibration.probabilities(scores.log_p, sites, predictor.run.result.domains)
    familiar, unlike = Familiar.of(predictor), np.zeros(len(p), bool)
    if familiar is not None:
        unlike = familiar.flags(sites, scores.distance, scores.log_p)
    said = np.array(predictor.classes, object)[p.argmax(1)]
    answers = {"predicted": said, "probability": p.max(1), "unlike_training": unlike}
    chosen = pd.DataFrame({"path": paths, "domain": [named[row] for row in read], **answers})
    page = None
    if out is not None:
        write_whole(out, chosen.to_csv(index=False, float_format="%.4f", lineterminator="\n").encode())
        if isinstance(kept, ImageFiles):
            page, review = out.with_suffix(".html"), Review(kept, part.names, predictor.classes, named)
            review.add(read, p, None, [[UNLIKE] * bool(flag) for flag in unlike])
            review.save(page, f"{len(chosen):,} photos to label")
    progress("judging pairs", 0, 1)
    pairs = pair_gains(predictor.run, predictor.algorithm)
    if not pairs:
        notes.append(
            f"what {MORE} more labels of a pair bring cannot be told without the data of the run and a test set"
        )
    return Labelling(chosen, pairs, notes, page)
