"""Write the leaderboard of a race and its chart: docs/results/race-NAME.md, docs/images/race-NAME.png.

crosstail race office-caltech10/ --workers 2 --out race
python examples/race_page.py race/race.json office-caltech10 --took "6 minutes on two cores"
"""

import argparse
import json
from pathlib import Path
from types import SimpleNamespace

from crosstail.report.compare.race_page import behind_chart, board_table, leaderboard

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("race", type=Path, help="race.json of a race, or a copy, such as halving.json of all_methods.py")
parser.add_argument("name", help="of the data set")
parser.add_argument("--command", default="crosstail race NAME/", help="how the race was started")
parser.add_argument("--took", required=True, help="how long the race took, and on what machine")
arguments = parser.parse_args()

text = arguments.race.read_text(encoding="utf-8")
race, record = json.loads(text, object_hook=lambda fields: SimpleNamespace(**fields)), json.loads(text)
docs = Path(__file__).parents[1] / "docs"

table = leaderboard(race.leaderboard)
name, others = arguments.name, len(table.rows) - 1
early = f"{len(race.stopped)} methods stopped early, on validation; " if record.get("stopped") else ""
chart = []
if table.faint:
    picture = behind_chart(board_table(race.leaderboard)).properties(width=560)
    picture.save(docs / "images" / f"race-{name}.png", scale_factor=2)
    chart = [
        f"![Dots with intervals: points by which each method is behind the first](../images/race-{name}.png)",
        "",
        "*Points behind the first on the same test samples, with 95 % intervals; tied methods share a bar.*",
        "",
    ]
lines = [
    f"# A race on {name}",
    "",
    f"`{arguments.command.replace('NAME', name)}`:",
    f"{early}{others + 1} had {race.trials} trials of {race.steps} steps each,",
    f"then {race.seeds} seeds of the best on validation; frozen {race.backbone} features.",
    f"It took {arguments.took}.",
    "How to read it: [race.md](../race.md). Written by `python examples/race_page.py`.",
    "",
    f"> {race.recommendation}",
    "",
    f"Of the {others} other methods, {others - len(table.faint)} are within noise of the first on",
    f"{race.samples} test samples, so their order says little.",
    "",
    *chart,
    f"| {table.header[0]} | family | {' | '.join(table.header[1:])} |",
    "|---|---|" + "---|" * (len(table.header) - 1),
]
for row, cells in zip(race.leaderboard, table.rows, strict=True):
    lines.append(f"| `{cells[0]}` | {row.family} | {' | '.join(cells[1:])} |")
lines += [f"\nLeft out: {why}" for why in record["left_out"].values()]
lines += [f"\nFailed: {failed.method}, {failed.run}: {failed.error}" for failed in race.failed]
(docs / "results" / f"race-{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
