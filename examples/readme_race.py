"""Draw README's picture of a race, and write its figures down: docs/images/race.png, docs/results/race-….md.

crosstail race office-caltech10/ --workers 2 --out race
python examples/readme_race.py race --took "6 minutes on two cores"
"""

import argparse
import json
from pathlib import Path
from typing import Any

import msgspec

from crosstail.report.compare.race_page import board_chart, board_table, leaderboard
from crosstail.report.document import markdown
from crosstail.sweep.race import Standing

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("race", type=Path, help="the folder of a race")
parser.add_argument("--took", required=True, help="how long it took, on what")
arguments = parser.parse_args()

record: dict[str, Any] = json.loads((arguments.race / "race.json").read_text(encoding="utf-8"))
board = msgspec.convert(record["leaderboard"], list[Standing], strict=False)  # JSON has text as keys
table = board_table(board)
docs = Path(__file__).parents[1] / "docs"
board_chart(table, width=560).save(docs / "images" / "race.png", scale_factor=2.0)

name = Path(record["dataset"]).name
level = int(table["level"].sum()) - 1
lines = [
    f"# A race on {name}",
    "",
    f"`crosstail race {name}/`: {len(table)} algorithms, {record['trials']} trials of {record['steps']} steps each,",
    f"then {record['seeds']} seeds of the best on validation; frozen {record['backbone']} features.",
    f"{arguments.took}.",
    "How to read it: [race.md](../race.md). Made by `python examples/readme_race.py`.",
    "",
    f"> {record['recommendation']}",
    "",
    f"Of the {len(table) - 1} others, {level} are not behind the first by more than the noise of {record['samples']}",
    "test samples, so their order says little.",
    "",
    "![Dots with intervals: test accuracy of every algorithm](../images/race.png)",
    "",
    "*From the best on validation (grey line) to the worst; marks: mean test accuracy over all pairs, with 95 %",
    "intervals.*",
    "",
    markdown.table(leaderboard(board)),
]
lines += [f"\nLeft out: {why}" for why in record["left_out"].values()]
lines += [f"\nFailed: {f['algorithm']}, {f['run']}: {f['error']}" for f in record["failed"]]
(docs / "results" / f"race-{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
