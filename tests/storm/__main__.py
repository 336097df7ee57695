"""Write docs/results/storm.md from the outcome of `make storm`: python -m tests.storm build/storm.xml.

Of several files, the last that has a test counts; the section on many runs stays as it is.
"""

import sys
from pathlib import Path
from xml.etree import ElementTree

PAGE = """# Kills, full disks and large sizes

What `make storm` has found. A command is killed (`SIGKILL`) at random moments and run again until it ends: its files
must be those of a run that nothing disturbed, without a temporary file or a process left. On a full disk, one sentence
names the file, nothing that was there is lost, and the same command completes once there is room. CI runs a
sample. Written by `python -m tests.storm build/storm.xml`.

{total}

| test | outcome | kills |
|---|---|---|
{rows}
"""


def main() -> None:
    rows, kills, outcomes = [], 0, []
    cases = {
        (case.get("classname"), case.get("name")): case
        for file in sys.argv[1:]
        for case in ElementTree.parse(file).iter("testcase")
    }
    for case in cases.values():
        given = {found.get("name"): found.get("value") for found in case.iter("property")}
        bad = [kind for kind in ("failure", "error", "skipped") if case.find(kind) is not None]
        outcomes.append(bad[0] if bad else "passed")
        kills += int(given.get("kills") or 0)
        file = (case.get("classname") or "").removeprefix("tests.").replace(".", "/")
        name = (case.get("name") or "").replace("_", " ")
        rows.append(f"| {file}: {name} | {outcomes[-1]} | {given.get('kills', '')} |")
    total = f"{outcomes.count('passed')} of {len(outcomes)} tests passed, with {kills} kills."
    page = Path(__file__).parents[2] / "docs/results/storm.md"
    _, heading, kept = page.read_text(encoding="utf-8").partition("\n## Many runs\n")
    page.write_text(PAGE.format(total=total, rows="\n".join(sorted(rows))) + heading + kept, encoding="utf-8")


if __name__ == "__main__":
    main()
