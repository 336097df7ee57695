"""The page of a run: each table against hand-made results, and the page against the names and runs it may meet."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosstail.metrics import PairAccuracy, wilson
from crosstail.report import page as page_module
from crosstail.report.run.charts import NUMBERED, PANEL, pair_chart
from crosstail.report.run.page import DRAWN, write_page
from crosstail.report.run.tables import (
    accuracy_curve,
    fold_table,
    headline_table,
    loss_curve,
    pair_table,
    worst_table,
)
from crosstail.training import RunSpec

HITS, TOTALS = [[9, 1], [3, 0]], [[10, 4], [6, 0]]
COUNTS = [[150, 40], [7, 0]]


def result(
    hits: Any = HITS, totals: Any = TOTALS, counts: Any = COUNTS, *, alpha: float | None = 2.0, **spec: Any
) -> dict[str, Any]:
    counts = np.asarray(counts)
    return {
        "spec": RunSpec(dataset="photos", **{"steps": 10, **spec}).to_json(),
        "hparams": {"lr": 0.01, "weight_decay": 0.0},
        "selected_step": 5,
        "seconds": 1.5,
        "domains": [f"d{d}" for d in range(counts.shape[0])],
        "classes": [f"c{c}" for c in range(counts.shape[1])],
        "counts": counts.tolist(),
        "validation": PairAccuracy(np.asarray(hits), np.asarray(totals)).to_json(counts),
        "test": PairAccuracy(np.asarray(hits), np.asarray(totals)).to_json(counts),
        "transferability": {"alpha": alpha, "beta": 3.0, "gamma": 4.0},
        "input_shape": [4],
        "data": {"checksum": "a" * 64, "samples": 20, "notes": []},
    }


def fold(d: int, hits: list[int], totals: list[int], **other: Any) -> dict[str, Any]:
    """A run that leaves domain d of two out."""
    counts = [[30, 5], [30, 5]]
    counts[d] = [0, 0]
    tables = [[[0, 0], [0, 0]] for _ in range(2)]
    tables[0][d], tables[1][d] = hits, totals
    return result(*tables, counts, protocol="dg", unseen=f"d{d}", **other)


def record(stage: int, step: int, validation: float | None, test: float, **losses: float) -> dict[str, Any]:
    figures = {"validation": {"pair_average": validation}, "test": {"pair_average": test}}
    return {"stage": stage, "step": step, "seconds": 0.1, "losses": losses, **figures}


RECORDS = [
    record(1, 0, 0.1, 0.2),
    record(1, 5, 0.5, 0.4, cross_entropy=1.5, alignment=3.0),
    record(1, 10, 0.7, 0.6, cross_entropy=1.0, alignment=2.0),
    record(2, 0, 0.1, 0.1),
    record(2, 5, 0.9, 0.8, cross_entropy=0.5),
    record(2, 10, 0.8, 0.9, cross_entropy=0.25),
]


def save(folder: Path, result: dict[str, Any], records: list[dict[str, Any]] = RECORDS) -> Path:
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    (folder / "records.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return folder


def page_of(folder: Path, *folders: Path) -> str:
    """The page without the script that draws it, which is the same for all."""
    write_page(folder, folders or [folder])
    text = (folder / "report.html").read_text(encoding="utf-8")
    return text.replace(page_module._bundle(), "")


def test_pairs_have_counts_shots_accuracy_and_wilson_interval() -> None:
    table = pair_table([result()])
    assert table[["domain", "class"]].to_numpy().tolist() == [["d0", "c0"], ["d0", "c1"], ["d1", "c0"], ["d1", "c1"]]
    assert table["count"].tolist() == [150, 40, 7, 0]
    assert table["shot"].tolist() == ["many", "medium", "few", "zero"]
    assert table["hits"].tolist() == [9, 1, 3, 0] and table["tested"].tolist() == [10, 4, 6, 0]
    assert table["accuracy"].tolist()[:3] == pytest.approx([90, 25, 50])
    assert math.isnan(table["accuracy"][3])  # no test samples
    for row, (hits, total) in enumerate([(9, 10), (1, 4), (3, 6)]):
        low, high = wilson(hits, total)
        assert (table["low"][row], table["high"][row]) == pytest.approx((100 * low, 100 * high))


def test_shots_are_those_of_the_data_sheet() -> None:
    counts = [[31, 30, 9, 8]]
    run = result([[1] * 4], [[2] * 4], counts) | {"spec": RunSpec(dataset="digits").to_json()}
    assert pair_table([run])["shot"].tolist() == ["many", "medium", "medium", "few"]


def test_folds_together_have_every_pair_once_with_the_counts_of_the_class_elsewhere() -> None:
    table = pair_table([fold(0, [1, 2], [4, 4]), fold(1, [3, 4], [5, 5])])
    assert table["domain"].tolist() == ["d0", "d0", "d1", "d1"]
    assert table["accuracy"].tolist() == pytest.approx([25, 50, 60, 80])
    assert table["count"].tolist() == [30, 5, 30, 5]
    assert table["shot"].tolist() == ["medium", "few", "medium", "few"]


def test_one_fold_has_rows_for_its_unseen_domain_only() -> None:
    table = pair_table([fold(1, [3, 4], [5, 5])])
    assert table["domain"].tolist() == ["d1", "d1"] and table["count"].tolist() == [30, 5]


def test_the_worst_pairs_come_first_and_of_equal_ones_the_more_certain() -> None:
    pairs = pair_table([result([[0, 0, 5], [2, 1, 0]], [[2, 50, 5], [4, 2, 0]], [[1, 1, 1], [1, 1, 1]])])
    assert worst_table(pairs)[["domain", "class"]].to_numpy().tolist() == [
        ["d0", "c1"],  # 0 of 50
        ["d0", "c0"],  # 0 of 2
        ["d1", "c0"],  # 2 of 4
        ["d1", "c1"],  # 1 of 2
        ["d0", "c2"],
    ]
    assert len(worst_table(pairs, 3)) == 3


def test_the_headline_has_the_figures_of_the_run_with_their_intervals() -> None:
    run = result()
    accuracy = PairAccuracy.from_json(run["test"])
    table = headline_table([run]).set_index("figure")
    assert table["value"].to_dict() == pytest.approx(
        {
            "pair average": (90 + 25 + 50) / 3,
            "worst pair": 25,
            "average over domains": (100 * 10 / 14 + 50) / 2,
            "worst domain": 50,
            "many-shot pairs": 90,
            "medium-shot pairs": 25,
            "few-shot pairs": 50,
        }
    )
    for figure, view in (
        ("pair average", "pair_average"),
        ("worst pair", "worst_pair"),
        ("worst domain", "worst_domain"),
    ):
        low, high = accuracy.interval(view)  # type: ignore[arg-type, misc]
        assert table.loc[figure, ["low", "high"]].tolist() == pytest.approx([100 * low, 100 * high])
    assert table.loc["worst pair", "what"] == "d0 / c1" and table.loc["worst domain", "what"] == "d1"
    assert table.loc["few-shot pairs", "what"] == "1 with 1 to 20 training samples"


def test_the_headline_of_folds_is_over_all_of_them_without_shots() -> None:
    table = headline_table([fold(0, [1, 2], [4, 4]), fold(1, [3, 4], [5, 5])]).set_index("figure")
    assert table["value"].to_dict() == pytest.approx(
        {
            "pair average": (25 + 50 + 60 + 80) / 4,
            "worst pair": 25,
            "average over domains": (37.5 + 70) / 2,
            "worst domain": 37.5,
        }
    )


def test_the_headline_of_one_domain_has_no_worst_one() -> None:
    table = headline_table([fold(1, [3, 4], [5, 5])]).set_index("figure")
    assert table["value"].to_dict() == pytest.approx({"pair average": 70, "worst pair": 60, "all samples": 70})
    assert table.loc["all samples", "what"] == "d1"


def test_each_unseen_domain_has_its_accuracy_and_the_last_row_is_the_mean() -> None:
    runs = [fold(0, [1, 2], [4, 6], alpha=1.0), fold(1, [3, 4], [5, 5], alpha=None)]
    table = fold_table(runs).set_index("unseen")
    assert table.index.tolist() == ["d0", "d1", "mean"]
    assert table["accuracy"].tolist() == pytest.approx([30, 70, 50])
    assert table["pair average"].tolist() == pytest.approx([(25 + 100 / 3) / 2, 70, (25 / 2 + 100 / 6 + 70) / 2])
    low, high = wilson(3, 10)
    assert table.loc["d0", ["low", "high"]].tolist() == pytest.approx([100 * low, 100 * high])
    assert table.loc["mean", "low"] < 50 < table.loc["mean", "high"]
    assert table.loc["d0", "α"] == 1 and math.isnan(table.loc["d1", "α"]) and table.loc["mean", "α"] == 1
    assert table["γ"].tolist() == [4, 4, 4]


def test_curves_count_the_steps_of_both_stages_and_leave_out_untrained_models() -> None:
    table = accuracy_curve(result(), RECORDS)
    validation = table[table["split"] == "validation"]
    assert validation["at"].tolist() == [5, 10, 15, 20]
    assert validation["accuracy"].tolist() == pytest.approx([50, 70, 90, 80])
    assert table[table["split"] == "test"]["accuracy"].tolist() == pytest.approx([40, 60, 80, 90])
    assert table[table["reported"]][["stage", "step", "split"]].to_numpy().tolist() == [
        [2, 5, "validation"],
        [2, 5, "test"],
    ]


def test_a_run_without_validation_samples_has_a_test_curve() -> None:
    table = accuracy_curve(result(), [record(1, 0, None, 0.1), record(1, 5, None, 0.4)])
    assert table["split"].tolist() == ["test"]


def test_loss_terms_are_listed_by_name() -> None:
    table = loss_curve(result(), RECORDS)
    assert table[["at", "term", "loss"]].to_numpy().tolist() == [
        [5, "cross_entropy", 1.5],
        [5, "alignment", 3.0],
        [10, "cross_entropy", 1.0],
        [10, "alignment", 2.0],
        [15, "cross_entropy", 0.5],
        [20, "cross_entropy", 0.25],
    ]


def large(domains: int, classes: int) -> dict[str, Any]:
    shape = domains, classes
    totals = np.full(shape, 4)
    hits = np.broadcast_to(np.arange(classes) % 5, shape)
    return result(hits, totals, np.full(shape, 3))


def test_few_classes_have_numbers_in_their_order() -> None:
    (panel,) = pair_chart(pair_table([large(4, 10)]), "training samples").to_dict()["concat"]
    assert [layer["mark"]["type"] for layer in panel["layer"]] == ["rect", "rect", "point", "text"]
    assert (panel["layer"][0]["encoding"]["x"]["field"], panel["layer"][0]["encoding"]["y"]["field"]) == (
        "domain",
        "class",
    )


def test_many_classes_are_in_panels_from_the_worst_to_the_best() -> None:
    spec = pair_chart(pair_table([large(6, 345)]), "training samples").to_dict()
    assert NUMBERED < 345 and len(spec["concat"]) == math.ceil(345 / PANEL)
    drawn = [row for panel in spec["concat"] for row in spec["datasets"][panel["data"]["name"]]]
    assert len(drawn) == 2070
    accuracies = [row["accuracy"] for row in drawn]
    assert accuracies == sorted(accuracies)
    assert "text" not in [layer["mark"]["type"] for layer in spec["concat"][0]["layer"]]


def test_many_domains_go_downwards() -> None:
    (panel,) = pair_chart(pair_table([large(30, 2)]), "training samples").to_dict()["concat"]
    assert panel["layer"][0]["encoding"]["y"]["field"] == "domain"


EVIL = "<script>alert(1)</script>"


def test_names_from_the_data_are_shown_as_text(tmp_path: Path) -> None:
    run = result() | {"classes": [EVIL, "<!--<script>"], "domains": ["<b>d0", "d1"]}
    run["spec"]["dataset"] = f"photos{EVIL}"
    run["data"]["notes"] = [f"1 file was left out: {EVIL}"]
    text = page_of(save(tmp_path / "run", run))
    assert EVIL not in text and "<!--" not in text and "<b>" not in text
    assert "1 file was left out: &lt;script&gt;" in text  # the note
    assert "<td>&lt;b&gt;d0 / &lt;script&gt;alert(1)&lt;/script&gt;</td>" in text  # the worst pairs
    charts = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text)
    assert len(charts) == 3
    names = {row["class"] for rows in json.loads(charts[0])["datasets"].values() for row in rows}
    assert names == {EVIL, "<!--<script>"}


def test_the_page_of_a_run_has_every_part(tmp_path: Path) -> None:
    folder = save(tmp_path / "my run", result(alpha=None, decouple=True, hparams={"lr": 0.01}))
    text = page_of(folder)
    headings = re.findall(r"<h2>(.*?)</h2>", text)
    assert headings == [
        "Every pair of domain and class",
        "The worst pairs",
        "How it got there",
        "How the pairs lie to each other",
        "The data",
        "Limits",
        "Versions and checksums",
        "How to repeat it",
    ]
    assert (folder / "model_card.md").read_text(encoding="utf-8").startswith("# erm, decoupled, on photos\n")
    assert "<td>pair average</td><td>55.0</td>" in text
    assert "<td>α</td><td>–</td>" in text and "<td>β</td><td>3.00</td>" in text
    assert "--decouple" in text and "--hp lr=0.01" in text and f"--out &#x27;{folder}&#x27;" in text
    assert "Hyperparameters: lr 0.01, weight_decay 0.0." in text
    assert "photos: 20 samples, 197 of them for training, 20 for validation, 20 for test; 2 domains" in text


def test_the_page_over_folds_has_each_unseen_domain_and_the_mean(tmp_path: Path) -> None:
    folders = [
        save(tmp_path / "dg" / f"d{d}", fold(d, *figures))
        for d, figures in enumerate((([1, 2], [4, 6]), ([3, 4], [5, 5])))
    ]
    text = page_of(tmp_path / "dg", *folders)
    assert "<td>d0</td><td>30.0</td>" in text and "<td>d1</td><td>70.0</td>" in text
    assert '<td class="best">mean</td><td class="best">50.0</td>' in text
    assert "--protocol dg" in text and "--unseen" not in text
    assert "photos: 20 samples; 2 domains, 2 classes." in text  # the folds share them out differently


def test_a_run_without_test_samples_has_a_page(tmp_path: Path) -> None:
    none = result([[0, 0], [0, 0]], [[0, 0], [0, 0]])
    records = [record(1, 5, 0.5, 0.4, cross_entropy=1.0)]
    records[0]["test"]["pair_average"] = None
    assert "There are no test samples" in page_of(save(tmp_path / "run", none, records))


def test_a_run_whose_records_were_removed_has_a_page_without_curves(tmp_path: Path) -> None:
    assert "How it got there" not in page_of(save(tmp_path / "run", result(), []))


def test_too_many_pairs_are_not_drawn(tmp_path: Path) -> None:
    text = page_of(save(tmp_path / "run", large(2, DRAWN // 2 + 1)))
    assert "too many for a heat map" in text and "Heat map:" not in text


def test_a_folder_without_a_result_is_no_finished_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"is no run: it has no result\.json"):
        write_page(tmp_path, [tmp_path])


def test_the_script_is_kept_and_made_again_if_it_was_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setenv("CROSSTAIL_CACHE", str(tmp_path))
    monkeypatch.setattr(
        page_module.vl_convert, "javascript_bundle", lambda text: made.append(text) or "draw(); </script>"
    )
    build = page_module._bundle.__wrapped__
    assert build() == build() == "draw(); <\\/script>" and len(made) == 1
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(kept.read_bytes()[:-3])
    assert build() == "draw(); <\\/script>" and len(made) == 2
