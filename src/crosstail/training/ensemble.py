"""Several models as one, whose probabilities are the mean of theirs."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from crosstail.algorithms import Algorithm
from crosstail.backbones import Backbone


class _Together(Backbone):
    """The features of several backbones side by side; their weights belong to the models."""

    def __init__(self, parts: Sequence[Backbone]) -> None:
        super().__init__(nn.Identity(), sum(part.num_features for part in parts))
        self.parts = tuple(parts)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([part(x) for part in self.parts], 1)


class Ensemble(Algorithm):
    """Models of the same domains and classes; its features are theirs side by side."""

    def __init__(self, models: Sequence[Algorithm]) -> None:
        super().__init__(_Together([model.backbone for model in models]), models[0].task, Algorithm.Hparams())
        self.head = nn.Identity()
        self.models = nn.ModuleList(models)
        self.widths = [model.backbone.num_features for model in models]
        self.uses_domain = any(model.uses_domain for model in models)

    def scores(self, z: Tensor, domain: Tensor | None = None) -> Tensor:
        """The log of the mean probabilities, up to a constant."""
        parts = zip(self.models, z.split(self.widths, 1), strict=True)
        each = [model.scores(part, domain).log_softmax(1) for model, part in parts]  # type: ignore[operator]
        return torch.stack(each).logsumexp(0)
