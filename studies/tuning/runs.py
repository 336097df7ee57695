"""One unit of work: tune the last stage on a split of a set, and judge the weights in between on held-out samples."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from studies.tuning.judged import answers, blended, figures
from studies.tuning.sets import Photos, split
from studies.tuning.stage import Recipe, features, network, stage_of, tuned

from crosstail.metrics import Answered, Answers, Difference, compare_methods
from crosstail.training.tuned_share import SHARES, between, choose, tempered

PARTS = ("val", "test")

Said = Mapping[float, Mapping[str, Answers]]
"""Answers for validation and test samples by α."""


def measured(photos: Photos, number: int, how: Recipe, maps: Any, kept: Path) -> dict[str, Any]:
    """What a recipe gets on a split of a set; all probabilities and the tuned weights are kept in files."""
    source, dataset = split(photos, number)
    whole = network((3, *source.x.shape[1:3]), photos.spec.resolution)
    assert dataset.origin is not None
    own = np.asarray(maps[dataset.origin])
    bare = replace(dataset, x=np.zeros((len(dataset), 1), np.float32))
    stage = stage_of(whole)
    first = {name: of.detach().clone() for name, of in stage.state_dict().items()}
    begin = time.process_time()
    last = tuned(stage, own, bare, bare.rows("train"), replace(how, flips=how.flips and photos.flips), number)
    seconds = {"tuning": round(time.process_time() - begin, 1)}
    kept.parent.mkdir(parents=True, exist_ok=True)
    torch.save(last, kept.with_suffix(".pt"))
    begin, said = time.process_time(), {}
    for alpha in SHARES:
        stage.load_state_dict(between(first, last, alpha))
        said[alpha] = blended(bare, features(stage.eval(), own, how.half))
    seconds["judging"] = round(time.process_time() - begin, 1)
    keep(kept, said)
    return {"seconds": seconds} | evidence(said)


def evidence(said: Said) -> dict[str, Any]:
    """Figures of every α, on validation also its difference from α = 0 and whether the best beats it; the choice."""
    val = {a: tempered(parts["val"]) for a, parts in said.items()}
    made: dict[str, Any] = {str(a): {"val": figures(val[a]), "test": figures(said[a]["test"])} for a in said}
    least = min(said, key=lambda a: (made[str(a)]["val"]["loss"], a))
    for a, of in val.items():
        del made[str(a)]["test"]["loss"]  # which has no temperature
        beaten = compared(val[least], of, "log_loss") if a != least else None
        made[str(a)]["val"]["beaten"] = beaten.p_value if beaten else 1.0
        both = {metric: compared(of, val[0.0], metric) for metric in ("accuracy", "log_loss")} if a else {}
        over = {name: test and [test.estimate, test.low, test.high, test.p_value] for name, test in both.items()}
        made[str(a)]["val"] |= {"over": over} if over else {}
    made["0.0"]["val"]["empty"] = float((val[0.0].counts == 0).mean())
    return {"chosen": choose({a: parts["val"] for a, parts in said.items()}).share, "alphas": rounded(made)}


def rounded(made: Any) -> Any:
    """Figures with four decimals, which keeps the records small."""
    if isinstance(made, dict):
        return {name: rounded(of) for name, of in made.items()}
    if isinstance(made, list):
        return [rounded(of) for of in made]
    return round(made, 4) if isinstance(made, float) else made


def compared(one: Answers, other: Answers, metric: str) -> Difference | None:
    """The paired difference of a metric, pairs weighing the same, on the same samples."""
    sides = {"one": [Answered(0, one, metric)], "other": [Answered(0, other, metric)]}
    return compare_methods(sides, "other", "pair_average")["one"]


def keep(path: Path, said: Said) -> None:
    """Store all probabilities, so that other rules can be tried on them without tuning again."""
    made = {f"{part} {a}": of.log_p for a, parts in said.items() for part, of in parts.items()}
    for part, of in said[0.0].items():
        made |= {f"{part} y": of.y, f"{part} domain": of.domain, f"{part} group": of.group, "counts": of.counts}
    np.savez(path, **{name: of for name, of in made.items() if of is not None})


def kept_answers(path: Path) -> dict[float, dict[str, Answers]]:
    """The answers that were kept."""
    of = dict(np.load(path))
    names: list[list[str]] = [list(map(str, range(n))) for n in of["counts"].shape]
    return {
        a: {
            part: answers(
                Answers(
                    domains=names[0],
                    classes=names[1],
                    counts=of["counts"],
                    y=of[f"{part} y"],
                    domain=of[f"{part} domain"],
                    group=of.get(f"{part} group"),
                    row=np.arange(len(of[f"{part} y"])),
                    predicted=of[f"{part} y"],
                ),
                of[f"{part} {a}"],
            )
            for part in PARTS
        }
        for a in SHARES
    }
