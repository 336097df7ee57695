from crosstail.data import DomainDataset as DomainDataset
from crosstail.data import load as load
from crosstail.losses import BoDALoss as BoDALoss
from crosstail.losses import boda_loss as boda_loss
from crosstail.metrics import PairAccuracy as PairAccuracy
from crosstail.sklearn import CrosstailClassifier as CrosstailClassifier
from crosstail.training import RunSpec as RunSpec
from crosstail.transfer import PairStatistics as PairStatistics
from crosstail.transfer import TransferabilityGraph as TransferabilityGraph
from crosstail.workflows.audit import audit as audit
from crosstail.workflows.compare import compare as compare
from crosstail.workflows.demo import demo as demo
from crosstail.workflows.embed import embed as embed
from crosstail.workflows.evaluate import evaluate as evaluate
from crosstail.workflows.export import export as export
from crosstail.workflows.fit import fit as fit
from crosstail.workflows.graph import graph as graph
from crosstail.workflows.label import label as label
from crosstail.workflows.predict import predict as predict
from crosstail.workflows.race import race as race
from crosstail.workflows.report import report as report
from crosstail.workflows.select import select as select
from crosstail.workflows.sweep import sweep as sweep

__version__: str
