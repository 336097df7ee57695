"""Draw the chart of a race in README.md and write its leaderboard: docs/images/race.png, docs/results/race-….md.

crosstail race office-caltech10/ --workers 2 --out race
python examples/readme_race.py race --took "6 minutes on two cores"
"""

import argparse
import json
from pathlib import Path
from types import SimpleNamespace

from crosstail.report.compare.race_page import board_chart, board_table, leaderboard

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("race", type=Path, help="folder of a race")
parser.add_argument("--took", required=True, help="how long the race took, and on what machine")
arguments = parser.parse_args()

text = (arguments.race / "race.json").read_text(encoding="utf-8")
race, record = json.loads(text, object_hook=lambda fields: SimpleNamespace(**fields)), json.loads(text)
docs = Path(__file__).parents[1] / "docs"
chart = board_chart(board_table(race.leaderboard)).properties(width=560)
chart.save(docs / "images" / "race.png", scale_factor=2)

table = leaderboard(race.leaderboard)
name, others = Path(race.dataset).name, len(table.rows) - 1
lines = [
    f"# A race on {name}",
    "",
    f"`crosstail race {name}/`: {others + 1} methods, {race.trials} trials of {race.steps} steps each,",
    f"then {race.seeds} seeds of the best on validation; frozen {race.backbone} features.",
    f"It took {arguments.took}.",
    "How to read it: [race.md](../race.md). Written by `python examples/readme_race.py`.",
    "",
    f"> {race.recommendation}",
    "",
    f"Of the {others} other methods, {others - len(table.faint)} are within noise of the first on",
    f"{race.samples} test samples, so their order says little.",
    "",
    "![Dots with intervals: test accuracy of each algorithm](../images/race.png)",
    "",
    "*Ordered by validation accuracy (grey tick); marks: mean test accuracy over pairs, with 95 % intervals.*",
    "",
    f"| {table.header[0]} | family | {' | '.join(table.header[1:])} |",
    "|---|---|" + "---|" * (len(table.header) - 1),
]
for row, cells in zip(race.leaderboard, table.rows, strict=True):
    lines.append(f"| `{cells[0]}` | {row.family} | {' | '.join(cells[1:])} |")
lines += [f"\nLeft out: {why}" for why in record["left_out"].values()]
lines += [f"\nFailed: {failed.method}, {failed.run}: {failed.error}" for failed in race.failed]
(docs / "results" / f"race-{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
