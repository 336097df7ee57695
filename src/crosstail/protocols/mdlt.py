"""Multi-domain long-tailed recognition: train on all domains, select on validation, test every pair."""

from crosstail.data import DomainDataset


def split(dataset: DomainDataset, unseen: str | None, seed: int) -> DomainDataset:
    """The data set's own split."""
    if unseen is not None:
        raise ValueError(f"the protocol mdlt trains on all domains: leave --unseen {unseen} out, or use --protocol dg")
    return dataset
