"""Medians of several callables that take turns, so that a busy machine is busy for all of them."""

import time
from collections.abc import Callable, Mapping
from statistics import median

import torch


def interleave(functions: Mapping[str, Callable[[], object]], repeats: int, threads: int = 1) -> dict[str, float]:
    """Median seconds of each function over so many rounds, after one that does not count, by default on one thread.

    With several threads, one core that something else uses makes every parallel operation wait for it, and the ratio
    then says how many operations there are, not how much work.
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
