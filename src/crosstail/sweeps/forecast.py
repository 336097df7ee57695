"""How long a race takes: known before its first run, and corrected by what finished runs took."""

import time
from collections.abc import Mapping

import msgspec

from crosstail.sweeps.halving import ALWAYS, UNTRAINED, Round
from crosstail.sweeps.outlook import Outlook
from crosstail.sweeps.plan import Plan
from crosstail.sweeps.store import Store
from crosstail.sweeps.worker import Job, Outcome

TRUST = 0.1  # share of the work after which the measured pace counts as much as the estimate


class Forecast:
    """The work that is left: its runs, each with the seconds that one run of its method takes."""

    def __init__(
        self, plan: Plan, seconds: Mapping[str, float], workers: int, store: Store, startup: float = 0.0
    ) -> None:
        self.plan, self.seconds, self.workers, self.startup = plan, seconds, workers, startup
        known = {m: [run.key for h in plan.drawn[m] for own in plan.finals(m, h) for run in own] for m in plan.methods}
        self._ended = {method: set(filter(store.has, keys)) for method, keys in known.items()}
        self._done, self._total, self._began = 0.0, 0.0, time.perf_counter()

    def begin(self, at: Round, last: bool = False) -> None:
        """Start a round, which may be the last one although others could follow."""
        self.round, self.ends_here = at, last
        self._runs = {method: self._number(method, at.plan.trials, at.plan.seeds) for method in at.plan.methods}
        self._rest = self._expected(at)
        self._total = self._total or self._work

    def end(self, job: Job, outcome: Outcome) -> None:
        """Count a run; one that was finished before took no time."""
        own = self._ended[job.spec.method]
        if job.spec.key not in own and outcome.how != "kept":
            self._done += self.seconds[job.spec.method]
        own.add(job.spec.key)

    def outlook(self, news: str = "") -> Outlook:
        """The state of the race."""
        runs = sum(self._runs.values())
        left = self.startup * (not self._done) + self._pace * self._work / self.workers
        return Outlook(self.round.name, len(self._runs), runs - sum(self._open.values()), runs, left, news)

    @property
    def rest(self) -> float:
        """Seconds that the rounds after this one take."""
        return self._pace * self._rest / self.workers

    @property
    def _open(self) -> dict[str, int]:
        return {method: max(0, number - len(self._ended[method])) for method, number in self._runs.items()}

    @property
    def _work(self) -> float:
        own = sum(number * self.seconds[method] for method, number in self._open.items())
        return own if self.ends_here else own + self._rest

    @property
    def _pace(self) -> float:
        """Seconds that one estimated second takes."""
        trust = TRUST * self._total or 1.0
        spent = self.workers * max(0.0, time.perf_counter() - self._began - self.startup) if self._done else 0.0
        return (trust + spent) / (trust + self._done)

    def _number(self, method: str, trials: int, seeds: int) -> int:
        """How many runs these are; trials without a hyperparameter to search are the same run."""
        drawn = {msgspec.json.encode(hparams, order="sorted") for hparams in self.plan.drawn[method][:trials]}
        return len(self.plan.folds) * (len(drawn) + seeds - 1)

    def _expected(self, at: Round) -> float:
        """Work of the later rounds, whichever of the methods get that far."""
        before = {m: max(self._runs.get(m, 0), len(self._ended[m])) for m in self.plan.methods}
        candidates = self.plan.methods if at.name == UNTRAINED else at.plan.methods
        number = sum(method not in ALWAYS for method in candidates)
        found = 0.0
        for size in at.later:
            for method in candidates:
                runs = self._number(method, size.trials, size.seeds)
                share = 1.0 if method in ALWAYS else size.methods / number
                found += share * self.seconds[method] * max(0, runs - before[method])
                before[method] = max(runs, before[method])
        return found
