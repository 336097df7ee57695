"""Parameters that several verbs share."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

Run = Annotated[Path, Parameter(name="RUN")]
Sweep = Annotated[Path, Parameter(name="SWEEP")]
Json = Annotated[bool, Parameter(name="--json", help="Print JSON.")]
