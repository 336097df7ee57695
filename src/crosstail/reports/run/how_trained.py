"""A sentence or two on how a run was trained."""

from collections.abc import Sequence

from crosstail import discovery
from crosstail.reports.wording import selected_on
from crosstail.training.resolve import steps_of_stages
from crosstail.training.result import RunResult


def how_trained(result: RunResult, selected: str) -> str:
    """How long, and what was kept of it; `selected` says so for a run whose best evaluation was."""
    last = "The weights are those of its last step." if result.spec.stages and len(result.selected_steps) == 1 else ""
    return f"{length(result)} {fitted(result) or stopped(result) or last or selected}"


def taken_steps(result: RunResult) -> Sequence[int]:
    """How many steps each stage took; if only a user's file could say, the selected ones."""
    spec = result.spec  # whose files a report does not run
    own = any(discovery.own_files(one or "") for one in (spec.algorithm, spec.second_stage))
    return result.selected_steps if own and spec.second_stage else steps_of_stages(spec)


def length(result: RunResult) -> str:
    """How long training took."""
    spec, steps = result.spec, max(taken_steps(result))
    took = f"seed {spec.seed}, {result.seconds:.0f} s."
    if not steps:
        return f"No training steps, {took}"
    return f"{spec.steps:,} steps with {spec.batch_size} samples per domain, {took}"


def fitted(result: RunResult) -> str:
    """What the second stage was fitted on, if it was fitted."""
    if len(result.selected_steps) < 2 or taken_steps(result)[1]:
        return ""
    spec, first = result.spec, result.selected_steps[0]
    begun = f"The second stage, {spec.second_stage}, was fitted on the features"
    if not taken_steps(result)[0]:
        return f"{begun} as they are."
    if spec.stop_at is not None:
        return f"{begun}. {stopped(result)}"
    if spec.average == "swad":
        return f"{begun} of SWAD's average over stage one."
    if spec.stages:
        return f"{begun} of the last step of stage one: validation chose only how far to tune."
    return f"{begun} of step {first:,} of stage one, which has the best {selected_on(spec.selected_on)} on validation."


def stopped(result: RunResult) -> str:
    """Where the training of a model on every sample ended, and why there; empty for others."""
    if result.spec.stop_at is None or not any(taken := taken_steps(result)):
        return ""
    trained = [step for step, steps in zip(result.selected_steps, taken, strict=True) if steps]
    stages = " of the two stages" if len(trained) == 2 else ""
    chosen = ", the median of what the runs before it selected on validation" if result.estimate else ""
    return f"Training was stopped after step {' and '.join(f'{step:,}' for step in trained)}{stages}{chosen}."
