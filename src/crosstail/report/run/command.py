"""The command line that a run was, or could have been, started by."""

import shlex
from pathlib import Path

from crosstail.training import RunSpec


def command(spec: RunSpec, out: Path) -> str:
    """The command line of a run, with everything that a default might decide otherwise.

    >>> command(RunSpec(dataset="my photos", hparams={"lr": 0.01}), Path("run"))[:86]
    "crosstail fit 'my photos' --algorithm erm --backbone small_cnn --finetune --no-augment"
    """
    words = ["crosstail", "fit", spec.dataset, "--algorithm", spec.algorithm]
    words += [*["--decouple"] * spec.decouple, *["--average"] * spec.average]
    words += [] if spec.protocol == "mdlt" else ["--protocol", spec.protocol]
    words += [] if spec.unseen is None else ["--unseen", spec.unseen]
    words += ["--backbone", spec.backbone, "--freeze" if spec.freeze else "--finetune"]
    for name in ("weights", "resolution", "width"):
        value = getattr(spec, name)
        words += [] if value is None else [f"--{name}", str(value)]
    words += ["--augment" if spec.augment else "--no-augment", *["--skip-broken"] * spec.skip_broken]
    words += [word for profile in spec.labels or () for word in ("--labels", profile)]
    words += [word for name, value in spec.columns.items() for word in ("--column", f"{name}={value}")]
    words += [word for name, value in spec.hparams.items() for word in ("--hp", f"{name}={value}")]
    for name in ("head", "views", "precision", "steps", "batch_size", "evaluations", "seed", "data_seed"):
        words += [f"--{name.replace('_', '-')}", str(getattr(spec, name))]
    return shlex.join([*words, "--out", str(out)])
