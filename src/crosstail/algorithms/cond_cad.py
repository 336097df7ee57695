from crosstail.algorithms import cad


class CondCAD(cad.CAD):
    """CondCAD: of a sample's class, its nearest samples should be from other domains (Ruan et al., 2022).

    As CAD, but the softmax is over the samples of the class, so that features may reveal the class.
    """

    conditional = True
    differs = (cad.CAD.differs[0], "samples whose class occurs in no other domain of the batch are left out")
