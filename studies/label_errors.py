"""Are flipped labels found on real data, and is their share in the list as expected? docs/results/label-errors.md.

Flips one in twenty labels of each set, or none, cross-validates the default on the result, and counts how many of the
samples that `crosstail audit --run` lists were flipped. Takes five minutes on one core once the images are embedded:

    python -m studies.label_errors --data ../shared/data --out runs/label_errors
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from studies.result_options import result_options

from crosstail.data import DomainDataset, save_arrays
from crosstail.metrics import wilson
from crosstail.metrics._link import training_shares, with_prior
from crosstail.prediction.label_errors import label_errors, worth_a_look
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.resolve import resolve
from crosstail.training.run_data import load_inputs

PAGE = Path(__file__).parents[1] / "docs/results/label-errors.md"
FLIPPED, FOLDS = 0.05, 5
LESIONS = {"domain": "source", "label": "diagnosis", "group": "lesion_id"}


def sets(data: Path) -> Iterator[tuple[str, DomainDataset]]:
    """Real sets as vectors: frozen features of photos, and sentence embeddings."""
    frozen = {"backbone": "efficientnet_lite0", "tune": "none"}
    for name, spec in (
        ("Office-Caltech10", RunSpec(dataset=str(data / "office-caltech10"), **frozen)),
        ("ham10000 by lesion", RunSpec(dataset=str(data / "ham10000/manifest.csv"), columns=LESIONS, **frozen)),
        ("crisis", RunSpec(dataset=str(data / "crisis.npz"))),
    ):
        yield name, load_inputs(resolve(spec)).embedded()


def flipped(dataset: DomainDataset, to: str) -> tuple[DomainDataset, np.ndarray]:
    """The set with some labels changed `to` another class, and which samples they are."""
    rng = np.random.default_rng(0)
    rows = rng.choice(len(dataset), round(FLIPPED * len(dataset)), replace=False)
    y, counts = dataset.y.copy(), np.ones((dataset.num_domains, dataset.num_classes))
    if to == "a frequent class":
        np.add.at(counts, (dataset.domain, dataset.y), 1)
    for row in rows:
        others = counts[dataset.domain[row]] * (np.arange(dataset.num_classes) != y[row])
        y[row] = rng.choice(dataset.num_classes, p=others / others.sum())
    return replace(dataset, y=y), rows


def judged(dataset: DomainDataset, out: Path) -> dict[str, np.ndarray]:
    """Rows, labels, and probabilities from models that were not trained on them, at the prevalence of every site."""
    file = out / "data.npz"
    out.mkdir(parents=True, exist_ok=True)
    save_arrays(replace(dataset, split=np.full(len(dataset), "train", "<U5")), file)
    parts = []
    for fold in range(1, FOLDS + 1):
        run = train_run(RunSpec(dataset=str(file), folds=FOLDS, fold=fold), out / f"fold-{fold}")
        assert run.held_out is not None
        test, given = run.held_out.test, run.held_out.calibration()
        shares = training_shares(np.array(run.result.counts))[test.domain]
        p = with_prior(given.prevalence(test.told.log_p), shares)
        parts.append({"row": test.row, "y": test.y, "p": p, "shares": shares})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def line(name: str, to: str, said: dict[str, np.ndarray], wrong: np.ndarray, y: np.ndarray) -> str:
    """A row of the table: what is suspected, what is listed, and how much of either was flipped."""
    every, found = label_errors(said["p"], said["y"]), worth_a_look(said["p"], said["y"], said["shares"])
    hit, kept = (np.isin(said["row"][table["row"]], wrong) for table in (every, found))
    right = every["seems"][hit] == y[said["row"][every["row"]][hit]]
    expected = f"{100 * found['precision'].iloc[-1]:.0f}" if len(found) else ""
    counts = [(kept.sum(), len(found)), (hit.sum(), len(wrong)), (right.sum(), len(right))]
    cells = [f"{100 * n / of:.0f} ({share(n, of)})" if of and len(wrong) else "" for n, of in counts]
    cells = [f"{len(wrong):,} of {len(y):,}", to, f"{len(every):,}", f"{len(found):,}", expected, *cells]
    return f"| {name} | {' | '.join(cells)} |"


def share(n: int, of: int) -> str:
    """The 95 % interval of a share in %."""
    low, high = wilson(np.array(n), np.array(of))
    return f"{100 * float(low):.0f} to {100 * float(high):.0f}"


def main() -> None:
    """Flip, fit, count and write the page."""
    given = result_options(__doc__, "runs/label_errors").parse_args()
    torch.set_num_threads(1)
    lines = []
    for name, dataset in sets(given.data):
        for to in ("", "any class", "a frequent class"):
            changed, wrong = flipped(dataset, to) if to else (dataset, np.zeros(0, np.int64))
            lines.append(line(name, to, judged(changed, given.out / name / (to or "none")), wrong, dataset.y))
            print(lines[-1], flush=True)
    PAGE.write_text(page(lines), encoding="utf-8")


def page(lines: list[str]) -> str:
    """The page with these rows of the table."""
    return TEXT.format(rows="\n".join(lines), folds=FOLDS, share=100 * FLIPPED)


TEXT = """# Are flipped labels found?

Of each set, {share:.0f} % of the labels are changed to another class: none, any with equal probability, or a frequent
one, in proportion to its samples in the domain. The default is then cross-validated in {folds} folds, so that every
sample is judged by a model that was not trained on it: what `crosstail audit --run CV/refit` lists after `crosstail fit
--folds {folds} --refit`. The table has the number of samples that confident learning suspects, the length of the list,
the share of it that is expected to be labelled wrongly and the share that was flipped; then the share of flipped
samples among the suspected ones, and how many of these are assigned to their true class. In %, with 95 % intervals.
Written by `python -m studies.label_errors`.

| set | flipped | to | suspected | listed | expected | flipped | found at all | true class named |
|---|---|---|---|---|---|---|---|---|
{rows}

The list ends where one in two is expected to be labelled wrongly. The expectation follows from where the model would
rank each held-out sample under each wrong label, in proportion to the classes of its domain: errors that it ranks so
high can only be as many as there are samples. Without flips, the sets' own errors, and mistakes of the model that look
like errors, remain; flipped samples are counted, so the true shares are higher. Labels that are wrong where classes are
alike rank lower, and the list misses them.

The flips are one random draw, and the method was chosen with these sets in view.
"""


if __name__ == "__main__":
    main()
