"""Write the leaderboard of a race and its chart: docs/results/race-NAME.md, docs/images/race-NAME.png.

crosstail race office-caltech10/ --workers 2 --out race
python -m studies.race_page race/race.json office-caltech10 --took "6 minutes on two cores"
"""

import argparse
from pathlib import Path

from crosstail.reports.compare.race_page import TIED, behind_chart, board_table, expectation, headline, leaderboard
from crosstail.reports.document.files import save_drawing
from crosstail.reports.wording import several
from crosstail.storage import read_json
from crosstail.sweeps.race_result import RaceResult

DOCS = Path(__file__).parents[1] / "docs"


def page(race: RaceResult, name: str, command: str, took: str, picture: Path) -> str:
    """The page; its chart, if there are methods behind the first, is saved as a picture."""
    table = leaderboard(race.leaderboard)
    kept = [k for k, title in enumerate(table.header) if k and title not in ("domain known", "s")]
    early = f"{len(race.stopped)} methods stopped early, on validation; " if race.stopped else ""
    features = f"frozen {race.backbone} features" if race.tune == "none" else "vectors as they are"
    chart = []
    if table.faint:
        save_drawing(behind_chart(board_table(race.leaderboard)).having(width=560), picture)
        chart = [
            f"![Dots with intervals: points by which each method is behind the first](../images/{picture.name})",
            "",
            "*Points behind the first on the same test samples, with 95 % intervals; tied methods share a bar.*",
            "",
        ]
    lines = [
        f"# A race on {name}",
        "",
        f"`{command.replace('NAME', name)}`:",
        f"{early}{several(len(table.rows), 'method')} had {several(race.trials, 'trial')} and "
        f"{several(race.seeds, 'seed')}; {features}.",
        f"It took {took}.",
        "How to read it: [race.md](../race.md). Written by `python -m studies.race_page`.",
        "",
        f"> {race.recommendation}",
        "",
        expectation(race),
        "",
        f"**{headline(race.leaderboard)}.** {TIED}",
        "",
        *chart,
        f"| {table.header[0]} | {' | '.join(table.header[k] for k in kept)} |",
        "|---|" + "---|" * len(kept),
    ]
    lines += [f"| `{cells[0]}` | {' | '.join(cells[k] for k in kept)} |" for cells in table.rows]
    lines += [f"\nLeft out: {why}" for why in race.left_out.values()]
    lines += [f"\nFailed: {failed.method}, {failed.run}: {failed.error}" for failed in race.failed]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Read how a race ended and write its page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("race", type=Path, help="race.json, or a copy of it, such as halving.json of all_methods.py")
    parser.add_argument("name", help="of the data set")
    parser.add_argument("--command", default="crosstail race NAME/", help="how the race was started")
    parser.add_argument("--took", required=True, help="how long the race took, and on what machine")
    given = parser.parse_args()
    picture = DOCS / "images" / f"race-{given.name}.png"
    text = page(read_json(given.race, RaceResult), given.name, given.command, given.took, picture)
    (DOCS / "results" / f"race-{given.name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
