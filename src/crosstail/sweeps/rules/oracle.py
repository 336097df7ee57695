"""The last step that is best on held-out samples of the unseen domain: test-domain, for comparison only.

DomainBed's "test-domain validation set" (Gulrajani and Lopez-Paz, 2021): it shows what selection costs, and no method
may be chosen by it.
"""

from crosstail.sweeps.rules import Rule

RULE = Rule(label="test-domain, for comparison only", value=lambda split: split.average, oracle=True)
