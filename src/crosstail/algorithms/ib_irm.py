from crosstail.algorithms import ib_erm, irm
from crosstail.algorithms._annealed import DRAWN, SHARE
from crosstail.algorithms._hparams import Uniform, when


class IBIRM(ib_erm.IBERM, irm.IRM):
    """IBIRM: IRM + the variance penalty of IBERM (Ahuja et al., 2021)."""

    family = "invariance"
    adds_term = False
    differs = (
        "one annealing for both penalties, half of the steps by default, as they keep a new network from learning; "
        "DomainBed has two, of a tenth of its steps",
        "Adam is reset when the weights change, as in DomainBed",
        SHARE,
        DRAWN,
    )

    class Hparams(ib_erm.IBERM.Hparams, irm.IRM.Hparams):
        anneal: float = when(0.5, Uniform(0.1, 0.9), "end of annealing")
