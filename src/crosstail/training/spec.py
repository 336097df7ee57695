"""A run as a value: every field is declared once, with type, default, help, and whether it identifies the run."""

import hashlib
import math
import re
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec

from crosstail import discovery, metrics
from crosstail.data import protocols
from crosstail.data.spec import DataSpec

T = TypeVar("T")

AUTO = "auto"
"""The algorithm that `resolve` replaces by one that suits the data."""

Accelerator = Literal["auto", "cpu", "cuda", "mps"]
"""The kinds of device that a run may be trained on, and the best available."""

Average = Literal["moving", "uniform", "swad"]
"""Which weights are averaged."""

OPTIMIZERS = {"adam": "Adam", "adamw": "AdamW", "nadam": "NAdam", "radam": "RAdam", "rmsprop": "RMSprop", "sgd": "SGD"}
"""The optimizers that can be named, and their names in torch."""

HEADS = {"mlp": "mlp", "linear": "identity"}
"""The heads on frozen features, and the backbone that implements each."""


TUNE = r"none|all|last(:[1-9]\d?)?"
SIZE = r"(\d{1,6}(?:\.\d+)?) ?([MGT])B"
UNITS = {"M": 10**6, "G": 10**9, "T": 10**12}

FOLLOWS = {
    "algorithm": "dataset",
    "second_stage": "algorithm",
    "average": "second_stage",
    "stop_at": "fold",
    "seed": "hparams",
}
"""Fields that are not listed where inheritance puts them, and the field that each follows."""


def in_order(kind: type[T]) -> type[T]:
    """List the fields of a RunSpec by importance: in help, in commands, in spec.json, and so in the keys of plans."""
    declared: dict[str, Any] = vars(kind)["__dataclass_fields__"]
    order = list(declared)
    for name, before in FOLLOWS.items():
        order.remove(name)
        order.insert(order.index(before) + 1, name)
    kind.__dataclass_fields__ = {name: declared[name] for name in order}  # type: ignore[attr-defined]
    return kind


LATER = ("select_on", "names", "optimizer", "schedule", "warm_up", "second_lr", "left_out")
"""Fields that runs from before there was a choice do not have, so they are in the key of a run only if they are set."""

ASIDE = "does not identify the run"
"""Annotates a field of RunSpec; all others tell runs apart."""


@in_order
@dataclass(frozen=True, kw_only=True)
class RunSpec(DataSpec):
    """One training run: samples, and how a model is trained on them. Two runs with equal identity are the same run.

    `resolve` fills in the defaults that depend on the data: algorithm, backbone, tune, head, augment, steps, batch_size
    and hparams. `width`, `resolution`, `weights` and `labels` may stay None, which stands for the default of the
    backbone or the benchmark, and `tuned_share` None is chosen by the run.
    """

    algorithm: str = AUTO
    """A name from `crosstail list algorithms`, several combined as in boda+coral, or a file such as ./mine.py.
    Default: `frozen` on frozen features, otherwise bsoftmax+coral (bsoftmax if there is one domain); both with the
    second stage blend."""

    second_stage: str | None = None
    """Fit the classifier again on fixed features: retrain (on class-balanced batches), reweight, plain, bsoftmax, lws,
    pooled, blend, ncm, tau_norm, posthoc_prior or dfr, which `crosstail list second-stages` describes, or a file such
    as ./mine.py."""

    average: Average | None = None
    """Average the weights over steps, and report the raw ones too: moving (about the last tenth of the steps so far),
    uniform (all but the first tenth, as ERM++ does), or swad (a window of steps chosen by validation loss)."""

    stop_at: tuple[int, ...] | None = None
    """Train on every sample and keep the weights after this step of each stage, as --refit does."""

    backbone: str | None = None
    """A name from `crosstail list backbones`, or a file such as ./mine.py; default: what suits the data."""

    weights: str | None = None
    """A .safetensors or .pth file with the backbone's weights, or random; default: the backbone's own."""

    resolution: int | None = None
    """Image size in pixels; default: what the backbone was trained on."""

    tune: str | None = None
    """How much of the backbone is trained: none (a head on features that are computed once), last (its last stage, on
    activations that are computed once; last:2 the last two stages), or all. Default: none for pretrained backbones on
    image files, otherwise all."""

    tuned_share: float | None = None
    """With --tune last: share of the tuned weights in their average with the pretrained ones, 0 to 1. Default: chosen
    on held-out samples if the second stage is fitted, otherwise 1."""

    head: Literal["mlp", "linear"] | None = None
    """What is trained on the features of --tune none or last. Default: mlp with none, linear with last."""

    views: int = 0
    """With --tune none or last: augmented views embedded beside each image."""

    cache: Annotated[str | None, ASIDE] = None
    """With --tune last: disk space for kept activations, such as 20GB; what does not fit is computed in every step.
    Default: a quarter of what is free."""

    width: int | None = None
    """Width of the network that is trained."""

    augment: bool | None = None
    """Random crops, flips and colour jitter. Default: when training a backbone on image files."""

    hparams: dict[str, Any] = field(default_factory=dict)
    """Hyperparameters of the algorithm, such as lr=0.001."""

    steps: int | None = None
    """Training steps per stage; default: the benchmark's, or 1000."""

    batch_size: int | None = None
    """Samples per domain in a batch; default: the benchmark's, or 24."""

    optimizer: Literal["adam", "adamw", "nadam", "radam", "rmsprop", "sgd"] | None = None
    """One of torch's, with the algorithm's learning rate and weight decay; sgd has momentum 0.9. Default: adam."""

    schedule: Literal["constant", "cosine", "linear"] | None = None
    """Learning rate over the steps of a stage: cosine and linear end at 0. Default: constant."""

    warm_up: int | None = None
    """Steps at the beginning of a stage in which the learning rate rises to its value; default: none."""

    second_lr: float | None = None
    """Learning rate of a second stage that is trained; default: the algorithm's."""

    evaluations: int | None = None
    """Number of evaluations after steps, each with a checkpoint; default: the protocol's for the benchmark, or 10."""

    select_on: str | None = None
    """Validation metric that selects evaluations, trials, methods and second-stage parameters: accuracy averaged over
    pairs or domains (average), accuracy of the worst domain or pair, or another metric, averaged over pairs, or a file
    such as ./mine.py. Default: pair_average, with dg average."""

    precision: Literal["32", "bf16"] = "32"
    """Floating-point precision: 32 bits, or bfloat16 mixed precision."""

    trace: Annotated[bool, ASIDE] = False
    """Record the transferability graph at every evaluation, for the report."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("steps", "batch_size", "evaluations", "resolution", "width"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}, expected 1 or more")
        if self.warm_up is not None and self.warm_up < 0:
            raise ValueError(f"warm_up is {self.warm_up}, expected 0 or more")
        if self.second_lr is not None and not 0 < self.second_lr < math.inf:
            raise ValueError(f"second_lr is {self.second_lr}, expected more than 0")
        if self.views < 0:
            raise ValueError(f"views is {self.views}, expected 0 or more")
        if self.tune is not None and not re.fullmatch(TUNE, self.tune):
            raise ValueError(f"tune is {self.tune!r}, expected none, last, all, or last:2 for the last two stages")
        if self.cache is not None and not re.fullmatch(SIZE, self.cache):
            raise ValueError(f"cache is {self.cache!r}, expected a size such as 20GB or 500MB")
        if self.tuned_share is not None and not 0 <= self.tuned_share <= 1:
            raise ValueError(f"tuned_share is {self.tuned_share}, expected 0 to 1")
        for name, known in (("select_on", metrics.criteria()), ("average", get_args(Average))):
            value = getattr(self, name)
            if value is not None and value not in known and not (name == "select_on" and value.endswith(".py")):
                raise ValueError(f"{name} is {value!r}: {discovery.suggestion(str(value), list(known))}")
        for name, value in self.hparams.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"hyperparameter {name} is {value}, expected a finite number")
        if self.stop_at is not None and (self.unseen is not None or self.fold is not None):
            raise ValueError("--stop-at trains on every sample: remove --unseen and --fold")
        if self.stop_at is not None and self.average == "swad":
            raise ValueError(
                "--refit and --stop-at leave no validation samples, which swad needs: use --average uniform"
            )

    @property
    def method(self) -> str:
        """Algorithm and second stage in one word, as tables and sweeps name them."""
        return self.algorithm if self.second_stage is None else f"{self.algorithm}:{self.second_stage}"

    @property
    def frozen(self) -> bool:
        """Whether the backbone, or the part in front of what is tuned, stays fixed, so that it runs once per sample."""
        return self.tune not in (None, "all")

    @property
    def stages(self) -> int:
        """How many of the last stages are tuned on kept activations: 0 but with `--tune last`."""
        name, _, number = (self.tune or "").partition(":")
        return int(number or 1) if name == "last" else 0

    @property
    def budget(self) -> int | None:
        """Bytes for kept activations, if they were given."""
        found = re.fullmatch(SIZE, self.cache or "")
        return int(float(found[1]) * UNITS[found[2]]) if found else None

    @property
    def selected_on(self) -> str:
        """The validation metric that evaluations, trials and methods are selected by."""
        return self.select_on or protocols.find(self.protocol).selects_on

    @property
    def whole(self) -> bool:
        """Whether every sample is for training."""
        return self.stop_at is not None

    @property
    def first_stage(self) -> "RunSpec":
        """The run whose weights, to the bit, the second stage starts from; itself without one."""
        return replace(self, second_stage=None, second_lr=None)

    def identity(self) -> dict[str, Any]:
        names = identifying_fields(type(self))  # type: ignore[arg-type]  # mypy takes the class for its instance
        return {name: getattr(self, name) for name in names}

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits that name this run in a sweep."""
        return key_of(self.identity())


@cache
def identifying_fields(kind: type[RunSpec]) -> list[str]:
    """Names of the fields that tell runs apart, in the order of declaration."""
    return [f.name for f in fields(kind) if ASIDE not in getattr(f.type, "__metadata__", ())]


def key_of(identity: dict[str, Any]) -> str:
    """The key of the run with this identity."""
    # 1 and 1.0 are equal, so they are one run, whichever of them was typed.
    hparams = {name: float(value) if type(value) is int else value for name, value in identity["hparams"].items()}
    named = {name: value for name, value in identity.items() if name not in LATER or value is not None}
    named["average"] = identity["average"] or False
    canonical = msgspec.json.encode({**named, "hparams": hparams}, order="deterministic")
    return hashlib.sha256(canonical).hexdigest()[:16]


def differences(changed: list[str], found: dict[str, Any], wanted: dict[str, Any]) -> str:
    """What a folder has in place of what is wanted, for an error."""
    said = []
    for name in changed:
        if name == "hparams":
            one, other = found[name], wanted[name]
            own = next(k for k in sorted({**one, **other}) if one.get(k) != other.get(k))
            said.append(f"hyperparameter {own} is {one.get(own)}, not {other.get(own)}")
        else:
            said.append(f"{name} is {found[name]!r}, not {wanted[name]!r}")
    return ", ".join(said)


def split_method(method: str) -> tuple[str, str | None]:
    """Algorithm and second stage of a method; a colon inside a path does not count.

    >>> split_method("boda"), split_method("boda:retrain"), split_method("own/mine.py:./stage.py")
    (('boda', None), ('boda', 'retrain'), ('own/mine.py', './stage.py'))
    >>> split_method("./a:b/mine.py"), split_method("C:/mine.py")
    (('./a:b/mine.py', None), ('C:/mine.py', None))
    """
    algorithm, colon, stage = method.rpartition(":")
    name, drive = not set("/.") & set(stage), len(algorithm) == 1
    file = stage.endswith(".py") and (algorithm.endswith(".py") or not ("/" in algorithm or drive))
    return (algorithm, stage) if colon and (name or file) else (method, None)
