import json
from pathlib import Path

import pytest

from crosstail.training import RunSpec
from crosstail.training.fit import train_run

COMMON = {"backbone": "mlp", "width": 8, "steps": 6, "batch_size": 4, "evaluations": 2}


@pytest.fixture
def runs(crosstail, vectors):
    for name, spec in {
        "erm": {},
        "boda": {"algorithm": "boda", "seed": 1},
        "other": {"labels": ("forward:3",)},
    }.items():
        train_run(RunSpec(dataset=vectors, **{"algorithm": "erm", **COMMON, **spec}), Path(name))


def test_two_runs_are_compared_overall_and_pair_by_pair(crosstail, runs):
    done = crosstail("compare boda erm --out compare.html").ok()
    assert "pair average" in done.out and "corrected p" in done.out and "compare.html" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    page = Path("compare.html").read_text(encoding="utf-8")
    assert "boda against erm" in page and "data-chart=" in page
    found = json.loads(crosstail("compare boda erm --json").out)
    assert found["metrics"]["pair average"]["low"] <= found["metrics"]["pair average"]["estimate"]
    assert {"domain", "class", "difference", "p", "adjusted"} <= set(found["pairs"][0])


def test_backbones_that_take_images_of_other_sizes_are_compared(crosstail, make_photos, refused):
    short = "--algorithm erm --tune all --no-augment --weights random --steps 1 --evaluations 1 --batch-size 2"
    for size in (32, 48):
        out = f"--backbone timm:test_resnet --resolution {size} --out px{size}"
        crosstail(f"fit {make_photos(8) if size == 32 else 'photos'} {short} {out}").ok()
    done = crosstail("compare px32 px48")
    assert done.code == 0 and "pair average" in done.out, done.err
    Path("photos/day/plain/0.jpg").write_bytes(Path("photos/day/plain/1.jpg").read_bytes())
    crosstail(f"fit photos {short} --backbone timm:test_resnet --resolution 32 --out later").ok()
    assert "different data" in refused("compare px48 later")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("erm other", "labels is None and"),
        ("erm nothere", "nothere"),
        ("erm boda --out compare.pdf", ".html"),
    ],
)
def test_a_mistake_is_one_sentence(crosstail, runs, words, said):
    done = crosstail(f"compare {words}")
    assert done.code == 2 and said in done.err and len(done.err.splitlines()) <= 3
