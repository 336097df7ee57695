"""The best worst pair on validation, as in SubpopBench where attributes are known (Yang et al., 2023)."""

from crosstail.sweeps.rules import Rule

RULE = Rule(label="the worst pair on validation", value=lambda split: split.worst_pair)
