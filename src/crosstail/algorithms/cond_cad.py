from torch import Tensor

from crosstail.algorithms import cad


class CondCAD(cad.CAD):
    """CondCAD: of a sample's class, its nearest samples should be from other domains (Ruan et al., 2022).

    As CAD, but the softmax is over the samples of the class, so that features may reveal the class.
    """

    differs = (cad.CAD.differs[0], "samples whose class occurs in no other domain of the batch are left out")

    def bottleneck(self, z: Tensor, others: Tensor, alike: Tensor, away: Tensor) -> Tensor:
        return self.contrast(z, alike, alike & away, (alike & away).any(1))
