from crosstail.data import DomainDataset as DomainDataset
from crosstail.data import load as load
from crosstail.losses import BoDALoss as BoDALoss
from crosstail.losses import boda_loss as boda_loss
from crosstail.metrics import PairAccuracy as PairAccuracy
from crosstail.sklearn import CrosstailClassifier as CrosstailClassifier
from crosstail.training import RunSpec as RunSpec
from crosstail.transfer import PairStatistics as PairStatistics
from crosstail.transfer import TransferabilityGraph as TransferabilityGraph
from crosstail.workflows.fit import fit as fit
from crosstail.workflows.race import race as race
from crosstail.workflows.select import select as select
from crosstail.workflows.sweep import sweep as sweep

__version__: str
