"""The page is whole, offline, and shows names from the data as text."""

import re
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd
import pytest

from crosstail.report.page import Page, save_chart

EVIL = "<script>alert(1)</script>"


def points(name: str) -> alt.Chart:
    return alt.Chart(pd.DataFrame({"x": [name]})).mark_point().encode(x="x:N")


def test_names_from_the_data_are_shown_as_text(tmp_path: Path) -> None:
    page = Page(EVIL)
    page.heading(EVIL)
    page.text(EVIL)
    page.table([EVIL], [[EVIL]])
    page.images(np.zeros((1, 4, 4, 3), np.uint8), EVIL)
    page.chart(points(EVIL), EVIL)
    page.save(tmp_path / "page.html")
    assert EVIL not in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_nothing_is_loaded_from_elsewhere(tmp_path: Path) -> None:
    page = Page("offline")
    page.chart(points("a"), "marks")
    page.save(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)\s*=\s*["']?https?:""", text)
    assert "vegaEmbed" in text
    assert text.count('aria-label="marks"') == 1


@pytest.mark.parametrize("suffix", ["html", "png", "svg", "pdf"])
def test_one_chart_can_be_saved_in_each_format(tmp_path: Path, suffix: str) -> None:
    chart = alt.Chart(pd.DataFrame({"x": [1]}), title="one").mark_point().encode(x="x:Q")
    path = tmp_path / f"chart.{suffix}"
    save_chart(chart, path)
    head = path.read_bytes()[:200]
    assert {"html": b"<!doctype html>", "png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF"}[suffix] in head


def test_unknown_format_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    chart = alt.Chart(pd.DataFrame({"x": [1]})).mark_point()
    with pytest.raises(ValueError, match=r"chart\.jpeg.*\.html, \.png, \.svg or \.pdf"):
        save_chart(chart, tmp_path / "chart.jpeg")
