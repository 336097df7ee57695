"""Test a trained model on any labelled data."""

import hashlib
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from crosstail.data import DataSpec, DomainDataset
from crosstail.metrics import PairAccuracy
from crosstail.prediction.evaluate import Evaluated, evaluate_on, load_for
from crosstail.prediction.predictor import Predictor
from crosstail.progress import Progress, silent
from crosstail.reports.document import html
from crosstail.reports.run.certainty_elsewhere import certainty_json
from crosstail.reports.run.command import options, words
from crosstail.reports.run.evaluated import evaluation_document
from crosstail.reports.run.two_questions import Questions
from crosstail.workflows._output import require_page


@dataclass(frozen=True, eq=False)
class EvaluatedRun:
    """A run's model on other data."""

    predictor: Predictor
    dataset: DomainDataset
    """As loaded; `found.samples` are the evaluated ones."""
    found: Evaluated
    questions: Questions | None
    """Whether every pair is equally important, or samples are as they come; None for an uncalibrated run."""
    page: Path
    unwritten: OSError | None = None
    """Why the page could not be written, such as a read-only folder."""

    @property
    def known_domains(self) -> list[str]:
        """The domains of the data that the model knows."""
        return [name for name in self.dataset.domains if name in self.predictor.sites]

    def to_json(self) -> dict[str, Any]:
        found, informed = self.found, self.found.answers.informed
        facts = {"domains": self.dataset.domains, "classes": self.predictor.classes, "left_out": asdict(found.left_out)}
        facts |= PairAccuracy.of(found.answers).to_json()
        if informed is not None:
            facts["known"] = {"sites": self.known_domains, **PairAccuracy.of(informed).to_json()}
        if self.questions:
            facts["questions"] = self.questions.to_json()
        return facts | {"probabilities": certainty_json(found, self.predictor.calibration)}


def evaluate(
    run: Path,
    spec: DataSpec,
    *,
    split: Literal["all", "train", "val", "test"] = "all",
    prior: str | None = None,
    out: Path | None = None,
    weights: Path | None = None,
    trust: bool = False,
    progress: Progress = silent,
) -> EvaluatedRun:
    """Test a run's model on new labelled data, including domains that it has not seen, and write a page.

    Skips samples that the run was trained or selected on (found by content) and classes that it does not know. The
    page shows the new domains beside those that the run was tested on.

    Args:
        run: Folder of a finished run.
        spec: The data; how they are split is the run's.
        split: Split to evaluate on; for the run's own data, the run's split. Default: all unseen samples.
        prior: How frequent the classes are where samples come as they do, as in `predict`: `uniform`, `train` (as in
            training at the site), a .csv file with the columns `class` and `share`, or `estimate` (from these samples).
            Default: train.
        out: The page to write; default: in RUN/evaluated.
        weights: Weights of the frozen backbone, if the file has moved.
        trust: Run the Python files that are stored with the run.
        progress: Called as the work advances.
    """
    require_page(out)
    predictor = Predictor(run, weights, trust)
    dataset = load_for(predictor, spec, split, progress)
    found = evaluate_on(predictor, dataset, split, progress, prior)
    questions = Questions.of_evaluated(found, prior)
    page = out or predictor.run.path / "evaluated" / page_name(spec.dataset, split, prior)
    named = [*words(split=split, prior=prior), *options(spec)]
    command = shlex.join(["crosstail", "evaluate", str(run), spec.dataset, *named])
    try:
        html.save(evaluation_document(predictor, found, command, questions), page)
    except OSError as error:
        return EvaluatedRun(predictor, dataset, found, questions, page, error)
    return EvaluatedRun(predictor, dataset, found, questions, page)


def page_name(source: str, split: str, prior: str | None = None) -> str:
    """One name for every source, split and prior, also of files with the same name in different folders."""
    path = Path(source).resolve()
    place = hashlib.sha256(str(path).encode()).hexdigest()[:6]
    more = [*([] if split == "all" else [split]), *([Path(prior).stem] if prior else [])]
    return "-".join([path.stem, place, *more]) + ".html"
