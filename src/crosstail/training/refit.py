"""The final model: trained on every sample for as long as earlier runs, on parts of them, found best."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median_high, median_low
from typing import Any

import msgspec
import numpy as np

from crosstail.metrics._calibration import Calibration, decided_by_prevalence
from crosstail.training.devices import is_main_process
from crosstail.training.held_out import HeldOut
from crosstail.training.result import RunResult, pooled_accuracy
from crosstail.training.run import Run
from crosstail.training.spec import RunSpec


def refit_spec(results: Sequence[RunResult]) -> RunSpec:
    """The run on every sample that follows from these: each stage ends at the median of the steps that they selected.

    Of an even number, it is the upper one of the two in the middle, because the final model has more samples to learn;
    of the shares of tuned weights that were chosen, the lower one, which changes less.
    """
    stages = zip(*(result.selected_steps for result in results), strict=True)
    shares = [result.tuned.share for result in results if result.tuned]
    spec = replace(results[0].spec.undivided, stop_at=tuple(median_high(stage) for stage in stages))
    return replace(spec, tuned_share=median_low(shares)) if shares else spec


def with_estimate(run: Run, after: Sequence[Run]) -> Run:
    """The run on every sample with the pooled test accuracy of those before it, also in its folder.

    Its held-out samples are theirs: each was held out by a run that was not trained on it.
    """
    results, counts, known = [one.result for one in after], np.array(run.result.counts), run.result.known
    if known:
        known = msgspec.structs.replace(known, estimate=pooled_accuracy(results, counts, known=True))
    own: dict[str, Any] = {"estimate": pooled_accuracy(results, counts), "known": known}
    data = msgspec.structs.replace(run.result.data, leaks=results[0].data.leaks)  # which inflates the estimate
    result = msgspec.structs.replace(run.result, **own, data=data)
    if result == run.result or not is_main_process():
        return run
    parts = [_in_rows_of(run, one, _decided(one.held_out, one.calibration)) for one in after if one.held_out]
    about: dict[str, Any] = {}
    if len(parts) == len(after):
        held_out = HeldOut.pooled(parts).described(**result.answered)
        held_out.save(run.folder)
        about = {"held_out": held_out, "calibration": held_out.calibration()}
        run.folder.calibrate(about["calibration"])
    run.folder.finish(result)
    return run.knowing(result=result, **about)


def _decided(held_out: HeldOut, given: Calibration | None) -> HeldOut:
    """With the answers for the prevalence that the part itself gives, as its page shows them."""
    if given is None:
        return held_out
    found = []
    for of in (held_out.validation, held_out.test):
        said = decided_by_prevalence(of.told, given.prevalence).by_prevalence
        found.append(of.described(by_prevalence=said))
    return HeldOut(*found)


def _in_rows_of(run: Run, part: Run, held_out: HeldOut) -> HeldOut:
    """The held-out samples of a part by their rows in the data of the final run; what that lacks comes after its end.

    Label profiles drop other samples from each part, so that the rows of one are not those of another.
    """
    final, own = run.dataset, part.dataset
    if final is None or own is None or (final.origin is None and own.origin is None):
        return held_out
    before = np.arange(len(own)) if own.origin is None else own.origin
    kept = np.arange(len(final)) if final.origin is None else final.origin
    row = np.searchsorted(kept, before)
    row = np.where(kept[row.clip(max=len(kept) - 1)] == before, row, len(kept) + before)
    found = [of.described(row=None if of.row is None else row[of.row]) for of in (held_out.validation, held_out.test)]
    return HeldOut(*found)
