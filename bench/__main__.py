"""Run the benchmarks of this folder, print one table, and fail if a limit is missed by more than 20 %."""

import argparse
import json
import os
import pkgutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench._rows import Row

TOLERANCE = 0.2


def main() -> int:
    names = sorted(m.name for m in pkgutil.iter_modules([str(Path(__file__).parent)]) if not m.name.startswith("_"))
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"benchmarks to run: {', '.join(names)} (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="use smaller data where the full size takes minutes")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="also write the rows to a file, with the load of the machine; those of other benchmarks stay in it",
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(names):
        parser.error(f"unknown benchmark {', '.join(sorted(unknown))}; choose from {', '.join(names)}")
    if arguments.quick:
        os.environ["CROSSTAIL_BENCH"] = "quick"

    console = Console(width=min(80, Console().width))
    table = Table(box=None, pad_edge=False)
    for header in ("", "ours", "reference", "ratio", "limit", ""):
        table.add_column(header, justify="right" if header in ("ours", "ratio") else "left")
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > 0.5 * cores:
        console.print(f"The machine is busy (load {load:.1f} on {cores} cores): timings are unreliable.")
    rows: list[Row] = []
    record: dict[str, list[dict[str, object]]] = {}
    if arguments.json and arguments.json.exists():
        for kept in json.loads(arguments.json.read_text(encoding="utf-8")):
            record.setdefault(kept["bench"], []).append(kept)
    for name in arguments.names or names:
        with console.status(f"{name} ..."):
            found = rows_of(name)
        rows += found
        record[name] = [{"bench": name, "load": round(os.getloadavg()[0], 1)} | asdict(row) for row in found]
        if arguments.json:
            stored = [row for known in names for row in record.get(known, [])]
            arguments.json.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    for row in rows:
        table.add_row(*_cells(row))
    console.print(table)
    failed = [row for row in rows if row.misses_by > TOLERANCE]
    for row in failed:
        console.print(f"{row.name}: {row.misses_by:.0%} over its limit")
    return 1 if failed else 0


def rows_of(name: str) -> list[Row]:
    """Run a benchmark in its own process: threads and memory left over from another one change ratios by a fifth."""
    program = "import json; from dataclasses import asdict; from bench import {0}; "
    program += "print(json.dumps([asdict(row) for row in {0}.run()]))"
    command = [sys.executable, "-c", program.format(name)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1], check=True)
    return [Row(**row) for row in json.loads(done.stdout.splitlines()[-1])]


def _cells(row: Row) -> list[str]:
    mark = "ok" if row.ok else "within 20 %" if row.misses_by <= TOLERANCE else "MISSED"
    ratio, limit = (
        (f"{row.ratio:.2f}", f"{row.limit:g}") if row.ratio is not None else ("", _amount(row.limit, row.unit))
    )
    return [row.name, _amount(row.ours, row.unit), row.peer, ratio, f"{row.sense} {limit}", mark]


def _amount(value: float, unit: str) -> str:
    if unit == "s" and value < 1:
        return f"{1000 * value:.1f} ms"
    return f"{value:.1f} s" if unit == "s" else f"{value:,.0f} {unit}"


if __name__ == "__main__":
    sys.exit(main())
