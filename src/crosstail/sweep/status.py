"""How far a sweep is: per method what is done, running, failed, and how long the rest will take."""

from dataclasses import dataclass
from statistics import fmean

from crosstail.sweep.select import choices
from crosstail.sweep.store import Store


@dataclass(frozen=True)
class MethodStatus:
    """The runs of one method."""

    method: str
    planned: int
    done: int
    running: int
    failed: int
    pruned: int
    remaining: float | None  # seconds with the present number of workers; None if not known yet


def status(store: Store) -> list[MethodStatus]:
    """One row per method."""
    results, failures = store.results(), store.failures()
    running = {key for key, folders in store.unfinished().items() if not all(map(store.abandoned, folders))}
    rows = []
    for choice in choices(store, results):
        keys = {key for folds in choice.keys for key in folds}
        planned = choice.plan.runs_per_method
        if not choice.missing:
            keys.update(key for seed in choice.finals() for key in seed)
            planned = len(keys)  # fewer if there is nothing to choose from
        done, active = keys & results.keys(), keys & running - results.keys()
        failed = keys & failures.keys() - done - active
        pruned = {key for key in failed if failures[key].kind == "pruned"}
        left = planned - len(done) - len(failed)
        seconds = [results[key].seconds for key in done]
        remaining = left * fmean(seconds or [0.0]) / max(1, len(running)) if seconds or not left else None
        rows.append(
            MethodStatus(
                method=choice.method,
                planned=planned,
                done=len(done),
                running=len(active),
                failed=len(failed - pruned),
                pruned=len(pruned),
                remaining=remaining,
            )
        )
    return rows
