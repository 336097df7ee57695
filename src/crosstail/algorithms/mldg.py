"""Meta-learning of a step that also helps another domain."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import Optimizer

from crosstail.algorithms._algorithm import Backward, total
from crosstail.algorithms._hparams import LogUniform, hp
from crosstail.algorithms.erm import ERM
from crosstail.data import DomainBatch


class MLDG(ERM):
    """MLDG: a step on one domain should also lower the loss on another (Li et al., 2018).

    Mean over the domains i, each with another one j, of L_i(θ) + β L_j(θ − η ∇L_i(θ)), η the learning rate.
    """

    family = "meta-learning"
    passes = 2.0
    min_domains = 2
    unshared = "its inner steps need the gradients of the whole batch, and those stay within a process"
    differs = (
        "first order: ∇L_i does not depend on θ for the second term, as in DomainBed",
        "every domain is tested once a step after a step on another one, in a random circle, where the paper holds the "
        "same domains out from all others; DomainBed does it our way, with a step of Adam instead of SGD",
    )

    @dataclass(frozen=True, kw_only=True)
    class Hparams(ERM.Hparams):
        """The weight of the other domain."""

        beta: float = hp(1.0, LogUniform(1e-1, 1e1), "β, weight of the loss on another domain after a step")

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        """Gradients of all domains, then one step; buffers keep what they took in at θ only."""
        parameters, parts, sums = list(self.parameters()), batch.parts(), dict[str, Tensor]()
        order = torch.randperm(len(parts)).tolist()
        optimizers[0].zero_grad(set_to_none=True)
        for i, j in zip(order, order[1:] + order[:1], strict=True):
            terms = self.losses(*self.features(parts[i]))
            gradients = torch.autograd.grad(total(terms), parameters)
            before = {name: value.clone() for name, value in self.state_dict().items()}
            with torch.no_grad():
                for parameter, gradient in zip(parameters, gradients, strict=True):
                    parameter.sub_(gradient, alpha=self.hparams.lr)
            torch.clear_autocast_cache()  # in mixed precision it holds casts of the weights before
            after = self.losses(*self.features(parts[j]))
            terms["another_domain"] = self.hparams.beta * total(after)
            # The gradient of p · g by p is g: `backward` may scale both losses, and the first needs no second pass.
            first = torch.stack([(p * g).sum() for p, g in zip(parameters, gradients, strict=True)]).sum()
            backward((first + terms["another_domain"]) / len(parts))
            self.load_state_dict(before)
            torch.clear_autocast_cache()
            for name, term in terms.items():
                sums[name] = sums.get(name, 0) + term.detach() / len(parts)
        optimizers[0].step()
        return sums
