"""`fit --dry-run` says what a run costs, and a run that trains a network says it before it starts."""

import numpy as np
import pytest


@pytest.fixture
def pictures(tmp_path):
    rng = np.random.default_rng(0)
    y, domain = np.tile([0, 1], 30), np.repeat([0, 1], 30)
    np.savez(tmp_path / "p.npz", x=rng.integers(0, 256, (60, 16, 16, 3), dtype=np.uint8), y=y, domain=domain)
    return str(tmp_path / "p.npz")


def test_a_dry_run_says_what_it_costs_and_writes_nothing(pictures, crosstail, tmp_path):
    own = f"fit {pictures} --backbone efficientnet_lite0 --resolution 64 --out {tmp_path / 'run'}"
    said = crosstail(f"{own} --tune last --dry-run").ok().out
    assert said.startswith("this takes about ") and " of memory and 0" not in said and "kB of disk" in said
    assert "about" in crosstail(f"{own} --tune all --dry-run").ok().out and not (tmp_path / "run").exists()
    folds = crosstail(f"{own} --tune last --folds 3 --refit --dry-run").ok().out
    assert folds.startswith("each of the 4 runs takes about")
    assert "takes about" in crosstail(f"{own} --tune last --steps 1 --evaluations 1").ok().err
