"""Parameters that several verbs share."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

Run = Annotated[Path, Parameter(name="RUN", help="Folder of a finished run.")]
Sweep = Annotated[Path, Parameter(name="SWEEP", help="Folder of a sweep.")]
Site = Annotated[
    str | None, Parameter(help="Domain of the run that the inputs are from; without it, the domain is unknown.")
]
Json = Annotated[bool, Parameter(name="--json", help="Print JSON.")]
Trust = Annotated[bool, Parameter(help="Run the Python files that are stored with the run.")]
MovedWeights = Annotated[
    Path | None, Parameter(name="--weights", help="Weights of the frozen backbone, if the file has moved.")
]
RowLauncher = Annotated[
    Literal["inline", "ray"], Parameter(help="inline: in this process; ray: on the cluster at $RAY_ADDRESS, or here.")
]
RowWorkers = Annotated[int | None, Parameter(help="Actors on Ray; default: one per GPU, or one per core.")]
