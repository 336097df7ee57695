from typing import Any, ClassVar

from crosstail.algorithms._algorithm import Preset
from crosstail.algorithms._alignment import Alignment
from crosstail.algorithms._hparams import Choice, Integer, LogUniform, Uniform, hp

RESCALED = Preset(
    "Rescaled: distances over the batch's mean distance, counts outside the exponent (Yang, Wang and Katabi, 2022).",
    differs=(
        "not equation (3) but a relative of equation (2) whose gradients are bounded for any counts",
        "with two domains ν acts only through the denominator",
        "the mean over samples is weighted by N̄ / N_i",
    ),
    hparams={"rescaled": True},
)
REFERENCE = Preset(
    "What the authors' code runs: BoDA with a CORAL penalty (Yang, Wang and Katabi, 2022).",
    differs=(
        "adds CORAL, which the paper's text does not mention",
        "ν is 0.5, where the paper's table has 1",
        "a full pass every 120 steps, not after every epoch, and a warm-up of 500 steps (DomainNet: 2,000 and 3,000)",
        "full passes see the evaluation view, those of the authors' code augmented images",
        "averages over all (sample, positive) combinations, where the equation is a sum over samples",
        "unlike the authors' code, uses log-sum-exp, and makes a full pass if the warm-up ends before the first is due",
    ),
    undoes=Alignment.differs,
    also=("coral",),
    hparams={
        "nu": 0.5,
        "temperature": (1.0, LogUniform(10**-1, 10**0.5)),
        "per_positive": True,
        "warmup": (500.0, Choice(300.0, 400.0, 500.0, 600.0)),
        "refresh": (120, Integer(100, 150)),
        "momentum": (0.2, Uniform(0.0, 0.4)),
        "gamma": 1.0,
    },
    on={"domain_net": {"warmup": (3000.0, Choice(2e3, 3e3, 4e3, 5e3)), "refresh": (2000, Integer(1500, 3000))}},
)
POOLED = Preset(
    "Pooled centroids: each pair's mean is shrunk towards its class and domain, more strongly the fewer samples it has "
    "(Yang, Wang and Katabi, 2022).",
    differs=(
        "centroids are posterior means, with fixed ratios of the variances between and within pairs",
        "a pair counts as many samples as would give an equally certain mean, 1 / posterior variance",
        "pairs without samples are positives and in the denominator",
    ),
    hparams={"pooled": True},
)


class BoDA(Alignment):
    """BoDA: cross-entropy + ω · the calibrated BoDA loss on the features (Yang, Wang and Katabi, 2022, equation 3)."""

    presets: ClassVar[dict[str, Preset]] = {"rescaled": RESCALED, "reference": REFERENCE, "pooled": POOLED}

    class Hparams(Alignment.Hparams):
        nu: float = hp(1.0, LogUniform(10**-0.5, 1.0), "ν, how strongly counts calibrate the distances", at_least=0)

    def term(self) -> dict[str, Any]:
        return {"nu": self.hparams.nu}
