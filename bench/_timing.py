"""Median times of several functions that take turns, so that machine load affects all of them alike."""

import time
from collections.abc import Callable, Mapping
from statistics import median

import torch


def interleave(functions: Mapping[str, Callable[[], object]], repeats: int, threads: int = 1) -> dict[str, float]:
    """Median seconds of each function over `repeats` rounds, after a warm-up round.

    One thread is the default: with several, each parallel operation waits for the busiest core, and the ratio then
    reflects the number of operations rather than the amount of work.
    """
    torch.set_num_threads(threads)
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function()
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in seconds.items()}
