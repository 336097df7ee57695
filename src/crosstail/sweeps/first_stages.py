"""Equal first stages are trained once: as the run of the algorithm alone, after which the others begin."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from crosstail.sweeps.worker import Job
from crosstail.training.resolve import canonical_method, steps_of_stages
from crosstail.training.spec import RunSpec


def with_first_stages(done: Callable[[str], bool], jobs: Sequence[Job]) -> dict[str, Job]:
    """Jobs by key, each after the run of its first stage if another job needs it too; such a run is added."""
    found = {job.spec.key: job for job in jobs}
    firsts = {key: first for key, job in found.items() if not done(key) and (first := first_stage(job.spec))}
    uses = Counter(first.key for first in firsts.values())
    for key, first in firsts.items():
        if uses[first.key] > 1 or first.key in found or done(first.key):
            found[key] = replace(found[key], after=first.key)
            if not done(first.key):
                found.setdefault(first.key, Job(first, "stage one"))
    return found


def first_stage(spec: RunSpec) -> RunSpec | None:
    """The run that the first stage of a resolved spec is on its own; None without a second, or if it takes no steps.

    Nor with `--tune last`, where a run on its own may average its weights with those of before.
    """
    alone = canonical_method(spec.algorithm) == spec.algorithm and not spec.stages
    if not (spec.second_stage and steps_of_stages(spec)[0] and alone):
        return None
    return spec.first_stage
