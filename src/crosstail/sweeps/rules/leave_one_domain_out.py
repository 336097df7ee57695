"""The best mean accuracy on domains that are left out of training in turn, besides the unseen one.

DomainBed's "leave-one-domain-out cross-validation" (Gulrajani and Lopez-Paz, 2021).
"""

from crosstail.sweeps.rules import Rule

RULE = Rule(label="domains that were left out in turn", value=lambda split: split.average, left_out=True)
