"""Are flipped labels found on real data? docs/results/label-errors.md.

Flips one in twenty labels of each set, cross-validates the default on the result, and counts how many of the flipped
samples are among the first that `crosstail audit --run` lists. Takes three minutes on one core once the images are
embedded:

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
from crosstail.prediction.label_errors import label_errors
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.resolve import resolve
from crosstail.training.run_data import load_inputs

PAGE = Path(__file__).parents[1] / "docs/results/label-errors.md"
FLIPPED, FOLDS = 0.05, 5
LESIONS = {"domain": "source", "label": "diagnosis", "group": "lesion_id"}


def sets(data: Path) -> Iterator[tuple[str, DomainDataset]]:
    """Real sets as vectors: frozen features of photos, and sentence embeddings."""
    frozen = {"backbone": "efficientnet_lite0", "freeze": True}
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


def listed(dataset: DomainDataset, out: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """The rows that are probably labelled wrongly by models that were not trained on them, and their likely classes.

    From probabilities for equally frequent pairs, and from those at the prevalence of every site, as reports use them.
    """
    file = out / "data.npz"
    out.mkdir(parents=True, exist_ok=True)
    save_arrays(replace(dataset, split=np.full(len(dataset), "train", "<U5")), file)
    rows, balanced, own, y = [], [], [], []
    for fold in range(1, FOLDS + 1):
        run = train_run(RunSpec(dataset=str(file), folds=FOLDS, fold=fold), out / f"fold-{fold}")
        assert run.held_out is not None
        test, given = run.held_out.test, run.held_out.calibration()
        shares = training_shares(np.array(run.result.counts))[test.domain]
        balanced.append(given.probabilities(test.log_p, -1, ()))
        own.append(with_prior(given.prevalence(test.told.log_p), shares))
        rows.append(test.row)
        y.append(test.y)
    for kind, said in (("balanced", balanced), ("of the site", own)):
        found = label_errors(np.concatenate(said), np.concatenate(y))
        yield kind, np.concatenate(rows)[found["row"]], found["seems"].to_numpy()


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
        for to in ("any class", "a frequent class"):
            changed, wrong = flipped(dataset, to)
            for kind, rows, seems in listed(changed, given.out / name / to):
                hit, k = np.isin(rows, wrong), len(wrong)
                right = seems[hit] == dataset.y[rows[hit]]
                counts = [(hit[: k // 4].sum(), k // 4), (hit[:k].sum(), k), (hit.sum(), k), (right.sum(), len(right))]
                cells = [f"{100 * n / of:.0f} ({share(n, of)})" for n, of in counts]
                lines.append(
                    f"| {name} | {k:,} of {len(dataset):,} | {to} | {kind} | {len(rows):,} | {' | '.join(cells)} |"
                )
                print(lines[-1], flush=True)
    text = TEXT.format(rows="\n".join(lines), folds=FOLDS, share=100 * FLIPPED)
    PAGE.write_text(text, encoding="utf-8")


TEXT = """# Are flipped labels found?

Of each set, {share:.0f} % of the labels are changed to another class: any with equal probability, or a frequent one,
in proportion to its samples in the domain. The default is then cross-validated in {folds} folds, so that every sample
is judged by a model that was not trained on it: what `crosstail audit --run CV/refit` lists after `crosstail fit
--folds {folds} --refit`. With k labels flipped, the table has the length of the list, the share of flipped samples
among its first k/4 and its first k, the share of flipped samples that are listed, and how many of these are assigned
to their true class. In %, with 95 % intervals.

Pages and audits use the probabilities *of the site*, with the site's class frequencies (`predict --prior train`).
*Balanced* ones, for equally frequent pairs, take frequent classes for rare ones, and suspect right labels. Written by
`python -m studies.label_errors`.

| set | flipped (k) | to | probabilities | listed | in first k/4 | in first k | found at all | true class named |
|---|---|---|---|---|---|---|---|---|
{rows}

The sets have label errors of their own, which count as false alarms here, so the shares are lower bounds.
Probabilities of the site help most on ham10000, where one class has most of the samples; on crisis, where sites are
less uneven, errors that go to frequent classes are found equally well with both.

The flips are one random draw, and the method was chosen with these sets in view, so the rows *of the site* may
flatter it.
"""


if __name__ == "__main__":
    main()
