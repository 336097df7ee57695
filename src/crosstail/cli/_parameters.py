"""Parameters that several verbs share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, Token

Data = Annotated[
    str,
    Parameter(
        name="DATA",
        help="A folder `ROOT/<domain>/<class>/<image>`, a .csv or .parquet manifest, an .npz file, hf:NAME, or a name "
        "from `crosstail list datasets`.",
    ),
]
Run = Annotated[Path, Parameter(name="RUN", help="Folder of a finished run.")]
Sweep = Annotated[Path, Parameter(name="SWEEP", help="Folder of a sweep.")]
Json = Annotated[bool, Parameter(name="--json", help="Print JSON.")]
Trust = Annotated[bool, Parameter(help="Run the algorithm file that is stored with the run.")]
SkipBroken = Annotated[bool, Parameter(help="Skip images that cannot be read.")]
MovedWeights = Annotated[
    Path | None, Parameter(name="--weights", help="Weights of the frozen backbone, if the file has moved.")
]


def named_values(_: Any, tokens: Sequence[Token]) -> dict[str, str]:
    """Convert repeated `name=value` options into a dictionary."""
    values = {}
    for token in tokens:
        name, _, value = token.value.partition("=")
        if not name or not value:
            raise ValueError(f"{token.value!r} is not name=value")
        values[name] = value
    return values
