"""Is one run better than another, and on which pairs?"""

from pathlib import Path

from crosstail.reports.compare import two_runs
from crosstail.reports.compare.two_runs import Comparison
from crosstail.reports.compare.two_runs_page import page
from crosstail.reports.document import html
from crosstail.workflows._output import require_page


def compare(first: Path, second: Path, *, out: Path | None = None) -> Comparison:
    """Compare two runs on the test samples that they share: overall, and on every pair with a corrected test.

    Args:
        first: Folder of a finished run, or of its runs with folds or the protocol dg.
        second: Another, on the same data and split.
        out: Also write an .html page that works offline.
    """
    require_page(out)
    found = two_runs.compare(first, second)
    if out is not None:
        html.save(page(found), out)
    return found
