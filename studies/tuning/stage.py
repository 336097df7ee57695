"""The last stage of EfficientNet-Lite0: activations in front of it, training what follows, and weights in between."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from crosstail import backbones
from crosstail.backbones._cuts import cut
from crosstail.backbones._frozen import FrozenNetwork
from crosstail.backbones._timm import TimmBackbone
from crosstail.data import DomainDataset, to_input
from crosstail.losses import BoDALoss
from crosstail.losses.domains import coral_penalty
from crosstail.losses.tails import balanced_softmax_loss

PER_DOMAIN = 24  # samples per domain in a batch
BEHIND = "blocks.5"  # what follows is trained: the seventh group of blocks and the last convolution


@dataclass(frozen=True)
class Recipe:
    """How the stage is trained."""

    steps: int = 300  # at most
    epochs: int = 0  # steps are no more than these passes over the training samples; 0: no such limit
    lr: float = 1e-3
    flips: bool = True
    head_first: int = 0  # steps in which only the classifier is trained (LP-FT)
    biases: bool = False  # train biases and the scale and shift of batch norm only
    coral: float = 0.0  # weight of CORAL's term
    boda: float = 0.0  # weight of BoDA's term, rescaled, after a tenth of the steps
    half: bool = True  # in bfloat16, which takes half the time where the processor has it


RECIPES = {
    "10 epochs": Recipe(epochs=10),
    "300 steps": Recipe(),
    "50 steps": Recipe(steps=50),
    "600 steps, 20 epochs": Recipe(steps=600, epochs=20),
    "CORAL": Recipe(epochs=10, coral=1.0),
    "BoDA": Recipe(epochs=10, boda=0.1),
    "lr 3e-4": Recipe(epochs=10, lr=3e-4),
    "biases and norms, lr 1e-2": Recipe(epochs=10, lr=1e-2, biases=True),
    "head first": Recipe(epochs=10, head_first=15),
}


def network(shape: tuple[int, ...], resolution: int | None) -> TimmBackbone:
    """The pretrained network for images (3, H, W), in evaluation mode: batch norm keeps ImageNet's statistics."""
    whole = backbones.build("efficientnet_lite0", shape, resolution=resolution).eval()
    assert isinstance(whole, TimmBackbone)
    return whole


def stage_of(whole: TimmBackbone) -> nn.Module:
    """The last stage, from activations to features (B, F)."""
    return cut(whole.layers, BEHIND)[1].eval()


def activations(dataset: DomainDataset, whole: TimmBackbone) -> NDArray[np.float16]:
    """Activations (N, C, h, w) in front of the last stage."""
    front = whole._with(cut(whole.layers, BEHIND)[0], f"up to {BEHIND}")
    run, rows = FrozenNetwork(front, len(dataset)), np.array_split(np.arange(len(dataset)), len(dataset) // 32)
    return np.concatenate([run(to_input(dataset.x[part])).astype(np.float16) for part in rows])


def batch(maps: NDArray[np.float16], rows: NDArray[np.int64]) -> Tensor:
    """Activations of these rows as a batch (B, C, h, w)."""
    return torch.from_numpy(maps[rows]).float().contiguous(memory_format=torch.channels_last)


def features(stage: nn.Module, maps: NDArray[np.float16], half: bool = False) -> NDArray[np.float32]:
    """Features (N, F) of all samples."""
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, half):
        rows = np.array_split(np.arange(len(maps)), max(1, len(maps) // 128))
        return np.concatenate([stage(batch(maps, part)).float().numpy() for part in rows])


def tuned(
    stage: nn.Module, maps: NDArray[np.float16], dataset: DomainDataset, rows: NDArray[np.int64], how: Recipe, seed: int
) -> dict[str, Tensor]:
    """Train the stage and a linear classifier on these rows by balanced softmax; the state of the stage."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    y, domain = torch.from_numpy(dataset.y), torch.from_numpy(dataset.domain)
    counts = torch.zeros(dataset.num_domains, dataset.num_classes)
    counts.index_put_((domain[rows], y[rows]), torch.ones(len(rows)), accumulate=True)
    width = features(stage, maps[:1]).shape[1]
    head = nn.Linear(width, dataset.num_classes)
    for p in stage.parameters():
        p.requires_grad_(not how.biases or p.ndim == 1)
    moved = [p for p in stage.parameters() if p.requires_grad]
    of_domain = [rows[dataset.domain[rows] == d] for d in np.unique(dataset.domain[rows])]
    steps = min(how.steps, -(-how.epochs * len(rows) // (PER_DOMAIN * len(of_domain))) or how.steps)
    optimizer = torch.optim.AdamW([{"params": moved}, {"params": head.parameters()}], lr=how.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    alignment = BoDALoss(*counts.shape, width, counts, rescaled=True, synchronise=False)
    for step in range(steps):
        own = np.concatenate([rng.choice(of, PER_DOMAIN, replace=len(of) < PER_DOMAIN) for of in of_domain])
        x = batch(maps, own)
        if how.flips:
            x = torch.where(torch.from_numpy(rng.random(len(own)) < 0.5)[:, None, None, None], x.flip(3), x)
        with torch.set_grad_enabled(step >= how.head_first), torch.autocast("cpu", torch.bfloat16, how.half):
            z = stage(x).float()
        loss = balanced_softmax_loss(head(z), y[own], domain[own], counts)
        if how.coral and len(of_domain) > 1:
            loss = loss + how.coral * coral_penalty(z.view(len(of_domain), PER_DOMAIN, -1))
        if how.boda:
            loss = loss + (how.boda if step >= steps / 10 else 0.0) * alignment(z, y[own], domain[own])
        if not torch.isfinite(loss):
            raise FloatingPointError(f"diverged in step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return {name: of.detach().clone() for name, of in stage.state_dict().items()}
