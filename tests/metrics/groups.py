"""The metrics of one kind of group, out of those of all."""

from crosstail.metrics.probabilities import metrics_of_every_group


def metrics_by(by, p, y, domain, **names):
    """The rows of all samples ("overall"), or of each domain, class or pair."""
    found = metrics_of_every_group(p, y, domain, **names)
    wanted = by in ("domain", "pair"), by in ("class", "pair")
    kind = (found["domain"].notna() == wanted[0]) & (found["class"].notna() == wanted[1])
    return found[kind].reset_index(drop=True)
