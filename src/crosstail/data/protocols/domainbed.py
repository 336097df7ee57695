"""As dg, with the steps, batches and evaluations of DomainBed."""

from dataclasses import replace
from typing import TYPE_CHECKING

from crosstail.data.protocols import by_hundreds, dg

if TYPE_CHECKING:
    from crosstail.data.benchmarks._sheet import DataSheet

EVALUATIONS = {"domain_net": 5}


def defaults(sheet: "DataSheet") -> dict[str, int]:
    """5,001 steps on every set, evaluated every 300 steps, on DomainNet every 1,000."""
    return {"steps": 5001, "batch_size": 32, "evaluations": EVALUATIONS.get(sheet.name, 17)}


PROTOCOL = replace(dg.PROTOCOL, defaults=defaults, due=by_hundreds, replacement=True, whole_view=True)
