"""Train one model, or one for each fold or unseen domain, and write their pages."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from crosstail.data import load_source, protocols
from crosstail.prediction.critical import read_critical
from crosstail.progress import Progress, labelled, silent
from crosstail.reports.run.page import write_folds_page, write_page
from crosstail.reports.run.two_questions import Questions
from crosstail.reports.wording import duration, file_size
from crosstail.storage import read_json
from crosstail.sweeps.plan import Hparams, search_name
from crosstail.training.cost import Cost, cost_of
from crosstail.training.devices import ONE, Devices, is_main_process
from crosstail.training.fit import train_run
from crosstail.training.logs import logged
from crosstail.training.refit import refit_spec, with_estimate
from crosstail.training.resolve import first_stage_learns, resolve, tunes
from crosstail.training.result import RunResult, mean_counts, pooled_accuracy
from crosstail.training.run import Run
from crosstail.training.run_data import load_inputs
from crosstail.training.spec import RunSpec
from crosstail.workflows._output import refuse_foreign


@dataclass(frozen=True)
class Fitted:
    """The finished runs of a spec."""

    out: Path
    runs: Sequence[Run]
    """One, or one for each fold or unseen domain."""
    final: Run | None = None
    """With `refit`, the run on every sample."""
    notes: Sequence[str] = ()
    """What to know about the data and the runs."""

    @property
    def run(self) -> Run:
        """The run whose model to use: the final one, or else the first."""
        return self.final or self.runs[0]

    @property
    def results(self) -> list[RunResult]:
        """The results of the runs, without the final one."""
        return [run.result for run in self.runs]

    @cached_property
    def questions(self) -> Questions | None:
        """How often the model is right, if every pair is equally important and as samples come."""
        return Questions.of_runs([self.final] if self.final else self.runs)

    def to_json(self) -> Any:
        """The result of a single run; of several, the test accuracy over all, their results and the final one's.

        With both `questions`, if the model is calibrated.
        """
        questions = {"questions": self.questions.to_json()} if self.questions else {}
        return self._results() | questions

    def _results(self) -> dict[str, Any]:
        results = self.results
        if len(results) == 1 and self.final is None:
            return dict(msgspec.to_builtins(results[0]))
        counts, final = mean_counts(results), self.final and self.final.result
        several: dict[str, Any] = {"test": pooled_accuracy(results, counts), "runs": results, "refit": final}
        if any(result.known for result in results):
            several["known"] = {"test": pooled_accuracy(results, counts, known=True)}
        return several


def fit(
    spec: RunSpec,
    out: Path,
    *,
    hparams: Path | None = None,
    critical: Sequence[str] = (),
    refit: bool = False,
    dry_run: bool = False,
    devices: Devices = ONE,
    log: str | None = None,
    progress: Progress = silent,
    tell: Callable[[str], None] = lambda note: None,
) -> Fitted:
    """Train a model that works for every (domain, class) pair, and write its page.

    With folds, or for all unseen domains, there is a run for each in a folder of its own, and a page over all of them.

    Args:
        spec: The run, or with `folds` or the protocol dg the runs.
        out: Folder of the run or runs; running the same again resumes it or shows the result.
        hparams: Hyperparameters from a file that `select` wrote; the spec's take precedence.
        critical: Classes that must not be missed, such as mel: pages show their recall at each site first. With a
            recall, such as mel=0.95, `predict` flags as many inputs as it takes to find this share of them.
        refit: Afterwards, train the final model on every sample, in OUT/refit, for the median of the selected steps.
        dry_run: Only estimate time, memory and disk; there are no runs then.
        devices: Processes and devices that share every batch; all processes run this function and return the same.
        log: Also write a log: tensorboard (RUN/tensorboard).
        progress: Called as the work advances.
        tell: Told each note about the data as soon as they are loaded.

    >>> from crosstail.testing.easy_data import easy_run
    >>> with easy_run("erm") as (spec, out):
    ...     fitted = fit(spec, out)
    >>> fitted.run.result.test.pair_average > 0.9
    True
    """
    chosen = read_hparams(hparams, resolve(replace(spec, hparams={}))) if hparams else {}
    spec = resolve(replace(spec, hparams=chosen | spec.hparams))
    if refit and spec.part:
        raise ValueError("--refit follows all runs of a protocol: remove --unseen, --fold and --stop-at")
    if refit:
        replace(spec, stop_at=())  # which is refused where a model on every sample is impossible
    source = load_source(spec, progress)
    recalls = read_critical(critical, source.classes)
    specs = protocols.parts(spec, source)
    split_again = spec.labels or len(specs) > 1  # so that notes on the split are those of the runs
    for note in source.source_notes if split_again else source.notes:
        tell(note)
    places = [out] if len(specs) == 1 else [out / (one.unseen or f"fold-{one.fold}") for one in specs]
    started = all((place / "spec.json").exists() for place in places)
    refuse_foreign(out, own=started)

    if (dry_run or tunes(spec)) and not started and is_main_process():
        progress("measuring a few samples", 0, 1)
        cost = cost_of(specs[0], load_inputs(specs[0], source), devices)
        tell(_cost_note(cost, len(specs) + refit))
    if dry_run:
        return Fitted(out, [])

    def train(one: RunSpec, place: Path, after: Sequence[Run] = ()) -> Run:
        with ExitStack() as stack:
            shown = labelled(progress, one.part)
            if log and is_main_process():
                shown = stack.enter_context(logged(log, one, place, shown))
            inputs = load_inputs(one, source)
            run = train_run(one, place, progress=shown if is_main_process() else None, inputs=inputs, devices=devices)
        if after:
            run = with_estimate(run, after)
        if recalls and run.result.critical != recalls:
            run = run.knowing(result=msgspec.structs.replace(run.result, critical=recalls))
            if is_main_process():
                run.folder.finish(run.result)
        if is_main_process():
            write_page(run)
        inputs.forget()  # the embedded or decoded samples of all folds may be too many for the memory
        return run

    runs = [train(one, place) for one, place in zip(specs, places, strict=True)]
    final = train(refit_spec([run.result for run in runs]), out / "refit", runs) if refit else None
    if len(runs) > 1 and is_main_process():
        write_folds_page(out, runs, final)
    return Fitted(out, runs, final, _notes(spec, runs))


def _cost_note(cost: Cost, runs: int) -> str:
    """An estimate as a sentence."""
    each = f"each of the {runs} runs takes" if runs > 1 else "this takes"
    needs = {"memory": cost.memory, "disk": cost.disk}
    parts = [f"about {duration(cost.seconds)}", *(f"{file_size(of)} of {what}" for what, of in needs.items() if of)]
    return f"{each} {' and '.join(filter(None, [', '.join(parts[:-1]), parts[-1]]))}, by a few measured samples"


def _notes(spec: RunSpec, runs: Sequence[Run]) -> list[str]:
    notes = [note for run in runs for note in (*run.result.data.notes, *run.result.notes)]
    if spec.trace and not any(record.trace for record in runs[0].records):
        earlier = "this run was finished before without --trace; use another --out to train it with a trace"
        notes.append(earlier if first_stage_learns(spec) else f"{spec.method} learns no features, so none are traced")
    return list(dict.fromkeys(notes))


def read_hparams(file: Path, spec: RunSpec) -> Hparams:
    """The hyperparameters for a resolved spec in a file that `select` wrote; with dg, for its domain and seed."""
    found, own = read_json(file, dict[str, Hparams]), search_name(spec.method, spec)
    for name in (own, spec.method):
        if name in found:
            try:
                resolve(replace(spec, hparams=found[name]))
            except ValueError as error:
                raise ValueError(f"{file}: {error}") from None
            return found[name]
    raise ValueError(f"{file} has no hyperparameters for {own}, only for {'; '.join(found)}")
