"""Medians of several callables that take turns, so that a busy machine is busy for all of them."""

import time
from collections.abc import Callable, Mapping
from statistics import median

import torch


def interleave(functions: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each function over so many rounds, after one that does not count, on two threads."""
    torch.set_num_threads(2)
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function()
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in seconds.items()}
