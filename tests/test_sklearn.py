"""The estimator and the sampler behave as scikit-learn's and imbalanced-learn's do, and train as a run does."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_array, issparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from crosstail.prediction.predictor import Predictor
from crosstail.sklearn import (
    CrosstailClassifier,
    PairOverSampler,
    _warn_about_one_domain,
    pair_average,
    worst_pair,
)
from crosstail.training import RunSpec
from crosstail.training.fit import train_run

SHORT = {"steps": 25, "width": 16, "evaluations": 1, "hparams": {"lr": 0.03}}


@parametrize_with_checks(
    [
        CrosstailClassifier(validation=0),
        CrosstailClassifier(second_stage="pooled"),
        CrosstailClassifier("boda", **SHORT),
    ]
)
@pytest.mark.filterwarnings("ignore:without domain")
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture
def samples():
    """Three classes in two domains, of unequal frequencies: (0, 0) has 20 samples and (1, 0) has 5."""
    rng = np.random.default_rng(0)
    counts = np.array([[20, 11, 6], [5, 12, 21]])
    d, y = (np.repeat(index.ravel(), counts.ravel()) for index in np.indices(counts.shape))
    x = 4 * rng.normal(size=(3, 5))[y] + rng.normal(size=(2, 5))[d] + rng.normal(size=(len(y), 5))
    return x.astype(np.float32), np.array(["ant", "bee", "cat"])[y], np.array(["north", "south"])[d]


@pytest.mark.parametrize("method", ["auto", "boda"])
def test_trains_the_model_of_a_run(samples, tmp_path, method):
    x, y, domain = samples
    model = CrosstailClassifier(method, **SHORT, validation=0, random_state=3).fit(x, list(y), domain=pd.Series(domain))
    (classes, c), (domains, d) = (np.unique(labels, return_inverse=True) for labels in (y, domain))
    np.savez(tmp_path / "v.npz", x=x, y=c, domain=d, split=np.full(len(x), "train"), classes=classes, domains=domains)
    seed = int(np.random.RandomState(3).randint(2**31))
    run = train_run(
        RunSpec(dataset=str(tmp_path / "v.npz"), algorithm=method, seed=seed, **SHORT), tmp_path / "r"
    ).result
    assert model.result_.spec.method == run.spec.method and model.result_.counts == [[20, 11, 6], [5, 12, 21]]
    expected = Predictor(tmp_path / "r").probabilities(x)
    np.testing.assert_allclose(model.predict_proba(x), expected, atol=1e-6)
    known = Predictor(tmp_path / "r").probabilities(x, d)
    np.testing.assert_allclose(model.predict_proba(x, domain=domain), known, atol=1e-6)
    assert np.array_equal(known, expected) == (method == "boda")  # the default uses the domain
    assert model.classes_.tolist() == ["ant", "bee", "cat"] and model.domains_.tolist() == ["north", "south"]
    assert model.n_features_in_ == 5
    assert model.score(x, y) == np.mean(classes[expected.argmax(1)] == y) > 0.9


def test_domains_may_be_any_labels(samples):
    x, y, domain = samples
    numbers = np.where(domain == "north", 3, 17)
    words, other = (CrosstailClassifier(**SHORT).fit(x, y, domain=labels) for labels in (list(domain), numbers))
    np.testing.assert_array_equal(words.predict_proba(x), other.predict_proba(x))
    assert other.domains_.tolist() == [3, 17]
    mixed = CrosstailClassifier(**SHORT).fit(x, y, domain=np.roll(numbers, 9))
    assert not np.allclose(words.predict_proba(x), mixed.predict_proba(x))


def test_a_share_of_each_pair_selects(samples):
    x, y, domain = samples
    model = CrosstailClassifier(**SHORT, validation=0.2).fit(x, y, domain=domain)
    assert model.result_.validation.totals == [[4, 2, 1], [1, 2, 4]]
    assert model.result_.counts == [[16, 9, 5], [4, 10, 17]]
    most = CrosstailClassifier(**SHORT, validation=0.99).fit(x, y, domain=domain)
    assert most.result_.counts == [[1, 1, 1], [1, 1, 1]]
    with pytest.raises(ValueError, match=r"validation is 1\.0, expected a share"):
        CrosstailClassifier(validation=1.0).fit(x, y, domain=domain)


def test_without_domains_it_says_so_once(samples):
    x, y, _ = samples
    _warn_about_one_domain.cache_clear()
    with pytest.warns(UserWarning, match="all samples count as one domain") as said:
        model = CrosstailClassifier(**SHORT).fit(x, y)
    assert [warning.filename for warning in said] == [__file__]
    model.fit(x, y)  # here a warning would be an error
    assert model.domains_.tolist() == [0]


@pytest.mark.filterwarnings("ignore:without domain")
@pytest.mark.parametrize(
    ("algorithm", "domain", "sentence"),
    [
        ("coral", None, "coral compares domains and needs 2 that have training data; the data have 1"),
        ("boda", ["a"], "inconsistent numbers of samples"),
        ("boda", [*["a"] * 74, None], "domain of row 74 is missing"),
        ("bodda", None, "did you mean 'boda'"),
    ],
)
def test_mistakes_get_a_sentence(samples, algorithm, domain, sentence):
    x, y, _ = samples
    with pytest.raises(ValueError, match=sentence):
        CrosstailClassifier(algorithm, **SHORT).fit(x, y, domain=domain)


def test_domains_reach_it_through_pipelines_and_searches(samples):
    """CORAL refuses one domain, so wherever the domains got lost there would be an error."""
    x, y, domain = samples
    folds = StratifiedKFold(2)
    with config_context(enable_metadata_routing=True):
        model = CrosstailClassifier("coral", **SHORT).set_fit_request(domain=True)
        pipeline = make_pipeline(StandardScaler(), model)
        assert pipeline.fit(x, y, domain=domain).score(x, y) > 0.9
        scores = cross_val_score(pipeline, x, y, cv=folds, params={"domain": domain}, error_score="raise")
        assert scores.min() > 0.7
        grid = {"crosstailclassifier__hparams": [{"lr": 1e-9}, {"lr": 0.03, "gamma": 0.1}]}
        search = GridSearchCV(pipeline, grid, cv=folds, error_score="raise").fit(x, y, domain=domain)
    assert search.best_params_["crosstailclassifier__hparams"] == {"lr": 0.03, "gamma": 0.1}
    assert search.predict(x).shape == y.shape


@pytest.mark.parametrize(
    ("algorithm", "stage"),
    [
        ("auto", None),
        ("auto", "pooled"),
        ("boda+coral", None),
        ("mtl", None),
        ("ldam", "retrain"),
        ("erm", "lws"),
        ("ldam", "posthoc_prior"),
        ("erm", "ncm"),
    ],
)
def test_clones_and_pickles(samples, tmp_path, algorithm, stage):
    x, y, domain = samples
    model = CrosstailClassifier(algorithm, **SHORT, second_stage=stage).fit(x, y, domain=domain)
    expected = model.predict_proba(x)
    joblib.dump(model, tmp_path / "model")
    for again in (joblib.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(x), expected)
    assert not hasattr(pickle.loads(pickle.dumps(clone(model))), "network_")
    np.testing.assert_array_equal(clone(model).fit(x, y, domain=domain).predict_proba(x), expected)
    np.testing.assert_allclose(model.predict_proba(x[::-1]), expected[::-1], rtol=1e-12)


def test_domains_that_are_known_at_prediction_are_used(samples):
    x, y, domain = samples
    model = CrosstailClassifier("mtl", **SHORT, validation=0, random_state=3).fit(x, y, domain=domain)
    z = model.network_.backbone(torch.from_numpy(x.astype(np.float64)))
    mine = model.network_.domain_embedding[torch.from_numpy((domain == "south").astype(int))]
    expected = model.network_.head(torch.cat([z, mine], 1)).softmax(1).detach().numpy()
    np.testing.assert_allclose(model.predict_proba(x, domain=domain), expected, atol=1e-12)
    np.testing.assert_array_equal(model.predict(x, domain=list(domain)), model.classes_[expected.argmax(1)])
    assert np.abs(model.predict_proba(x) - expected).max() > 1e-3
    south = domain == "south"  # rows of one domain, which is not the first
    np.testing.assert_allclose(model.predict_proba(x[south], domain=domain[south]), expected[south], atol=1e-12)
    plain = CrosstailClassifier("erm", **SHORT).fit(x, y, domain=domain)
    np.testing.assert_array_equal(plain.predict_proba(x, domain=domain), plain.predict_proba(x))


@pytest.mark.parametrize(
    ("domain", "named"),
    [
        (["north", "east", "south"], r"'east'.*'north', 'south'"),
        ([0, 1, 0], r"0.*'north', 'south'"),
        (["north", None, "south"], "row 1"),
        (["north"], "inconsistent numbers"),
    ],
)
def test_an_unknown_domain_at_prediction_is_named(samples, domain, named):
    x, y, known = samples
    model = CrosstailClassifier("mtl", **SHORT).fit(x, y, domain=known)
    with pytest.raises(ValueError, match=named):
        model.predict(x[:3], domain=domain)


@pytest.mark.parametrize("method", ["auto", "mtl"])
def test_a_pipeline_passes_the_domain_on_to_predictions(samples, method):
    x, y, domain = samples
    with config_context(enable_metadata_routing=True):
        model = CrosstailClassifier(method, **SHORT).set_fit_request(domain=True)
        model = model.set_predict_request(domain=True).set_predict_proba_request(domain=True)
        pipeline = make_pipeline(StandardScaler(), model).fit(x, y, domain=domain)
        scaled = pipeline[0].transform(x)
        known = pipeline.predict_proba(x, domain=domain)
        np.testing.assert_array_equal(known, pipeline[1].predict_proba(scaled, domain=domain))
        assert (pipeline.predict(x, domain=domain) == pipeline[1].classes_[known.argmax(1)]).all()
        assert not np.allclose(known, pipeline.predict_proba(x), rtol=1e-3, atol=0)


def test_leaves_torchs_random_numbers_alone(samples):
    x, y, domain = samples
    before = torch.get_rng_state()
    pickle.loads(pickle.dumps(CrosstailClassifier(**SHORT).fit(x, y, domain=domain))).predict(x)
    assert torch.equal(torch.get_rng_state(), before)


def test_predicts_in_parts_as_whole(samples, monkeypatch):
    x, y, domain = samples
    model = CrosstailClassifier(**SHORT).fit(x, y, domain=domain)
    whole = model.predict_proba(x)
    monkeypatch.setattr("crosstail.sklearn.BATCH", 7)
    np.testing.assert_allclose(model.predict_proba(x), whole, rtol=1e-12)


def test_the_sampler_brings_every_pair_to_the_size_of_the_largest(samples):
    x, y, domain = samples
    sampler = PairOverSampler(random_state=5)
    new_x, new_y = sampler.fit_resample(x, y, domain=domain)
    rows = sampler.sample_indices_
    np.testing.assert_array_equal(new_x, x[rows])
    np.testing.assert_array_equal(new_y, y[rows])
    pairs = pd.DataFrame({"y": y, "domain": domain, "times": np.bincount(rows, minlength=len(y))})
    times = pairs.groupby(["y", "domain"])["times"]
    assert times.sum().tolist() == [21] * 6
    assert ((times.max() - times.min()) <= 1).all() and pairs["times"].min() == 1
    again = PairOverSampler(random_state=5)
    again.fit_resample(x, y, domain=domain)
    np.testing.assert_array_equal(again.sample_indices_, rows)
    assert clone(sampler).get_params() == {"random_state": 5}


def test_the_sampler_keeps_the_kind_of_its_inputs(samples):
    x, y, domain = samples
    frame, series = PairOverSampler().fit_resample(pd.DataFrame(x), pd.Series(y), domain=pd.Series(domain))
    assert isinstance(frame, pd.DataFrame) and isinstance(series, pd.Series)
    sparse, _ = PairOverSampler().fit_resample(csr_array(x), y, domain=domain)
    assert issparse(sparse)
    np.testing.assert_array_equal(sparse.toarray(), frame.to_numpy())
    _warn_about_one_domain.cache_clear()
    with pytest.warns(UserWarning, match="all samples count as one domain"):
        _, new_y = PairOverSampler().fit_resample(x, y)
    assert np.unique(new_y, return_counts=True)[1].tolist() == [27] * 3


def by_hand(model, x, y, domain):
    """Accuracy of every pair with samples, with loops."""
    right, found = model.predict(x) == y, []
    for d in set(domain):
        for c in set(y):
            own = [bool(r) for r, yi, di in zip(right, y, domain, strict=True) if (di, yi) == (d, c)]
            found += [sum(own) / len(own)] if own else []
    return found


def test_a_search_scores_pairs(samples):
    x, y, domain = samples
    folds, grid = StratifiedKFold(3), {"var_smoothing": [1e-9, 10.0]}
    with config_context(enable_metadata_routing=True):
        both = {"average": pair_average, "worst": pickle.loads(pickle.dumps(worst_pair))}
        search = GridSearchCV(GaussianNB(), grid, scoring=both, refit="worst", cv=folds).fit(x, y, domain=domain)
        alone = GridSearchCV(GaussianNB(), grid, scoring=worst_pair, cv=folds).fit(x, y, domain=domain)
        model = CrosstailClassifier().set_fit_request(domain=True)
        scores = cross_val_score(model, x, y, scoring=pair_average, cv=folds, params={"domain": domain})
    for number, (train, test) in enumerate(folds.split(x, y)):
        for which, smoothing in enumerate(grid["var_smoothing"]):
            model = GaussianNB(var_smoothing=smoothing).fit(x[train], y[train])
            pairs = by_hand(model, x[test], y[test], domain[test])
            assert search.cv_results_[f"split{number}_test_average"][which] == pytest.approx(np.mean(pairs))
            assert search.cv_results_[f"split{number}_test_worst"][which] == min(pairs)
        model = CrosstailClassifier().fit(x[train], y[train], domain=domain[train])
        assert scores[number] == pytest.approx(np.mean(by_hand(model, x[test], y[test], domain[test])))
    assert alone.best_params_ == search.best_params_ and alone.best_score_ == search.best_score_


def test_a_scorer_without_domains_says_how(samples):
    x, y, domain = samples
    model = CrosstailClassifier().fit(x, y, domain=domain)
    with pytest.raises(ValueError, match=r"worst_pair needs the domains: .*enable_metadata_routing"):
        worst_pair(model, x, y)
    assert worst_pair(model, x, y, domain=domain) == min(by_hand(model, x, y, domain))
