"""As mdlt, with the selection, sampling and evaluations of the code of the BoDA authors."""

from dataclasses import replace
from typing import TYPE_CHECKING

from crosstail.data.protocols import by_hundreds, mdlt

if TYPE_CHECKING:
    from crosstail.data.benchmarks._sheet import DataSheet


def defaults(sheet: "DataSheet") -> dict[str, int]:
    """51 evaluations, the first of them after one step."""
    return {"steps": sheet.steps + 1, "batch_size": sheet.batch_size, "evaluations": 50}


PROTOCOL = replace(
    mdlt.PROTOCOL,
    selects_on="average",
    spread="se",
    defaults=defaults,
    due=by_hundreds,
    replacement=True,
    whole_view=True,
    by_share=True,
)
