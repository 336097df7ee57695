"""Accuracies with the domain known, against a loop over the samples with MTL's own embedding of their domain."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from crosstail.data import load_source, protocols
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder
from crosstail.training.model import load_model
from crosstail.training.refit import refit_spec, with_estimate
from crosstail.training.resolve import resolve
from crosstail.training.result import pooled_accuracy
from crosstail.training.run import Run
from crosstail.training.run_data import Inputs, load_inputs

COUNTS = np.array([[40, 4, 0], [4, 40, 2], [2, 4, 40]])


@pytest.fixture
def spec(tmp_path):
    """Classes that overlap and are frequent in one domain each, so that the domain says much about the class."""
    rng = np.random.default_rng(0)
    parts = {"train": COUNTS, "val": COUNTS // 2, "test": COUNTS}
    d, c = (np.concatenate([np.repeat(i.ravel(), n.ravel()) for n in parts.values()]) for i in np.indices((3, 3)))
    x = rng.normal(size=(len(d), 4)) + np.eye(4)[c] + 0.5 * rng.normal(size=(3, 4))[d]
    split = np.repeat(list(parts), [n.sum() for n in parts.values()])
    file = tmp_path / "v.npz"
    np.savez(file, x=x.astype(np.float32), y=c, domain=d, split=split, groups=np.arange(len(d)) // 2)
    size = {"backbone": "mlp", "width": 8, "steps": 60, "batch_size": 8, "evaluations": 3}
    return resolve(RunSpec(dataset=str(file), algorithm="mtl", hparams={"lr": 0.02}, **size))


def test_both_tracks_are_those_of_the_model(spec, tmp_path):
    run = train_run(spec, tmp_path / "run")
    dataset = load_inputs(spec).embedded()
    model = load_model(run.folder, dataset).eval()
    embeddings = {"known": model.domain_embedding, "unknown": model.domain_embedding.mean(0).expand(3, -1)}
    for name, split in (("validation", "val"), ("test", "test")):
        hits = {track: np.zeros((3, 3), int) for track in embeddings}
        for row in dataset.rows(split):
            d, y = dataset.domain[row], dataset.y[row]
            z = model.backbone(torch.from_numpy(dataset.x[row : row + 1]))[0]
            for track, embedding in embeddings.items():
                hits[track][d, y] += int(model.head(torch.cat([z, embedding[d]])).argmax()) == y
        found = {"known": getattr(run.result.known, name), "unknown": getattr(run.result, name)}
        assert all((np.array(found[track].hits) == own).all() for track, own in hits.items())
        assert (hits["known"] != hits["unknown"]).any()
        assert found["known"].squares == found["unknown"].squares and found["known"].shots.keys() >= {"few", "zero"}
    assert RunFolder(tmp_path / "run").result() == run.result == train_run(spec, tmp_path / "run").result
    stored = Run(run.path).test
    assert stored is not None and (stored.told.predicted != stored.predicted).any()
    for d, y in np.ndindex(3, 3):
        own = (stored.domain == d) & (stored.y == y)
        assert stored.told.keep(own).correct.sum() == run.result.known.test.hits[d][y]


@pytest.mark.parametrize("changes", [{"algorithm": "erm"}, {"second_stage": "retrain"}, {"protocol": "dg"}])
def test_a_model_that_ignores_the_domain_or_is_tested_on_unseen_ones_has_one_track(spec, tmp_path, changes):
    spec = resolve(replace(spec, hparams={}, **changes, steps=2, evaluations=1))
    run = train_run(protocols.parts(spec, load_source(spec))[0], tmp_path / "run")
    assert run.result.known is None and run.test.informed is None
    assert "known" not in (tmp_path / "run" / "result.json").read_text()


def test_a_single_domain_is_always_known(spec, tmp_path):
    dataset = load_inputs(spec).samples
    one = replace(dataset.keep(dataset.domain == 0), domains=dataset.domains[:1])
    run = train_run(replace(spec, steps=2, evaluations=1), tmp_path / "run", inputs=Inputs(one))
    assert run.result.known is None and run.test.informed is None


@pytest.mark.parametrize("changes", [{}, {"folds": 2}])
def test_a_refit_is_given_the_estimate_of_both_tracks(spec, tmp_path, changes):
    spec = replace(spec, **changes)
    runs = [train_run(one, tmp_path / str(one.fold)) for one in protocols.parts(spec, load_source(spec))]
    results = [run.result for run in runs]
    run = with_estimate(train_run(refit_spec(results), tmp_path / "refit"), runs)
    hits = np.sum([result.known.test.hits for result in results], axis=0)
    estimate = run.result.known.estimate
    assert (np.array(estimate.hits) == hits).all() and (hits != np.array(run.result.estimate.hits)).any()
    assert estimate == pooled_accuracy(results, np.array(run.result.counts), known=True)
    assert estimate.shots.keys() == run.result.estimate.shots.keys() and not np.any(run.result.known.test.totals)
    assert RunFolder(tmp_path / "refit").result() == run.result
