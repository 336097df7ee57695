"""The final model: trained on every sample for as long as earlier runs, on parts of them, found best."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median_high

import msgspec
import numpy as np

from crosstail.training.devices import is_main_process
from crosstail.training.fit import Run
from crosstail.training.probabilities import Probabilities
from crosstail.training.result import RunResult, pooled_accuracy
from crosstail.training.spec import RunSpec


def refit_spec(results: Sequence[RunResult]) -> RunSpec:
    """The run on every sample that follows from these: each stage ends at the median of the steps that they selected.

    Of an even number, it is the upper one of the two in the middle, because the final model has more samples to learn.
    """
    stages = zip(*(result.selected_steps for result in results), strict=True)
    return replace(results[0].spec, unseen=None, fold=None, stop_at=tuple(median_high(stage) for stage in stages))


def with_estimate(run: Run, after: Sequence[RunResult], held_out: Probabilities | None = None) -> Run:
    """The run on every sample with the pooled test accuracy of those before it, also in its folder.

    `held_out` are the probabilities of those runs for samples that they were not trained on; this run has none.
    """
    counts, known = np.array(run.result.counts), run.result.known
    if known:
        known = msgspec.structs.replace(known, estimate=pooled_accuracy(after, counts, known=True))
    result = msgspec.structs.replace(run.result, estimate=pooled_accuracy(after, counts), known=known)
    if result != run.result and is_main_process():
        if held_out:
            held_out.save(run.folder)
            run.folder.calibrate(held_out.calibration(result.domains, result.counts))
        run.folder.finish(result)
    return replace(run, result=result, probabilities=held_out or run.probabilities)
