"""Parameters that several verbs share."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

Run = Annotated[Path, Parameter(name="RUN", help="Folder of a finished run.")]
Sweep = Annotated[Path, Parameter(name="SWEEP", help="Folder of a sweep.")]
Site = Annotated[
    str | None, Parameter(help="Domain of the run that the inputs are from; without it, the domain is unknown.")
]
Json = Annotated[bool, Parameter(name="--json", help="Print JSON.")]
Trust = Annotated[bool, Parameter(help="Run the algorithm file that is stored with the run.")]
MovedWeights = Annotated[
    Path | None, Parameter(name="--weights", help="Weights of the frozen backbone, if the file has moved.")
]
