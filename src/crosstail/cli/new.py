"""crosstail new: a file to start from."""

import re
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

STARTS = Path(__file__).with_name("_new")
"""A working file of each kind, whose name is `mine`; a class in it is `Mine`."""
TRY = {
    "algorithm": "crosstail fit digits --algorithm ./NAME.py --out run-NAME",
    "second-stage": "crosstail fit digits --algorithm erm --second-stage ./NAME.py --out run-NAME",
    "backbone": "crosstail fit digits --backbone ./NAME.py --out run-NAME",
    "metric": "crosstail fit digits --select-on ./NAME.py --out run-NAME",
    "dataset": "crosstail fit ./NAME.py --out run-NAME",
}


def new(
    kind: Annotated[Literal["algorithm", "second-stage", "backbone", "metric", "dataset"], Parameter(name="KIND")],
    name: Annotated[str, Parameter(name="NAME")],
    /,
) -> None:
    """Write a file to start from: a part that works and passes all checks.

    Example: `crosstail new algorithm mine`

    Args:
        kind: What to write.
        name: Its name; the file is NAME.py in the current folder, with a data sheet NAME.toml for a data set.
    """
    name = name.removesuffix(".py")
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise ValueError(f"{name!r} is not a name for a Python file: use letters, digits and _, such as my_loss")
    starts = sorted(STARTS.glob(f"{kind}.*"))
    files = [Path(f"{name}{start.suffix}") for start in starts]
    if there := [file for file in files if file.exists()]:
        raise ValueError(f"{there[0]}: exists already; choose another name")
    camel = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
    for start, file in zip(starts, files, strict=True):
        text = re.sub(r"\bmine\b", name, start.read_text(encoding="utf-8"))
        file.write_text(re.sub(r"\bMine\b", camel, text), encoding="utf-8")
    print(f"Wrote {' and '.join(map(str, files))}. Change, check and try it:")
    print(f"python -m crosstail.testing ./{name}.py")
    print(TRY[kind].replace("NAME", name))
