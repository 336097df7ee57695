"""crosstail fit --folds and --refit: runs, pages, what is pooled, and what the final model says of itself."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from crosstail.training.folder import RunFolder

SHORT = "--algorithm erm --width 8 --steps 6 --batch-size 4 --evaluations 3"


def results(out, number):
    return [RunFolder(Path(out) / f"fold-{k}").result() for k in range(1, number + 1)]


def test_every_sample_is_tested_once_and_the_accuracy_is_pooled(crosstail, vectors):
    done = crosstail(f"fit {vectors} {SHORT} --folds 3 --out cv --json")
    assert done.code == 0 and done.err == ""
    answer, runs = json.loads(done.out), results("cv", 3)
    assert len(answer["runs"]) == 3 and answer["refit"] is None
    with np.load(vectors) as arrays:
        table = np.zeros((2, 3), int)
        np.add.at(table, (arrays["domain"], arrays["y"]), 1)
    assert answer["test"]["totals"] == table.tolist()
    hits = np.sum([run.test.hits for run in runs], axis=0)
    assert answer["test"]["hits"] == hits.tolist()
    assert answer["test"]["pair_average"] == pytest.approx(np.mean(hits / table))
    again = crosstail(f"fit {vectors} {SHORT} --folds 3 --out cv --json")
    assert json.loads(again.out) == answer


def test_the_terminal_and_the_page_show_the_pooled_accuracy_and_each_fold(crosstail, vectors):
    done = crosstail(f"fit {vectors} {SHORT} --folds 3 --out cv")
    assert done.code == 0 and max(map(len, done.out.splitlines()[:-1])) <= 80
    runs = results("cv", 3)
    hits, totals = (np.sum([getattr(run.test, name) for run in runs], axis=0) for name in ("hits", "totals"))
    pooled = f"{100 * np.mean(hits / totals):.1f}"
    (average,) = (line.split() for line in done.out.splitlines() if line.startswith("pair average, %"))
    lines = {line.split()[0]: line.split() for line in done.out.splitlines() if line.strip()}
    assert average[3] == pooled and lines["pooled"][1:3] == [str(totals.sum()), pooled]
    for k, run in enumerate(runs, 1):
        tested = str(np.sum(run.test.totals))
        assert lines[str(k)][1:3] == [tested, f"{100 * run.test.pair_average:.1f}"]
    spread = np.std([100 * run.test.pair_average for run in runs], ddof=1)
    assert lines["±"][4] == f"{spread:.1f}"
    assert re.fullmatch("Next: crosstail fit .* --folds 3 .*--refit --out cv", done.out.splitlines()[-1])
    page = Path("cv/report.html").read_text(encoding="utf-8")
    assert re.search(rf">pooled<.*>{totals.sum()}<.*>{pooled}<", page)
    assert "--folds 3" in page and "--fold " not in page
    assert all(Path(f"cv/fold-{k}/report.html").exists() for k in (1, 2, 3))


def test_folds_and_other_runs_do_not_share_a_folder(crosstail, vectors, refused):
    crosstail(f"fit {vectors} {SHORT} --folds 3 --out cv").ok()
    for other in ("--folds 4", ""):
        assert "--out" in refused(f"fit {vectors} {SHORT} {other} --out cv")


@pytest.mark.parametrize(
    ("protocol", "models"), [("--folds 3", "3 models"), ("", "one model"), ("--protocol dg", "2 models")]
)
def test_the_final_model_says_that_it_was_trained_on_everything(crosstail, vectors, protocol, models, full_page):
    done = crosstail(f"fit {vectors} {SHORT} {protocol} --second-stage retrain --refit --out cv")
    assert done.code == 0 and max(map(len, done.out.splitlines()[:-1])) <= 80
    said = " ".join(done.out.split())
    assert "every sample" in said and models in said and f"crosstail predict cv/refit {vectors}" in said
    final = RunFolder(Path("cv/refit")).result()
    assert final.estimate is not None and len(final.spec.stop_at) == 2
    for file in ("model_card.md", "report.html"):
        text = Path("cv/refit", file).read_text(encoding="utf-8")
        assert "every sample" in text and models in text and f"{100 * final.estimate.pair_average:.1f}" in text
    again = crosstail(f"fit {vectors} {SHORT} {protocol} --second-stage retrain --refit --out cv --json")
    assert json.loads(again.out)["refit"]["estimate"]["hits"] == final.estimate.hits


def test_the_final_model_predicts_and_is_exported_but_has_nothing_to_be_tested_on(crosstail, vectors):
    crosstail(f"fit {vectors} {SHORT} --folds 3 --refit --out cv").ok()
    crosstail(f"predict cv/refit {vectors}").ok()
    crosstail("graph cv/refit").ok()
    crosstail("export cv/refit --out m.pt2 --format torch").ok()
    assert json.loads(Path("m.pt2.json").read_text())["estimate"]["totals"]
    assert "training samples" in json.loads(Path("m.pt2.json").read_text())["compared"]["inputs"]
    done = crosstail(f"evaluate cv/refit {vectors}")
    assert done.code == 2 and done.err.startswith("error: 0 of the") and "--split" not in done.err
    test = crosstail(f"evaluate cv/fold-2 {vectors} --split test --json")
    assert json.loads(test.out)["hits"] == RunFolder(Path("cv/fold-2")).result().test.hits
    done = crosstail("report cv --page-only --out report")
    assert done.code == 0 and "skipped: cv/refit" in done.out


def test_patients_in_training_and_test_are_said_and_the_next_command_keeps_them_together(crosstail):
    i = np.arange(96)
    rows = [f"{k},{'ab'[k % 2]},{k // 2 % 2},p{k // 4}" for k in i]
    Path("m.csv").write_text("\n".join(["x,domain,label,patient id", *rows]), encoding="utf-8")
    np.save("m.npy", np.random.default_rng(0).normal(size=(96, 4)).astype(np.float32))
    for options, final in (("", None), ("--refit", "run-refit/refit")):
        out = Path(f"run{options[1:]}")
        done = crosstail(f"fit m.csv {SHORT} {options} --out {out}")
        assert done.code == 0 and "share its value with a training sample: accuracy is inflated" in done.err
        following = done.out.partition("Next: crosstail ")[2]
        assert following.startswith("fit m.csv ") and "--column 'group=patient id'" in following
        for run in [str(out), *[final] * (final is not None)]:
            assert RunFolder(Path(run)).result().data.leaks == "patient id"
        assert options in following and crosstail(following).code == 0
    kept = RunFolder(Path("run-2")).result()
    assert kept.data.leaks is None and not any("looks like a group" in note for note in kept.data.notes)
