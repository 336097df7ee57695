"""Estimators in the conventions of scikit-learn and imbalanced-learn."""

import tempfile
import warnings
from dataclasses import KW_ONLY, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state, column_or_1d, gen_batches
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from crosstail import data
from crosstail.algorithms import Algorithm
from crosstail.data import DomainDataset
from crosstail.metrics import PairAccuracy
from crosstail.metrics._link import probabilities
from crosstail.pairs import pair_number
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.model import build_final_model
from crosstail.training.run_data import Inputs
from crosstail.training.spec import AUTO

BATCH = 1024
NAMED = 20  # domains listed in an error


@dataclass(eq=False, repr=False)
class CrosstailClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier for vectors from several domains, trained as by `crosstail fit`, with the same default method.

    `algorithm`, `hparams`, `width`, `steps`, `batch_size` (per domain), `evaluations` and `second_stage` are as in a
    run. A share `validation` of each pair is held out to select the best evaluation; with 0, the last one is used. The
    default method takes no steps: it has nothing to select, so 0 gives it more samples to fit. Only `fit` needs the
    domains; where they are known at prediction, the default and some other models, such as `mtl`, use them. `result_`
    is the result of the run, and `network_` its model.

    In pipelines and searches, enable scikit-learn's metadata routing and request the domain with
    `set_fit_request(domain=True)`, and for prediction with `set_predict_request(domain=True)` and
    `set_predict_proba_request(domain=True)`.

    >>> from sklearn.datasets import make_blobs
    >>> x, y = make_blobs(60, random_state=0)
    >>> site = ["north", "south"] * 30
    >>> model = CrosstailClassifier(validation=0).fit(x, y, domain=site)
    >>> model.predict(x[:2]).shape, model.predict(x[:2], domain=site[:2]).shape, model.domains_.tolist()
    ((2,), (2,), ['north', 'south'])
    """

    algorithm: str = AUTO
    _: KW_ONLY
    hparams: dict[str, Any] | None = None
    width: int = 256
    steps: int = 1000
    batch_size: int = 24
    evaluations: int = 10
    second_stage: str | None = None
    validation: float = 0.1
    random_state: int | np.random.RandomState | None = 0

    def fit(self, X: ArrayLike, y: ArrayLike, domain: ArrayLike | None = None) -> Self:
        """Train on vectors X (N, F) with classes y (N,) and domains (N,); labels may be of any type."""
        x, y = validate_data(self, X, y, dtype=np.float32)
        check_classification_targets(y)
        self.classes_, y = np.unique(y, return_inverse=True)
        self.domains_, d = _numbered(domain, x)
        seed = int(check_random_state(self.random_state).randint(2**31))
        split = np.full(len(x), "train", "<U5")
        split[_held_out(pair_number(y, d, len(self.classes_)), self.validation, seed)] = "val"
        names = tuple(map(str, self.classes_)), tuple(map(str, self.domains_))
        dataset = DomainDataset("X", x, y, d, split, *names)
        same = ("algorithm", "width", "second_stage", "steps", "batch_size", "evaluations")
        given = {name: getattr(self, name) for name in same} | {"hparams": self.hparams or {}, "seed": seed}
        spec = RunSpec(dataset="X", backbone="mlp", tune="all", augment=False, **given)
        with tempfile.TemporaryDirectory() as folder, torch.random.fork_rng(devices=[]):
            run = train_run(spec, Path(folder), inputs=Inputs(dataset))
            self.result_ = run.result
            self.network_ = self._network(run.folder.weights())
        return self

    def predict_proba(self, X: ArrayLike, domain: ArrayLike | None = None) -> NDArray[np.float64]:
        """Probabilities (N, C), in the order of `classes_`; domains (N,) that are known are labelled as in `fit`."""
        check_is_fitted(self)
        x = torch.from_numpy(validate_data(self, X, dtype=np.float32, reset=False).astype(np.float64))
        d = None if domain is None else self._known(domain, x)
        with torch.inference_mode():
            parts = [self.network_(x[rows], d if d is None else d[rows]) for rows in gen_batches(len(x), BATCH)]
            return probabilities(torch.cat(parts)).numpy()

    def predict(self, X: ArrayLike, domain: ArrayLike | None = None) -> NDArray[Any]:
        """The most probable class of each row (N,); `domain` as in `predict_proba`."""
        best = self.predict_proba(X, domain).argmax(1)  # first, because it checks that the estimator is fitted
        return self.classes_[best]

    def _known(self, domain: ArrayLike, rows: Tensor) -> Tensor:
        """The index of each row's domain (N,) in `domains_`."""
        labels, d = _numbered(domain, rows)
        number = {label: i for i, label in enumerate(self.domains_.tolist())}
        unknown = [label for label in labels.tolist() if label not in number]
        if unknown:
            known = ", ".join(map(repr, list(number)[:NAMED])) + (", ..." if len(number) > NAMED else "")
            raise ValueError(f"unknown domain {unknown[0]!r}: the model was trained on {known}")
        return torch.tensor([number[label] for label in labels.tolist()])[torch.from_numpy(d)]

    def _network(self, weights: dict[str, Tensor]) -> Algorithm:
        """The final model of the run, in float64, so that the scores of a row do not depend on the batch."""
        spec, counts = self.result_.spec, np.array(self.result_.counts)
        with torch.random.fork_rng(devices=[]):
            network = build_final_model(spec, (self.n_features_in_,), counts).double()
        network.load_state_dict(weights)
        return network.eval()

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if "network_" in state:  # the class of a combination (boda+coral) is in no module, so it cannot be pickled
            return state | {"network_": state["network_"].state_dict()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "network_" in state:
            self.network_ = self._network(state["network_"])


@dataclass(eq=False, repr=False)
class PairOverSampler(BaseEstimator):  # type: ignore[misc]
    """Oversample until every pair is as frequent as the largest, for imbalanced-learn.

    Samples of a pair are repeated equally often, give or take one. `sample_indices_` has the original row of each new
    one: their domains are `domain[sampler.sample_indices_]`. In imbalanced-learn pipelines, request the domain with
    `set_fit_resample_request(domain=True)`. For a DataLoader, use `crosstail.data.PairBalancedSampler`.

    >>> x, y, domain = np.arange(4)[:, None], np.array([0, 0, 0, 1]), np.array(["p", "p", "q", "q"])
    >>> x, y = PairOverSampler().fit_resample(x, y, domain=domain)
    >>> sorted(x[:, 0].tolist())
    [0, 1, 2, 2, 3, 3]
    """

    random_state: int | np.random.RandomState | None = 0

    def fit_resample(self, X: Any, y: Any, domain: ArrayLike | None = None) -> tuple[Any, Any]:
        """Resample X and y, keeping their types."""
        check_consistent_length(X, y)
        _, d = _numbered(domain, y)
        c = np.unique(column_or_1d(y), return_inverse=True)[1]
        seed = int(check_random_state(self.random_state).randint(2**31))
        sizes = np.unique([d, c], axis=1, return_counts=True)[1]
        balanced = data.PairBalancedSampler(c, d, num_samples=sizes.size * int(sizes.max()), seed=seed)
        self.sample_indices_ = np.array(list(balanced))
        return _safe_indexing(X, self.sample_indices_), _safe_indexing(y, self.sample_indices_)


class PairScorer:
    """A scorer for searches and cross-validation: an accuracy over (domain, class) pairs.

    `pair_average` is the mean accuracy of the pairs, `worst_pair` the lowest of them; pairs without samples in a fold
    do not count. The domain is unknown to the model. Enable scikit-learn's metadata routing, which hands the domains
    that `search.fit(X, y, domain=...)` was given to the scorer, and request them for `fit`.

    >>> from sklearn import config_context
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.model_selection import cross_val_score
    >>> x, y = make_blobs(60, random_state=0)
    >>> with config_context(enable_metadata_routing=True):
    ...     model = CrosstailClassifier().set_fit_request(domain=True)
    ...     site = {"domain": ["north", "south"] * 30}
    ...     cross_val_score(model, x, y, scoring=worst_pair, cv=2, params=site).shape
    (2,)
    """

    def __init__(self, metric: Literal["pair_average", "worst_pair"]) -> None:
        self.metric = metric

    def __repr__(self) -> str:
        return self.metric

    def get_metadata_routing(self) -> MetadataRequest:
        """The domains are requested by default."""
        request = MetadataRequest(owner=self.metric)
        request.score.add_request(param="domain", alias=True)
        return request

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, domain: ArrayLike | None = None) -> float:
        if domain is None:
            raise ValueError(
                f"{self.metric} needs the domains: sklearn.set_config(enable_metadata_routing=True), then "
                "search.fit(X, y, domain=...), or cross_val_score(..., params={'domain': ...})"
            )
        domains, d = _numbered(domain, y)
        classes, c = np.unique(column_or_1d(y), return_inverse=True)
        predicted = np.where(column_or_1d(estimator.predict(X)) == column_or_1d(y), c, -1)
        sizes = {"num_domains": len(domains), "num_classes": len(classes)}
        return float(getattr(PairAccuracy.from_predictions(predicted, c, d, **sizes), self.metric))


pair_average = PairScorer("pair_average")
worst_pair = PairScorer("worst_pair")


def _numbered(domain: ArrayLike | None, rows: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The domains, sorted, and the index of each row's domain; for methods that users call."""
    if domain is None:
        _warn_about_one_domain()
        domain = np.zeros(len(rows), np.int64)
    labels = column_or_1d(domain)
    check_consistent_length(rows, labels)
    missing = np.flatnonzero(pd.isna(labels))
    if len(missing):
        raise ValueError(f"domain of row {missing[0]} is missing: give every sample a domain, or pass no domain")
    return np.unique(labels, return_inverse=True)


@cache
def _warn_about_one_domain() -> None:
    """Only once: a search fits hundreds of times."""
    warnings.warn("without domain=..., all samples count as one domain", stacklevel=4)


def _held_out(pair: NDArray[np.int64], share: float, seed: int) -> NDArray[np.int64]:
    """A random share of each pair's rows, rounded, but never all of them."""
    if not 0 <= share < 1:
        raise ValueError(f"validation is {share}, expected a share from 0 to below 1")
    rng = np.random.default_rng(seed)
    groups = [rng.permutation(np.flatnonzero(pair == p)) for p in np.unique(pair)]
    return np.concatenate([rows[: min(round(share * len(rows)), len(rows) - 1)] for rows in groups])
