"""Look at a data set before any training."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crosstail import data
from crosstail.data import DataSpec, DomainDataset, protocols
from crosstail.data.sources._locate import data_name
from crosstail.progress import Progress, silent
from crosstail.reports.audit import Audit
from crosstail.reports.audit import audit as examine
from crosstail.reports.audit.document import page
from crosstail.reports.audit.inputs import ImageInputs
from crosstail.reports.document import html
from crosstail.reports.run.suspects import suspect_table, suspects_by_pair
from crosstail.training.existing import existing_run
from crosstail.training.run import Run
from crosstail.workflows._output import require_page


@dataclass(frozen=True, eq=False)
class Audited:
    """What an audit has found."""

    found: Audit
    dataset: DomainDataset
    run: Run | None = None
    """A run on these data, whose held-out samples show probable label errors."""

    def to_json(self) -> dict[str, Any]:
        wrong = {} if self.run is None else {"label_errors": suspect_table(self.run).to_dict("records")}
        return {**self.found.to_json(), **wrong}


def audit(
    spec: DataSpec,
    *,
    run: Path | None = None,
    out: Path | None = None,
    progress: Progress = silent,
) -> Audited:
    """Count the pairs, compare the label distributions, find duplicates and broken images, and suggest what to try.

    Args:
        spec: The data, and how they are split.
        run: A finished run on these data: also list probable label errors among its held-out samples. After
            `fit --folds 5 --refit`, every sample was held out: give OUT/refit.
        out: Also write an .html page that works offline.
        progress: Called as the work advances.

    >>> found = audit(DataSpec(dataset="digits")).found
    >>> len(found.domains), len(found.classes)
    (3, 10)
    """
    require_page(out)
    found, dataset = _examined(spec, progress)
    trained = None if run is None else _run_on(existing_run(run), spec.dataset)
    if out is not None:
        html.save(page(found, dataset, [] if trained is None else list(suspects_by_pair(trained))), out)
    return Audited(found, dataset, trained)


def _examined(spec: DataSpec, progress: Progress) -> tuple[Audit, DomainDataset]:
    """What is found in the data that a run would have: broken images are named, but not counted."""
    many, few = data.shot_thresholds(spec.dataset)
    dataset = protocols.split(data.load_source(spec, progress, decided=False), spec)
    found = examine(dataset.plain(), many=many, few=few, progress=progress)
    inputs, notes = found.inputs, found.notes
    if isinstance(inputs, ImageInputs) and 0 < len(inputs.broken) < len(dataset):
        dataset = protocols.split(data.load_source(replace(spec, skip_broken=True), progress, decided=False), spec)
        found = examine(dataset.plain(), many=many, few=few, progress=progress)
        assert isinstance(found.inputs, ImageInputs)
        found = replace(found, notes=notes, inputs=replace(found.inputs, broken=inputs.broken))
    file = Path(spec.dataset)
    if file.is_file() and data_name(file) != file.name:  # named after its folder, which may hold several
        found = replace(found, name=f"{data_name(file)}/{file.name}")
    return found, dataset


def _run_on(path: Path, source: str) -> Run:
    """A run on these data that has stored probabilities of its held-out samples."""
    run = Run(path)
    trained = run.result.spec.dataset
    if Path(trained).resolve() != Path(source).resolve():
        raise ValueError(f"--run {path} was trained on {trained}, not on {source}")
    if run.dataset is None:
        raise ValueError(f"--run {path}: {source} has changed since it was trained on")
    if run.held_out is None or run.calibration is None:
        raise ValueError(f"--run {path} has no probabilities.npz: run its `crosstail fit` command again, which adds it")
    return run
