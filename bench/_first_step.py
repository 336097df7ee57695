"""The time a trial takes before it trains."""

import time

from crosstail.sweeps.store import Store
from crosstail.sweeps.worker import Job, execute
from crosstail.training import RunSpec


def seconds_to_first_step(store: Store, spec: RunSpec) -> float:
    """Seconds from receiving a job to the end of its first step."""
    steps: list[float] = []

    def step_done() -> bool:
        steps.append(time.perf_counter())
        return False

    start = time.perf_counter()
    execute(store, Job(spec), step_done)
    return steps[0] - start
