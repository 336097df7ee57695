"""Tables, charts and one page from many runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crosstail.progress import Progress, silent
from crosstail.reports.compare.feature_charts import model_features
from crosstail.reports.compare.page import write_report
from crosstail.reports.compare.read_runs import Runs, read_runs
from crosstail.reports.compare.results import Results
from crosstail.reports.compare.tables import Spread
from crosstail.sweeps.recommendation import BASELINE


@dataclass(frozen=True, eq=False)
class Report:
    """A report that has been written."""

    page: Path
    runs: Runs
    """The runs that it covers, the folders that were skipped, and what races recommend."""
    left_out: Sequence[str]
    """Why runs are not in the tables, if any are not."""
    notes: Sequence[str]


def report(
    folders: Sequence[Path],
    *,
    out: Path = Path("report"),
    baseline: str | None = None,
    graphs: Sequence[Path] = (),
    trust: bool = False,
    metric: str = "accuracy",
    spread: Spread | None = None,
    published: bool = False,
    charts: bool = True,
    progress: Progress = silent,
) -> Report:
    """Write one offline page, tables (CSV, Markdown, LaTeX) and charts (SVG, PNG, PDF) from finished runs.

    Args:
        folders: Runs, sweeps, or folders that contain them.
        out: Folder for index.html, tables/ and charts/.
        baseline: Baseline for gains and tests; default: erm for gains, the best on validation for tests.
        graphs: Runs whose graphs and feature distances to draw.
        trust: Run the Python files that are stored with these runs.
        metric: Metric shown in all tables; all but accuracy require stored probabilities.
        spread: What follows ± in tables over seeds: the standard deviation, or the standard error of the mean; default:
            sd, with dg se as in DomainBed.
        published: Also set the figures of the paper and of DomainBed that are known beside these.
        charts: Also write each chart to a file.
        progress: Called while the features of the runs in `graphs` are computed.
    """
    results = Results(read_runs(folders), metric, baseline, spread)
    models = [model_features(run, trust, progress) for run in graphs]
    page = write_report(out, results, models, files=charts, published=published)
    methods, notes = list(dict.fromkeys(results.runs.chosen["method"])), []
    if (wanted := baseline or BASELINE) not in methods:
        notes.append(f"no runs of {wanted!r}, so no gains; set --baseline to one of {', '.join(methods)}")
    return Report(page, results.runs, results.left_out, notes)
