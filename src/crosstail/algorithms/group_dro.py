"""Distributionally robust optimisation over domains."""

from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from crosstail.algorithms._algorithm import Task
from crosstail.algorithms._hparams import LogUniform, hp
from crosstail.algorithms.erm import ERM
from crosstail.backbones import Backbone
from crosstail.data import DomainBatch


class GroupDRO(ERM):
    """GroupDRO: Σ_d q_d loss_d, with weights that grow for domains of high loss (Sagawa et al., 2020).

    At each step q_d ← q_d exp(η loss_d), normalised over the domains with training data.
    """

    family = "robust optimisation"
    min_domains = 2
    differs = ("groups are domains, and every step updates the weights of all of them, as in DomainBed",)

    @dataclass(frozen=True, kw_only=True)
    class Hparams(ERM.Hparams):
        eta: float = hp(0.01, LogUniform(1e-3, 1e-1), "η, step size of the domain weights")

    log_q: Tensor  # (D,), −inf for a domain without training data

    def __init__(self, backbone: Backbone, task: Task, hparams: Any) -> None:
        super().__init__(backbone, task, hparams)
        self.register_buffer("log_q", (task.counts.sum(1) > 0).float().log().log_softmax(0))

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        loss = batch.by_domain(F.cross_entropy(self.head(z), batch.y, reduction="none")).mean(1)  # (K,)
        domain = batch.by_domain(batch.domain)[:, 0]
        self.log_q = self.log_q.index_add(0, domain, self.hparams.eta * loss.detach()).log_softmax(0)
        return {"group_dro": self.log_q[domain].exp() @ loss}
