"""Progress where there is no terminal: lines in a log, few of them, and none for short work."""

import io

from rich.console import Console

from crosstail.cli import _progress


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
