"""The base class: a backbone, a classifier, named loss terms, and what it needs from the training loop."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, ClassVar, dataclass_transform

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.checkpoint import checkpoint

from crosstail.algorithms._hparams import FINETUNED_DECAY, FINETUNED_RATE, Choice, LogUniform, address, hp
from crosstail.algorithms._processes import joined
from crosstail.backbones import Backbone
from crosstail.data import DomainBatch
from crosstail.losses import PairStatistics
from crosstail.losses.host import in_full_precision

Backward = Callable[[Tensor], None]
"""Computes the gradients: `Tensor.backward`, or what the device's strategy and precision need."""


@dataclass(frozen=True)
class Task:
    """What an algorithm knows of the data in advance: the training counts (D, C)."""

    counts: Tensor

    @property
    def num_domains(self) -> int:
        return self.counts.shape[0]

    @property
    def num_classes(self) -> int:
        return self.counts.shape[1]


@dataclass(frozen=True)
class Preset:
    """Other defaults of an algorithm under a name of their own, as in boda@reference.

    A value in `hparams` is a default, or a default and a search range; `on` has other ones by benchmark; `also` names
    algorithms that belong to it.
    The preset has all deviations of the algorithm but those that it `undoes`.
    """

    what: str
    differs: tuple[str, ...]
    undoes: tuple[str, ...] = ()
    hparams: dict[str, Any] = field(default_factory=dict)
    on: dict[str, dict[str, tuple[Any, Any]]] = field(default_factory=dict)
    also: tuple[str, ...] = ()


class Algorithm(nn.Module):
    """Trains `backbone` and `head`; a subclass defines the loss terms and declares what it needs.

    `class_balanced` asks for batches in which a domain's classes are equally frequent, `min_domains` for a number of
    domains with training data. If `refresh_due`, the loop makes a full pass over the training set and hands the
    statistics to `refresh`. It sets `step`, the current step, and `steps`, their total; the backbone processes a batch
    in `chunks` parts.
    """

    @dataclass_transform(frozen_default=True, kw_only_default=True)
    @dataclass(frozen=True, kw_only=True)
    class Hparams:
        lr: float = hp(1e-3, LogUniform(10**-4.5, 10**-2.5), "learning rate of Adam", FINETUNED_RATE)
        weight_decay: float = hp(0.0, None, "weight decay of Adam", FINETUNED_DECAY)
        dropout: float = hp(
            0.0, None, "dropout on the features in training", (0.0, Choice(0.0, 0.1, 0.5)), at_least=0, below=1
        )

    family = "own"
    passes = 1.0  # forward and backward passes over the batch per step, by definition; a forward pass alone is 1/3
    class_balanced = False
    alias_of = ""  # the method that this name abbreviates, such as erm:retrain
    learns = True  # whether it trains a representation, and not only a classifier in the second stage
    min_domains = 1
    adds_term = False  # whether `losses` adds a term to `super().losses`, so that it combines with any other loss
    linear_head = True  # whether the classifier is linear in the features
    reads_weights = False  # whether `losses` uses the weights of a linear classifier
    uses_domain = False  # whether `scores` depend on the domain, where it is known
    changes_maps = False  # whether `change` replaces feature maps of the backbone's early layers in training
    one_domain_at_a_time = False  # whether `losses` is called with the samples of a single domain
    alone = ""  # why it cannot be combined with others, if it cannot
    unshared = ""  # why it cannot be trained by several processes, if it cannot
    differs: tuple[str, ...] = ()  # deviations from its paper, for docs/algorithms.md
    presets: ClassVar[dict[str, Preset]] = {}
    step, steps = 0, 1
    chunks = 1
    low_precision = False  # whether the backbone computes in bfloat16 where nothing is trained, as it does in training

    def __init_subclass__(cls) -> None:
        """Make `Hparams` a dataclass, so that the files of algorithms need no decorator."""
        super().__init_subclass__()
        if "__dataclass_fields__" not in vars(cls.Hparams):
            dataclass(frozen=True, kw_only=True)(cls.Hparams)

    def __init__(self, backbone: Backbone, task: Task, hparams: Any) -> None:
        super().__init__()
        self.task = task
        self.counts: Tensor
        self.register_buffer("counts", task.counts, persistent=False)
        self.hparams = hparams
        self.backbone = backbone
        self.head: nn.Module = nn.Linear(backbone.num_features, task.num_classes)
        self.build()

    def build(self) -> None:
        """Add modules and buffers; an override calls `super().build()` first, so that algorithms combine."""

    @property
    def linear(self) -> nn.Linear:
        """The classifier, of an algorithm that `reads_weights`."""
        assert isinstance(self.head, nn.Linear)
        return self.head

    @property
    def trained(self) -> list[nn.Parameter]:
        """The parameters that are not frozen."""
        return [parameter for parameter in self.parameters() if parameter.requires_grad]

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        """Named terms, whose sum is minimised, from the batch's features (B, F)."""
        raise TypeError(f"{type(self).__name__} must define losses(z, batch)")

    def features(self, batch: DomainBatch, of: Backbone | None = None) -> tuple[Tensor, DomainBatch]:
        """Features (B, F), by the backbone or one `of` its copies, and their batch, gathered from all processes."""
        backbone: Callable[[Tensor], Tensor] = of or self.backbone
        if self.training and self.changes_maps:
            backbone = partial((of or self.backbone).changed, self.change)
        if self.chunks == 1:
            z = backbone(batch.x)
        else:  # activations are recomputed in the backward pass instead of being kept
            z = torch.cat([checkpoint(backbone, x, use_reentrant=False) for x in batch.x.chunk(self.chunks)])
        z, batch = joined(z, batch)
        if self.training and self.hparams.dropout:
            # Of the whole batch and on the CPU: the same for any number of processes or chunks and any device.
            kept = torch.rand(z.shape) >= self.hparams.dropout
            z = z * kept.to(z) / (1 - self.hparams.dropout)
        return z, batch

    def change(self, maps: Tensor) -> Tensor:
        """Feature maps (B, channels, H, W), or vectors (B, F), to replace an early layer's in training."""
        raise TypeError(f"{type(self).__name__} changes maps, so it must define change(maps)")

    def optimizers(self) -> list[Optimizer]:
        return [torch.optim.Adam(self.parameters(), lr=self.hparams.lr, weight_decay=self.hparams.weight_decay)]

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        """Take one step; only algorithms that are more than a sum of loss terms override it."""
        terms = self.losses(*self.features(batch))
        descend(terms, optimizers, backward)
        return terms

    def refresh_due(self, step: int) -> bool:
        """Whether to make a full pass over the training features before this step."""
        return False

    def refresh(self, statistics: PairStatistics) -> None:
        """Receive the exact statistics of a full pass."""

    def statistics(self) -> PairStatistics:
        """Empty statistics of the kind that `refresh` expects."""
        return PairStatistics(self.task.num_domains, self.task.num_classes, self.backbone.num_features)

    def scores(self, z: Tensor, domain: Tensor | None = None) -> Tensor:
        """Class scores (B, C) from features (B, F) and, where they are known, the domains (B,)."""
        return self.head(z)

    def distance_to_training(self, z: Tensor, domain: Tensor | None = None) -> Tensor | None:
        """How far features (B, F) are from all training samples, or those of their domains, (B,); None if not known."""
        return None

    def likelihood(self, scores: Tensor, y: Tensor, reduction: str = "mean") -> Tensor:
        """Negative log-likelihood of the classes (B,) under scores (B, C)."""
        return F.cross_entropy(scores, y, reduction=reduction)

    def forward(self, x: Tensor, domain: Tensor | None = None) -> Tensor:
        """Class scores (B, C) of inputs and, where they are known, their domains (B,)."""
        return self.scores(self.embed(x), domain)

    def embed(self, x: Tensor) -> Tensor:
        """Features (B, F) of inputs where nothing is trained, in the precision of the run."""
        if not self.low_precision:
            return self.backbone(x)
        with torch.autocast(x.device.type, torch.bfloat16):
            return self.backbone(x).float()


class WrongTerms(ValueError):
    """An algorithm's `losses` or `update` does not return a dictionary of named numbers."""


def check_terms(terms: Any) -> None:
    """Refuse anything but named tensors with one number each."""
    if not isinstance(terms, dict) or not terms:
        found = "an empty dictionary" if isinstance(terms, dict) else f"a {type(terms).__name__}"
        raise WrongTerms(f'losses returns {found}, expected named terms as in {{"cross_entropy": loss}}')
    for name, term in terms.items():
        if not isinstance(term, Tensor):
            raise WrongTerms(f"the loss term {name!r} is a {type(term).__name__}, expected a tensor with one number")
        if term.ndim:
            shape = tuple(term.shape)
            raise WrongTerms(f"the loss term {name!r} has the shape {shape}, expected one number: average it (.mean())")


def first_step(when: float, steps: int) -> int:
    """The step at which a phase begins: `when` is a share of the steps if below 1, else a step.

    >>> first_step(0.1, 50), first_step(7, 50)
    (5, 7)
    """
    return round(when * steps if when < 1 else when)


def unreached(hparams: Any, steps: int) -> list[str]:
    """One sentence for each phase that a run is too short for."""
    starts = {address(f): getattr(hparams, f.name) for f in fields(hparams) if f.metadata.get("begins")}
    return [
        f"{name} is {value:g} and the run has {steps:,} steps, so the phase after it is never reached: train for more "
        f"steps, or set a share of them, as in fit --hp {name}=0.1"
        for name, value in starts.items()
        if first_step(value, steps) >= steps
    ]


def total(terms: dict[str, Tensor]) -> Tensor:
    """Sum of the loss terms."""
    check_terms(terms)
    return torch.stack(list(terms.values())).sum()


def slopes(loss: Tensor, of: Sequence[Tensor], *, create_graph: bool = False) -> tuple[Tensor, ...]:
    """The gradients of a loss, without autocast as in `backward`."""
    with in_full_precision(loss):
        return torch.autograd.grad(loss, of, create_graph=create_graph)


def descend(terms: dict[str, Tensor], optimizers: list[Optimizer], backward: Backward) -> None:
    """Backpropagate the sum of the terms and step the optimizers."""
    for optimizer in optimizers:
        optimizer.zero_grad(set_to_none=True)
    loss = total(terms)
    if not loss.requires_grad:
        raise WrongTerms(f"no loss term ({', '.join(terms)}) depends on the weights: is something detached?")
    backward(loss)
    for optimizer in optimizers:
        optimizer.step()
    torch.clear_autocast_cache()  # in mixed precision it holds casts of the old weights
