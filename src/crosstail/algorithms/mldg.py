import torch
from torch import Tensor
from torch.optim import Optimizer

from crosstail.algorithms._base import ERM, Backward, DomainBatch, LogUniform, hp, slopes, total
from crosstail.algorithms._gradients import mean_terms, moved, with_gradients


class MLDG(ERM):
    """MLDG: a step on one domain should also lower the loss on another (Li et al., 2018).

    Mean over domains i, each paired with another j, of L_i(θ) + β L_j(θ − η ∇L_i(θ)), with learning rate η.
    """

    family = "meta-learning"
    passes = 2.0
    min_domains = 2
    one_domain_at_a_time = True
    unshared = "its inner steps need the gradients of the whole batch, which no process has"
    differs = (
        "first order: ∇L_i is treated as constant in the second term, as in DomainBed",
        "each step evaluates every domain once, after an inner step on another one in a random ring, as in the BoDA "
        "code; the paper and DomainBed hold out some domains from all others",
        "the inner step is one of SGD, as in the paper; in DomainBed and the BoDA code it is one of Adam",
    )

    class Hparams(ERM.Hparams):
        beta: float = hp(1.0, LogUniform(1e-1, 1e1), "β, weight of the other domain's loss after the inner step")

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        """Accumulate the gradients of all domains, then step once; buffers keep only their updates at θ."""
        parameters, parts, found = self.trained, batch.parts(), []
        order = torch.randperm(len(parts)).tolist()
        optimizers[0].zero_grad(set_to_none=True)
        for i, j in zip(order, order[1:] + order[:1], strict=True):
            terms = self.losses(*self.features(parts[i]))
            gradients = slopes(total(terms), parameters)
            with moved(self, [-self.hparams.lr * gradient for gradient in gradients]):
                after = self.losses(*self.features(parts[j]))
                terms["another_domain"] = self.hparams.beta * total(after)
                backward((with_gradients(parameters, gradients) + terms["another_domain"]) / len(parts))
            found.append(terms)
        optimizers[0].step()
        return mean_terms(found)
