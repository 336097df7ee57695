"""Options of a run: the fields of RunSpec with the names that they have on the command line."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from cyclopts import Parameter, Token
from docstring_parser import parse_from_object

from crosstail import discovery, metrics
from crosstail.data import protocols
from crosstail.data.spec import DataSpec
from crosstail.training.spec import RunSpec, in_order


def _named_values(_: Any, tokens: Sequence[Token]) -> dict[str, str]:
    """Convert repeated name=value tokens into a dictionary."""
    values = {}
    for token in tokens:
        if isinstance(token, str):  # a dictionary, as after --hp.lr
            raise ValueError(f"expected name=value after a space, such as {token}=1")
        name, _, value = token.value.partition("=")
        if not name or not value:
            raise ValueError(f"expected name=value, got {token.value!r}")
        values[name] = value
    return values


def options(*, without: Sequence[str] = ()) -> Parameter:
    """The fields of a class as options, without some of them."""
    return Parameter(name="*", parse=re.compile(rf"^(?!({'|'.join(without)})$)"))


HIDDEN = Parameter(parse=False)
SPLIT = ("protocol", "unseen", "left_out", "folds", "fold", "seed")
SWEPT = ("algorithm", "second_stage", "stop_at", "left_out", "seed")
NAMED_VALUES = Parameter(converter=_named_values, accepts_keys=False, n_tokens=-1, metavar="NAME=VALUE")
"""A dictionary as a repeatable option, such as `--hp lr=0.1 --hp nu=1`."""
HELP = {
    declared.arg_name: declared.description
    for kind in reversed(RunSpec.mro()[:-1])
    for declared in parse_from_object(kind).params
}
"""The help of every field of RunSpec."""
HELP["protocol"] = "; ".join(f"{n}: {protocols.summary(n)}" for n in discovery.names(protocols.PACKAGE)) + "."
HELP["select_on"] = f"{HELP['select_on']} One of {', '.join(metrics.criteria())}."


def option(field_name: str, **kwargs: Any) -> Parameter:
    """The option for a field of RunSpec, with the help text of that field."""
    return Parameter(help=HELP[field_name], **kwargs)


def without_dg(help_text: str) -> str:
    """A help text for a verb without --protocol.

    >>> without_dg("Seed of the split; with dg, of the search too. Default: 0, with dg 1.")
    'Seed of the split. Default: 0.'
    """
    return re.sub("[;,] with dg[^.]*", "", help_text)


Data = Annotated[str, option("dataset", name="DATA")]
Columns = Annotated[dict[str, str], NAMED_VALUES, option("columns", name="--column")]
SkipBroken = Annotated[bool, option("skip_broken")]
DataSeed = Annotated[int, Parameter(help=without_dg(HELP["data_seed"]))]
Labels = Annotated[tuple[str, ...] | None, Parameter(help=without_dg(HELP["labels"]))]
SelectOn = Annotated[str | None, Parameter(help=without_dg(HELP["select_on"]))]


@dataclass(frozen=True, kw_only=True)
class ReadOptions(DataSpec):
    """The fields of a DataSpec as options of a verb that does not split the data."""

    dataset: Annotated[str, HIDDEN] = ""  # the argument DATA
    labels: Labels = None
    columns: Columns = field(default_factory=dict)
    data_seed: DataSeed = 0

    def __post_init__(self) -> None:
        """Leave validation to the DataSpec, which has all fields."""

    def spec(self, dataset: str) -> DataSpec:
        return DataSpec(**{f.name: getattr(self, f.name) for f in fields(DataSpec)} | {"dataset": dataset})


@in_order
@dataclass(frozen=True, kw_only=True)
class RunOptions(RunSpec):
    """Every field of a RunSpec as an option. Only the fields with a special spelling are repeated here."""

    dataset: Annotated[str, HIDDEN] = ""  # the argument DATA
    protocol: Annotated[str, option("protocol")] = RunSpec.protocol
    columns: Columns = field(default_factory=dict)
    select_on: Annotated[str | None, option("select_on")] = None
    hparams: Annotated[dict[str, Any], NAMED_VALUES, Parameter(name="--hp")] = field(default_factory=dict)
    augment: Annotated[bool | None, Parameter(negative="--no-augment")] = None

    def __post_init__(self) -> None:
        """Leave validation to the RunSpec, which has all fields."""

    def spec(self, **changes: Any) -> RunSpec:
        return RunSpec(**{f.name: getattr(self, f.name) for f in fields(RunSpec)} | changes)
