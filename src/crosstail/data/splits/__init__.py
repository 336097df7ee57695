"""Which samples are trained on, selected on and tested on."""

from crosstail.data.splits.gaps import with_gaps_noted
from crosstail.data.splits.label_profiles import LabelProfile, apply_labels
from crosstail.data.splits.paper import paper_split

__all__ = ["LabelProfile", "apply_labels", "paper_split", "with_gaps_noted"]
