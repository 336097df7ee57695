"""What a race tells while it runs: how long it takes, and what its first part has shown."""

from crosstail.metrics import find
from crosstail.reports.wording import duration, interval, number, several
from crosstail.sweeps.forecast import Forecast
from crosstail.sweeps.halving import UNTRAINED
from crosstail.sweeps.plan import Plan
from crosstail.sweeps.race_result import RaceResult


def beginning(forecast: Forecast, plan: Plan) -> str:
    """How long the race takes, and what comes first."""
    at, left = forecast.round, forecast.outlook().left
    crew = f"{several(len(plan.methods), 'method')}, {several(forecast.workers, 'run')} at a time"
    untrained = several(len(at.plan.methods), "method without training", "methods without training")
    if forecast.ends_here:
        return f"Time for {untrained}: about {duration(left)}."
    first = f" Of that, {duration(left - forecast.rest)} are for {untrained}, first." if at.name == UNTRAINED else ""
    return f"The race takes about {duration(left)}: {crew}.{first}"


def after_quick(found: RaceResult, forecast: Forecast, plan: Plan) -> str:
    """What the methods without training have reached, and what the others take and may bring."""
    rest = several(len(plan.methods) - len(forecast.round.plan.methods), "other method")
    more = f"Training the {rest} takes about {duration(forecast.rest)}"
    if not found.leaderboard:
        return f"{more}."
    first = found.leaderboard[0]
    test = f"{number(100 * first.test)} % on test (95 % interval {interval(100 * first.low, 100 * first.high)})"
    return (
        f"Of the methods that train nothing, {first.method} is best on validation "
        f"({find(first.selected_on).shown(first.validation)}), with {test}. {more}."
    )
