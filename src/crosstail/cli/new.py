"""crosstail new: a file to start from."""

import re
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

ALGORITHM = '''"""An algorithm for Crosstail: --algorithm ./{name}.py."""

import torch
import torch.nn.functional as F
from torch import Tensor

from crosstail.algorithms import LogUniform, hp
from crosstail.algorithms.erm import ERM
from crosstail.data import DomainBatch


class {kind}(ERM):
    """{kind}: say in one sentence what it does, and cite its paper (Author et al., 2026)."""

    class Hparams(ERM.Hparams):
        """Each with its default, the range of a random search, and its meaning."""

        weight: float = hp(0.1, LogUniform(0.01, 1.0), "weight of the second term")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        """Named terms, one number each, whose sum is minimised.

        They are computed from the features z (B, F) of a batch with classes `batch.y` (B,) and domains `batch.domain`
        (B,). `self.head` is the classifier, `self.task.counts` (D, C) are the training counts.
        """
        # An example: the mean features of the domains should be close to each other.
        means = torch.stack([z[batch.domain == d].mean(0) for d in batch.domain.unique()])  # (domains, F)
        return {{
            "cross_entropy": F.cross_entropy(self.head(z), batch.y),
            "domains": self.hparams.weight * means.var(0, correction=0).mean(),
        }}
'''


def new(
    kind: Annotated[Literal["algorithm"], Parameter(name="KIND")],
    name: Annotated[str, Parameter(name="NAME")],
    /,
) -> None:
    """Write a file to start from: an algorithm that trains and passes all checks.

    Example: `crosstail new algorithm mine`

    Args:
        kind: What to write.
        name: Its name; the file is NAME.py in the current folder.
    """
    name = name.removesuffix(".py")
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise ValueError(f"{name!r} is not a name for a Python file: use letters, digits and _, such as my_loss")
    file = Path(f"{name}.py")
    if file.exists():
        raise ValueError(f"{file}: exists already; choose another name")
    camel = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
    file.write_text(ALGORITHM.format(name=name, kind=camel), encoding="utf-8")
    print(f"Wrote {file}. Change its losses, then check and train it:")
    print(f"python -m crosstail.testing ./{file}")
    print(f"crosstail fit digits --algorithm ./{file} --out run-{name}")
