"""A run as a value: everything that decides its figures, and nothing else."""

import hashlib
import json
from dataclasses import dataclass, field, fields
from typing import Any

HEADS = {"mlp": "mlp", "linear": "identity"}
"""What is trained on frozen features, and the backbone that stands for it."""


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """What to train, on what, how long, from which seed; the hash of its canonical JSON is its name."""

    dataset: str
    algorithm: str = "erm"
    labels: tuple[str, ...] | None = None  # None: those of the data sheet
    data_seed: int = 0
    protocol: str = "mdlt"
    unseen: str | None = None  # the domain that protocol dg leaves out
    skip_broken: bool = False  # go on without images that cannot be read
    columns: dict[str, str] = field(default_factory=dict)  # of a manifest, by what they are called here
    augment: bool = False  # crop, flip and recolour the training images
    backbone: str = "small_cnn"
    weights: str | None = None  # a file, "random", or None: those that the backbone comes with
    resolution: int | None = None  # of the images; None: what suits the backbone
    freeze: bool = False  # embed every input once with the backbone, and train a head on the vectors
    head: str = "mlp"  # on frozen features: mlp or linear
    views: int = 0  # augmented views of every image that are embedded beside the plain one
    width: int | None = None  # of the part that is trained
    hparams: dict[str, Any] = field(default_factory=dict)
    decouple: bool = False
    average: bool = False  # select and keep a moving average of the weights
    precision: str = "32"  # or bf16
    seed: int = 0
    steps: int = 1000
    batch_size: int = 24  # per domain
    evaluations: int = 10

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "evaluations"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, expected 1 or more")
        if self.resolution is not None and self.resolution < 1:
            raise ValueError(f"resolution is {self.resolution}, expected 1 or more pixels")
        if self.head not in HEADS:
            raise ValueError(f"head is {self.head!r}, expected {' or '.join(HEADS)}")
        if self.views < 0:
            raise ValueError(f"views is {self.views}, expected 0 or more")

    def to_json(self) -> dict[str, Any]:
        """Plain values, in the order of the fields."""
        plain = {name: dict(value) if isinstance(value, dict) else value for name, value in vars(self).items()}
        return {**plain, "labels": None if self.labels is None else list(self.labels)}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "RunSpec":
        """The inverse of `to_json`; an unknown word is an error."""
        unknown = sorted(set(record) - {f.name for f in fields(cls)})
        if unknown:
            raise ValueError(f"a run has no {unknown[0]!r}; it was perhaps written by another version")
        if "dataset" not in record:
            raise ValueError("a run needs a 'dataset'")
        labels = record.get("labels")
        return cls(**{**record, "labels": None if labels is None else tuple(labels)})

    @property
    def finetunes(self) -> bool:
        """Whether a whole pretrained network is trained."""
        from crosstail import backbones

        return not self.freeze and self.weights != backbones.RANDOM and backbones.pretrained(self.backbone) is not None

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits that name this run in a sweep.

        >>> first, same, other = RunSpec(dataset="a"), RunSpec(dataset="a", seed=0), RunSpec(dataset="a", seed=1)
        >>> first.key == same.key, first.key == other.key
        (True, False)
        """
        return key_of(self.to_json())


def key_of(record: dict[str, Any]) -> str:
    """The key of the run whose JSON this is."""
    # 1 and 1.0 are equal, so they are one run, whichever of them an algorithm takes.
    hparams = {name: float(value) if type(value) is int else value for name, value in record["hparams"].items()}
    text = json.dumps({**record, "hparams": hparams}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
