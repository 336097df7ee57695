"""Are unknown objects flagged, and is drift seen? docs/results/unknown.md.

Fits the second stage `blend` on frozen features and compares its distance with other scores of the same features.
Limits come from one half of the held-out samples, false alarms from the other, in 20 divisions of whole groups. Takes
five minutes of one core once the photos are embedded; finished pairs are not repeated, and without `--data` the page
is written from the records:

    python -m studies.unknown --data ../shared/data
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from studies.default_method import FROZEN, LESIONS
from studies.result_options import result_options
from studies.tuning.judged import given

from crosstail.data import DomainDataset
from crosstail.metrics._calibration import sample_weights
from crosstail.prediction.familiar import NOTABLE, RATE, superiority
from crosstail.second_stages import find
from crosstail.second_stages.pooled import NOWHERE
from crosstail.training import RunSpec
from crosstail.training.resolve import resolve
from crosstail.training.run_data import load_inputs

PAGE = Path(__file__).parents[1] / "docs/results/unknown.md"
RECORDS = Path(__file__).parent / "unknown.jsonl"
DIVISIONS, NEW = 20, 200  # divisions of the held-out samples; new inputs of a site that drift is looked for in
NEIGHBOUR = 10
SCORES = ("distance", "angle", "neighbours", "energy", "softmax")
Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Pair:
    """Training and held-out samples that are known, and others that are not."""

    name: str
    known: DomainDataset
    other: Floats  # features


def pairs(data: Path) -> Iterator[Pair]:
    """Photos of objects for a model of lesions, and each domain of a set in turn for a model of the others."""

    def features(dataset: str, frozen: bool = True, **about: Any) -> DomainDataset:
        spec = RunSpec(dataset=dataset, **(FROZEN if frozen else {}), **about)
        return load_inputs(resolve(spec)).embedded()

    lesions = features(str(data / "ham10000/manifest.csv"), columns=LESIONS)
    photos = features(str(data / "office-caltech10"))
    objects = np.asarray(photos.x)
    yield Pair("lesions / objects", lesions, objects)
    two = np.isin(np.array(lesions.classes)[lesions.y], ["mel", "nv"])
    one = two & (np.array(lesions.domains)[lesions.domain] == "rosendahl")
    yield Pair("lesions of 2 classes and 1 source / objects", lesions.keep(one), objects)
    digits, crisis = features("digits"), features(str(data / "crisis.npz"), frozen=False)
    sets = {"Office-Caltech10": photos, "lesions": lesions, "digits": digits, "crisis": crisis}
    for name, dataset in sets.items():
        for d, domain in enumerate(dataset.domains):
            other = dataset.domain == d
            yield Pair(f"{name} / its domain {domain}", dataset.keep(~other), np.asarray(dataset.x)[other])


def scored(known: DomainDataset, parts: list[Floats]) -> dict[str, list[Floats]]:
    """Every score of some features, the larger the less like the training samples."""
    x = np.asarray(known.x)
    train = given(known, "train", x)
    head: Any = find("blend").fit(train)
    points = torch.from_numpy(np.ascontiguousarray(train.z, np.float32))
    bank = F.normalize(head.projected(points), dim=1)
    found: dict[str, list[Floats]] = {name: [] for name in SCORES}
    for part in parts:
        z = torch.from_numpy(np.ascontiguousarray(part, np.float32))
        with torch.no_grad():
            projected = head.projected(z)
            distance = head.distance_to_training(z)
            white = F.normalize(projected @ head.whitening, dim=1)
            means = F.normalize(torch.linalg.solve(head.whitening, head.weight.flatten(0, 1).T), dim=0)
            angle = -(white @ means[:, head.size.flatten() < NOWHERE]).amax(1)
            energy = -F.linear(projected, head.softmax_weight, head.softmax_bias).logsumexp(1)
            softmax = -head(z).softmax(1).amax(1)
            near = -(F.normalize(projected, dim=1) @ bank.T).topk(NEIGHBOUR, 1).values[:, -1]
        for name, values in zip(SCORES, (distance, angle, near, energy, softmax), strict=True):
            found[name].append(values.numpy().astype(np.float64))
    return found


def measured(pair: Pair) -> dict[str, Any]:
    """Detections and false alarms in percent, and what drift is seen without and with the unknown inputs."""
    rows = np.flatnonzero(pair.known.split != "train")
    group = rows if pair.known.group is None else pair.known.group[rows]
    group = np.unique(group, return_inverse=True)[1]
    values = scored(pair.known, [np.asarray(pair.known.x)[rows], pair.other])
    record: dict[str, Any] = {"pair": pair.name, "held_out": len(rows), "other": len(pair.other)}
    for name, (own, other) in values.items():
        rng, detected, alarms = np.random.default_rng(0), [], []
        for _ in range(DIVISIONS):
            half = (rng.random(group.max() + 1) < 0.5)[group]
            ranked = np.sort(own[half])
            limit = ranked[int(np.ceil((len(ranked) + 1) * (1 - RATE) - 1e-9)) - 1]
            detected.append(100 * (other > limit).mean())
            alarms.append(100 * (own[~half] > limit).mean())
        record[name] = [round(float(np.mean(of)), 2) for of in (detected, alarms)]
        record[name].append(round(float(np.std(detected)), 2))
    return record | drift(pair, rows, group, *values["distance"])


def drift(pair: Pair, rows: NDArray[np.int64], group: NDArray[np.int64], own: Floats, other: Floats) -> dict[str, Any]:
    """Percentages of divisions in which drift is reported, among ordinary inputs of a site and among unknown ones."""
    rng, y, domain = np.random.default_rng(1), pair.known.y[rows], pair.known.domain[rows]
    seen: dict[str, list[tuple[float, float, float]]] = {"ordinary": [], "unknown": []}
    for d in np.unique(domain):
        mine = np.flatnonzero(domain == d)
        for _ in range(DIVISIONS):
            half = (rng.random(group.max() + 1) < 0.5)[group[mine]]
            old, new = mine[~half], rng.permutation(mine[half])[:NEW]
            if min(len(old), len(new)) < 30:
                continue
            shares = np.bincount(y[new], minlength=pair.known.num_classes) / len(new)
            weights = sample_weights(y[old], np.zeros_like(old), shares[None])
            seen["ordinary"].append(superiority(own[new], own[old], weights, group[old]))
            some = rng.permutation(other)[:NEW]
            seen["unknown"].append(superiority(some, own[old], weights, group[old]))
    made = {}
    for name, found in seen.items():
        share, low, high = np.array(found).T
        missed, called = (low > 0.5) | (high < 0.5), low > NOTABLE
        made[name] = [round(100 * float(of.mean()), 1) for of in (share, missed, called)]
    return made


def page(records: list[dict[str, Any]]) -> str:
    """The page that the records give."""
    rows, drifts = [], []
    for record in records:
        cells = [f"{record[name][0]:.0f}" for name in SCORES]
        alarms = f"{record['distance'][1]:.1f}"
        rows.append(f"| {record['pair']} | {record['other']:,} | {' | '.join(cells)} | {alarms} |")
        share, missed, called = record["ordinary"]
        other, _, found = record["unknown"]
        drifts.append(f"| {record['pair']} | {share:.0f} | {missed:.0f} | {called:.0f} | {other:.0f} | {found:.0f} |")
    return TEXT.format(rows="\n".join(rows), drifts="\n".join(drifts), divisions=DIVISIONS, new=NEW)


def main() -> None:
    """Measure the pairs that are not recorded yet, and write the page."""
    asked = result_options(__doc__, "runs/unknown").parse_args()
    torch.set_num_threads(1)
    records = [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []
    done = {record["pair"] for record in records}
    for pair in pairs(asked.data) if asked.data.exists() else ():
        if pair.name not in done:
            records.append(measured(pair))
            print(records[-1], flush=True)
            RECORDS.write_text("".join(json.dumps(record) + "\n" for record in records))
    PAGE.write_text(page(records), encoding="utf-8")


TEXT = """# Unknown objects and drift

Is a photo that is unlike anything in training flagged by `predict`, and is a changed camera seen
([how to use it](../howto/deploy.md#is-it-still-what-the-model-knows))? The default `blend` on frozen features
(crisis: of sentences). Written by `python -m studies.unknown`, from `studies/unknown.jsonl`.

## Detected at 5 % false alarms

% of the unknown inputs above a limit from one half of the held-out samples; the last column is the false alarms of
*distance* in the other half. Means over {divisions} divisions of whole groups; the site is unknown.

- *distance*: Mahalanobis distance from the nearest pooled mean, with the components that are not kept, as in `predict`.
- *angle*: largest cosine with a pooled mean in the same whitened features.
- *neighbours*: cosine with the 10th nearest training sample; it needs all training features.
- *energy*: log Σ exp of the linear classifier's scores. *softmax*: the largest probability.

| known / unknown | unknown inputs | distance | angle | neighbours | energy | softmax | false alarms |
|---|---|---|---|---|---|---|---|
{rows}

**Objects of another kind are found, all of them, by their distance**, while the probabilities say little: softmax and
energy find at most a fifth. **New domains with the same classes are often not found one by one**, by no score: many of
their photos are within the range of what training has shown. Neighbours and the angle find more of new disasters and
of handwritten digits, but the angle finds nothing where there are few classes and sources, and neighbours need all
training features. No score is best everywhere; `predict` uses the one that never misses other objects.

## Drift over {new} inputs

How often a new input is farther from training than a held-out sample of its site (50 % without drift), in %; how often
the 95 % interval excludes 50 for ordinary new inputs, which should be in 5 % of the divisions; how often drift is
reported, that is, the interval is above 55 %. Then the same for unknown inputs. Class shares are known.

| known / unknown | ordinary: farther | interval wrong | reported | unknown: farther | reported |
|---|---|---|---|---|---|
{drifts}

So {new} inputs of a new source mostly show what a single one does not. The interval is wrong in more than 5 % of the
divisions on some sets, since it takes new inputs to be independent, and lesions have several photos. Drift that is not
there is hardly ever reported.
"""


if __name__ == "__main__":
    main()
