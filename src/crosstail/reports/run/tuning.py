"""What it gained to tune the last stages of a network, on validation."""

from collections.abc import Iterator

from crosstail.metrics import find
from crosstail.reports.document.model import Block, Heading, Table, Text
from crosstail.reports.wording import number, several
from crosstail.training.result import RunResult, Tried

LOSS = find("log_loss")


def tuning_blocks(result: RunResult) -> Iterator[Block]:
    """The share of the tuned weights, why it was chosen, and how good each share is; nothing for other runs."""
    tuned, stages = result.tuned, result.spec.stages
    if tuned is None:
        return
    yield Heading("What tuning gained")
    part = "last stage" if stages == 1 else f"last {several(stages, 'stage')}"
    share = f"{100 * tuned.share:.0f} % of the way from the pretrained to the tuned weights"
    yield Text(f"The {part} of {result.spec.backbone} was tuned. The model has weights {share}: {tuned.why}.")
    if len(tuned.tried) < 2:
        return
    yield Table(
        header=["share", "pair average, %", "log loss", "change of the log loss, 95 % interval"],
        rows=[
            [f"{one.share:g}", number(100 * one.pair_average), LOSS.shown(one.log_loss), _change(one)]
            for one in tuned.tried
        ],
        emphasised={(i, j) for i, one in enumerate(tuned.tried) for j in range(4) if one.share == tuned.share},
        note="On the validation samples that chose the share, so it flatters the chosen one; the log loss is at the "
        "temperature that suits each share best. A share of 0 is the network before tuning.",
    )


def _change(one: Tried) -> str:
    return "–" if one.low is None or one.high is None else f"{one.low:+.3f} to {one.high:+.3f}"
