"""Progress where there is no terminal: lines in a log, few of them, and none for short work."""

import io
import time

from rich.console import Console
from rich.text import Text

from crosstail.cli import _progress
from crosstail.sweeps.outlook import Outlook


def wait_until(true):
    limit = time.monotonic() + 10
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.01)


def lines(monkeypatch, seconds_per_step, steps, total):
    clock = iter(seconds_per_step * step for step in range(-1, steps))
    monkeypatch.setattr(_progress.time, "monotonic", lambda: next(clock))
    console = Console(file=io.StringIO(), width=80)
    with _progress.progress_bar(console) as report:
        for step in range(steps):
            report("stage 1", step + 1, total)
    return console.file.getvalue().splitlines()


def test_a_log_has_a_line_now_and_then_and_one_at_the_end(monkeypatch):
    written = lines(monkeypatch, 1.0, 25, 25)
    assert [line.split(",")[0] for line in written] == ["stage 1: 11/25", "stage 1: 21/25", "stage 1: 25/25"]
    assert "left" in written[0] and "left" not in written[-1]


def test_short_work_writes_nothing(monkeypatch):
    assert lines(monkeypatch, 0.1, 25, 25) == []


def test_a_log_goes_on_while_nothing_is_reported(monkeypatch):
    monkeypatch.setattr(_progress, "INTERVAL", 0.01)
    console = Console(file=io.StringIO(), width=80)
    with _progress.race_progress(console) as (_, watch):
        watch(Outlook("round 1 of 4", 60, 3, 60, 600.0, "The race takes about 11 min."))
        wait_until(
            lambda: console.file.getvalue().count("round 1 of 4, 60 methods: 3 of 60 runs, about 10 min left") > 1
        )
    assert console.file.getvalue().startswith("The race takes about 11 min.\n")


def test_a_terminal_has_the_time_that_all_of_a_race_takes():
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    with _progress.race_progress(console) as (report, watch):
        report("embedding", 5, 5)
        watch(Outlook("round 2 of 4", 30, 3, 31, 600.0, "The race takes about 11 min."))
        wait_until(lambda: "about 10 min left in all" in console.file.getvalue())
    lines = Text.from_ansi(console.file.getvalue()).plain.splitlines()
    assert "The race takes about 11 min." in lines and max(map(len, lines)) <= 80
    assert any(line.startswith("round 2 of 4, 30 methods") and "3/31" in line for line in lines)
