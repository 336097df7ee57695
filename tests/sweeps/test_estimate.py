"""What a sweep takes, said before its first run, against what it takes, by a clock that only known work moves."""

import time
from dataclasses import replace

import pytest

from crosstail.sweeps import plan
from crosstail.sweeps.estimate import estimate
from crosstail.sweeps.store import Store

SLOW = '''
import time
import torch.nn.functional as F
from crosstail.algorithms._algorithm import Algorithm

class Slow(Algorithm):
    """Slow (Nobody, 2024)."""

    def losses(self, z, batch):
        time.sleep(0.5)
        return {"cross_entropy": F.cross_entropy(self.head(z), batch.y)}

    def scores(self, z, domain=None):
        time.sleep(0 if self.training else 2.0)
        return self.head(z)
'''


@pytest.fixture
def clock(monkeypatch, tmp_path):
    """The seconds that have passed: nobody sleeps, and nothing else takes time."""
    now = [0.0]

    def sleep(seconds):
        now[0] += seconds

    (tmp_path / "slow.py").write_text(SLOW)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("methods", "trials", "seeds"),
    [
        (["./slow.py"], 2, 1),
        (["./slow.py:retrain"], 1, 3),
        (["./slow.py", "./slow.py:retrain", "./slow.py:ncm"], 1, 2),
        (["./slow.py:retrain", "./slow.py:ncm"], 1, 1),
    ],
)
@pytest.mark.parametrize("changes", [{}, {"steps": 100, "evaluations": 7}, {"steps": 30, "protocol": "dg"}])
def test_an_estimate_is_within_half_again(shared, run, clock, tmp_path, methods, trials, seeds, changes) -> None:
    asked = plan.make(replace(shared, **changes), methods, trials=trials, seeds=seeds)
    costs, said = estimate(asked, 1)
    assert said == pytest.approx(sum(cost.seconds for cost in costs)) and [cost.method for cost in costs] == methods
    began = clock[0]
    run(asked, Store(tmp_path / "sweep"))
    needed = clock[0] - began
    assert needed / 1.5 < said < 1.5 * needed


def test_workers_share_the_runs_but_not_a_single_one(shared, clock) -> None:
    asked = plan.make(shared, ["./slow.py"], trials=1, seeds=4)
    alone, three, many = (estimate(asked, workers)[1] for workers in (1, 3, 9))
    assert three == pytest.approx(alone / 2) and many == pytest.approx(alone / 2)  # the first seed, then the others


def test_an_estimate_reports_progress(shared, clock) -> None:
    told = []
    estimate(plan.make(shared, ["erm", "./slow.py:retrain"], trials=1), 1, lambda *said: told.append(said))
    names = list(dict.fromkeys(what for what, _, _ in told if what.startswith("measuring")))
    assert names == [f"measuring {what}" for what in ("erm: stage 1", "./slow.py:retrain: stage 1")] + [
        "measuring ./slow.py:retrain: stage 2"
    ]
    assert max(done for what, done, _ in told if what == names[0]) == 10
