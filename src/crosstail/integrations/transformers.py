"""A callback for Hugging Face's Trainer that writes the page of a run after every evaluation."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor
from transformers import TrainerCallback

from crosstail.integrations._collector import PredictionCollector


class PairReport(TrainerCallback):
    """Write `out`, an .html page, when the Trainer evaluates: the model classifies the evaluation set once more.

    `domains` (N,) are the domains of the evaluation set, in its order. See `write_report` for the other arguments;
    `features(outputs)` returns the features (B, F) from the model's outputs with hidden states, for the graph.
    """

    def __init__(
        self,
        out: str | Path,
        *,
        domains: ArrayLike,
        classes: Sequence[str],
        domain_names: Sequence[str],
        train_counts: ArrayLike,
        features: Callable[[Any], Tensor] | None = None,
    ) -> None:
        self.out, self.about, self.features = out, (classes, domain_names, train_counts), features
        self.domains = torch.as_tensor(domains)

    def on_evaluate(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        if args.world_size > 1:
            raise ValueError("PairReport needs all samples in one process: evaluate in one")
        model, found, first = given["model"], PredictionCollector(self.out, *self.about), 0
        training = model.training
        model.eval()
        with torch.no_grad():
            for batch in given["eval_dataloader"]:
                inputs = {name: values for name, values in batch.items() if name != "domain"}
                outputs = model(**inputs, **({"output_hidden_states": True} if self.features else {}))
                size = len(inputs["labels"])
                domains = self.domains[first : first + size]
                z = self.features(outputs) if self.features else None
                found.add(outputs.logits, labels=inputs["labels"], domains=domains, features=z)
                first += size
        model.train(training)
        found.write(title=f"{type(model).__name__}, step {state.global_step:,}")
