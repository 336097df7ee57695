"""The progress of a sweep: runs done, running and failed per method, and the estimated time left."""

from dataclasses import dataclass
from itertools import chain, groupby
from statistics import fmean

from crosstail.sweeps.select import choices
from crosstail.sweeps.store import Store


@dataclass(frozen=True)
class MethodStatus:
    """The state of a method's runs."""

    method: str
    planned: int
    done: int
    running: int
    failed: int
    remaining: float | None  # seconds with the current number of workers; None if unknown


def status(store: Store) -> list[MethodStatus]:
    """One row per method."""
    results, failures = store.results(), store.failures()
    running = {key for key, folders in store.unfinished().items() if not all(map(store.abandoned, folders))}
    rows = []
    for method, searches in groupby(choices(store, results), key=lambda choice: choice.method):
        keys, planned = set[str](), 0
        for choice in searches:
            own = set(chain.from_iterable(choice.keys))
            if not choice.missing:
                own.update(*choice.finals())
            planned += choice.plan.runs_per_method if choice.missing else len(own)  # fewer if no trial has finished
            keys |= own
        done, active = keys & results.keys(), keys & running - results.keys()
        failed = keys & failures.keys() - done - active
        left = planned - len(done) - len(failed)
        seconds = [results[key].seconds for key in done]
        remaining = left * fmean(seconds or [0.0]) / max(1, len(running)) if seconds or not left else None
        counts = planned, len(done), len(active), len(failed)
        rows.append(MethodStatus(method, *counts, remaining))
    return rows
