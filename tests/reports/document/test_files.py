import shutil
import subprocess

import pandas as pd
import pytest

from crosstail.reports.document import latex
from crosstail.reports.document.files import save_chart, save_floating, save_table
from crosstail.reports.document.model import Chart, Table
from crosstail.reports.vega_lite import draw

CHART = Chart("one", "One point", draw(pd.DataFrame({"x": [1]})).mark("point").encode(x="x:Q"), "Points: one")


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_one_chart_can_be_saved_in_each_format(tmp_path, suffix):
    path = tmp_path / f"chart.{suffix}"
    save_chart(CHART, path)
    content = path.read_bytes()
    assert {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF"}[suffix] in content[:200]
    assert suffix != "svg" or b"One point" in content


def test_an_unknown_format_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match=r"chart\.jpeg.*\.html, \.png, \.svg or \.pdf"):
        save_chart(CHART, tmp_path / "chart.jpeg")


def test_a_table_is_saved_as_csv_with_all_digits_markdown_and_latex(tmp_path):
    numbers = pd.DataFrame({"method": ["a_b"], "accuracy": [45.678]})
    table = Table(header=["method", "accuracy"], rows=[["a_b", "45.7"]], name="t", numbers=numbers, emphasised={(0, 1)})
    save_table(table, tmp_path / "tables")
    text = {path.suffix: path.read_text() for path in (tmp_path / "tables").iterdir()}
    assert text[".csv"] == "method,accuracy\na_b,45.678\n"
    assert text[".md"] == "| method | accuracy |\n|---|---|\n| a\\_b | **45.7** |\n"
    assert "a\\_b & \\textbf{45.7} \\\\" in text[".tex"] and "\\begin{tabular}{lr}" in text[".tex"]


def wide_table():
    words = ", ".join(f"name{i} {i}" for i in range(30))
    return Table(name="wide", title="All of it", header=[f"c{i}" for i in range(12)], rows=[["-6.5"] * 11 + [words]])


def test_long_texts_in_latex_are_wrapped_and_minus_signs_are_signs():
    text = latex.table(wide_table())
    assert "rrp{" in text and "$-$6.5" in text and " -6.5" not in text


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs LaTeX")
def test_no_table_is_wider_than_the_column(tmp_path):
    preamble = r"\documentclass[twocolumn]{article}\usepackage{booktabs,graphicx}\begin{document}\noindent"
    save_floating(wide_table(), tmp_path)
    text = "\n".join([preamble, latex.table(wide_table()), r"\input{wide}", r"\end{document}"])
    (tmp_path / "paper.tex").write_text(text, encoding="utf-8")
    subprocess.run(["pdflatex", "-halt-on-error", "paper.tex"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    assert "Overfull" not in (tmp_path / "paper.log").read_text(encoding="latin-1")
