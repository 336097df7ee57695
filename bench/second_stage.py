"""A second stage of 5,000 steps on 2,533 photos at 224 pixels: features computed once, or in every step.

The parts are measured (embedding 32 images, a step on features, a step that sends 4 × 24 images through the frozen
backbone first), and the time of the stage is computed from them. Decoding and evaluation are left out, although the
reference repeats those too.
"""

from functools import partial

import torch
import torch.nn.functional as F

from bench._rows import Row
from bench._timing import interleave
from crosstail import algorithms, backbones
from crosstail.algorithms import Task
from crosstail.data import DomainBatch

STEPS, PHOTOS, DOMAINS, EACH, CLASSES, EMBEDDED = 5000, 2533, 4, 24, 10, 32


def run() -> list[Row]:
    torch.manual_seed(0)
    size = DOMAINS * EACH
    backbone = backbones.build("efficientnet_lite0", (3, 224, 224)).eval()
    x, y, domain = torch.rand(size, 3, 224, 224), torch.randint(CLASSES, (size,)), torch.arange(size) // EACH
    head = algorithms.build(
        "erm", backbones.build("identity", (backbone.num_features,)), Task(torch.ones(DOMAINS, CLASSES))
    )
    features = DomainBatch(torch.rand(size, backbone.num_features), y, domain)
    classifier = torch.nn.Linear(backbone.num_features, CLASSES)
    optimizer = torch.optim.Adam(classifier.parameters())

    @torch.inference_mode()
    def embed() -> None:
        backbone(x[:EMBEDDED])

    def whole_step() -> None:
        with torch.no_grad():
            z = torch.cat([backbone(part) for part in x.split(EACH)])
        optimizer.zero_grad()
        F.cross_entropy(classifier(z), y).backward()
        optimizer.step()

    step = partial(head.update, features, head.optimizers(), torch.Tensor.backward)
    seconds = interleave({"embed": embed, "step": step, "whole step": whole_step}, repeats=3)
    ours = seconds["embed"] / EMBEDDED * PHOTOS + STEPS * seconds["step"]
    peer = STEPS * seconds["whole step"]
    return [Row("second stage, 5,000 steps", ours, "whole backbone in every step", peer / ours, 50, "at least")]
