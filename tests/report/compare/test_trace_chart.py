"""How pairs moved during the training of each method."""

import msgspec

from crosstail.report.compare.page import write_report
from crosstail.report.compare.read_runs import read_runs
from crosstail.report.compare.tables import entries
from crosstail.report.compare.trace_chart import method_curve
from crosstail.training.folder import RunFolder
from crosstail.training.result import Trace


def with_trace(folder, alpha):
    """Add a trace to the first record of a run."""
    first, *others = RunFolder(folder).records()
    points = [(3.0, 0.0), (-1.0, 2.0), (-2.0, -2.0)]
    first = msgspec.structs.replace(first, trace=Trace(alpha=alpha, beta=3.0, gamma=4.0, points=points))
    lines = [msgspec.json.encode(record) + b"\n" for record in (first, *others)]
    (folder / "records.jsonl").write_bytes(b"".join(lines))


def test_methods_are_means_over_the_seeds_that_have_a_trace(make_run, tmp_path):
    hits = [[9, 1], [3, 0]]
    for seed, alpha in enumerate((1.0, 2.0)):
        with_trace(make_run(f"erm {seed}", hits, algorithm="erm", seed=seed, alpha=alpha), alpha)
    make_run("erm 2", hits, algorithm="erm", seed=2)
    with_trace(make_run("boda", [[9, 2], [3, 1]], algorithm="boda"), 0.5)
    runs = read_runs([tmp_path])
    found, _ = entries(runs.chosen)
    table = method_curve(found, ["erm", "boda"]).set_index(["method", "statistic"])["distance"]
    assert table["erm", "α"] == 1.5 and table["boda", "α"] == 0.5 and len(table) == 6
    assert method_curve(found[:0], ["erm"]).empty
    write_report(tmp_path / "report", runs, "erm", files=False)
    text = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert "photos: boda brings a class closest together across domains, α / γ 0.12" in text
