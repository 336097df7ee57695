"""Draw the picture in README.md from the runs of `make demo`: python -m studies.readme_picture demo."""

import sys
from pathlib import Path

from crosstail.cli import demo
from crosstail.report.document.files import save_drawing
from crosstail.report.graph_chart import graph_chart
from crosstail.report.vega_lite import concat
from crosstail.training.evaluation import graph_of
from crosstail.training.folder import RunFolder
from crosstail.training.inputs import load_inputs
from crosstail.training.model import load_model

charts = []
for method, title in (("erm", "ERM"), ("boda", "BoDA")):
    folder = RunFolder(Path(sys.argv[1]) / "runs" / demo.spec(method, seed=0).key)
    dataset = load_inputs(folder.spec()).seen()
    nodes = graph_of(load_model(folder, dataset), dataset).nodes(dataset.domains, dataset.classes)
    charts.append(graph_chart(nodes, title))
save_drawing(concat(*charts, columns=2), Path(__file__).parents[1] / "docs" / "images" / "graphs.png")
