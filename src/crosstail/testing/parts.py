"""Contract checks for the other parts: metrics, backbones and data sets."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from crosstail import backbones, data, metrics
from crosstail.data.benchmarks._load import existing_sheet
from crosstail.metrics import Answers, SampleValues, value_on

DOMAINS, CLASSES = 3, 4
Check = Callable[[str], None]


def _answers(samples: int, skill: float = 1.0) -> Answers:
    """Answers for samples of any pair but one; the higher the skill, the more of them are right."""
    rng = np.random.default_rng(samples)
    domain, y = rng.integers(0, DOMAINS, samples), rng.integers(0, CLASSES, samples)
    y[(domain == 0) & (y == 3)] = 0
    scores = rng.normal(size=(samples, CLASSES))
    scores[np.arange(samples), y] += skill
    log_p = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    names: dict[str, Any] = {"domains": [*"abc"], "classes": [*"wxyz"], "counts": np.ones((DOMAINS, CLASSES), np.int64)}
    given = {"y": y, "domain": domain, "predicted": log_p.argmax(1), "log_p": log_p}
    return Answers(**names, **given, true=log_p[np.arange(samples), y])


def _judged(metric: str, answers: Answers) -> list[Any]:
    """All that is shown of a metric, and what is selected on."""
    found = answers.value(metric)
    views = found.average, found.pair_average, found.worst_pair, value_on(answers, metric), *(found.interval() or ())
    return [found.matrix, np.array(found.domains, float), np.array(views, float)]


def check_metric_is_described(name: str) -> None:
    """The metric has a label and a largest value, and is found by its name."""
    found = metrics.find(name)
    assert found.name == name and found.label and found.most > 0, f"{name}: no label, or `most` is {found.most}"


def check_metric_without_samples(name: str) -> None:
    """Without samples, nothing is defined; nor is it for a pair without samples."""
    none, some = _answers(0), _answers(80)
    found, matrix = none.value(name), some.value(name).matrix
    assert np.isnan(found.matrix).all() and found.domains == [None] * DOMAINS, f"{name}: has values without samples"
    views = [found.pair_average, found.worst_pair, found.tail, found.interval(), value_on(none, name)]
    assert views == [None] * 5, f"{name}: an average is defined without samples"
    assert not isinstance(found, SampleValues) or found.influence.shape == (2, 0), f"{name}: influence of no samples"
    assert matrix.shape == (DOMAINS, CLASSES), f"{name}: values of shape {matrix.shape}, expected (domains, classes)"
    empty = np.bincount(some.pair, minlength=DOMAINS * CLASSES) == 0
    assert (np.isnan(matrix.ravel()) == empty).all(), f"{name}: a pair without samples must have no value, others one"


def check_metric_ignores_order(name: str) -> None:
    """The order of samples, and the order and names of domains, do not matter."""
    answers, place = _answers(80), np.array([2, 0, 1])
    plain = _judged(name, answers)
    shuffled = _judged(name, answers.keep(np.random.default_rng(1).permutation(len(answers))))
    matrix, domains, views = _judged(name, answers.described(domains=[*"nsw"], domain=place[answers.domain]))
    for what, other in (("samples", shuffled), ("domains", [matrix[place], domains[place], views])):
        same = all(np.allclose(a, b, rtol=1e-9, equal_nan=True) for a, b in zip(plain, other, strict=True))
        assert same, f"{name}: depends on the order of {what}"


def check_metric_range(name: str) -> None:
    """Values and intervals are between 0 and `most`, whatever the answers."""
    most = metrics.find(name).most
    for samples, skill in ((n, s) for n in (1, 2, 7, 80) for s in (-30.0, -1.0, 1.0, 30.0)):
        found = _answers(samples, skill).value(name)
        known = found.matrix[~np.isnan(found.matrix)]
        assert np.all((known >= -1e-12) & (known <= most + 1e-12)), f"{name}: a value is outside 0 to {most:g}"
        for view in ("average", "pair_average") if len(known) else ():
            low, high = found.interval(view) or (0.0, most)
            value = getattr(found, view)
            assert 0 <= low <= value + 1e-9 and value - 1e-9 <= high <= most, f"{name}: {value} outside its interval"


def _built(name: str, shape: tuple[int, ...]) -> backbones.Backbone:
    """With random weights where the backbone's own would have to be downloaded."""
    network = backbones.pretrained(name)
    fetched = network is not None and network.installed is None
    return backbones.build(name, shape, weights=backbones.RANDOM if fetched else None)


def _shape_for(name: str) -> tuple[int, ...]:
    """The shape of inputs that a backbone takes: images or vectors."""
    taken, refused = [], []
    for shape in ((3, 32, 32), (12,)):
        try:
            _built(name, shape)
            taken.append(shape)
        except ValueError as error:
            refused.append(str(error))
    assert len(taken) == 1, f"{name}: takes {taken or 'nothing'}, expected images or vectors: call require; {refused}"
    return taken[0]


def check_backbone_features(name: str) -> None:
    """The features are as many as it says, finite, and of one sample whatever its batch; inputs stay as they are."""
    shape = _shape_for(name)
    backbone = _built(name, shape)
    x = torch.rand(3, *shape)
    kept = x.clone()
    for mode in (False,) if backbones.pretrained(name) else (True, False):
        backbone.train(mode)
        with torch.no_grad():
            z, alone = backbone(x), backbone(x[1:2])
        found = tuple(z.shape)
        assert found == (3, backbone.num_features), f"{name}: features {found}, expected (3, {backbone.num_features})"
        assert torch.equal(x, kept), f"{name}: writes into its inputs, which other parts read too"
        assert z.dtype == torch.float32 and bool(z.isfinite().all()), f"{name}: features are not finite float32"
        assert torch.allclose(z[1:2], alone, rtol=1e-4, atol=1e-5), f"{name}: features depend on the batch"


def check_data_set_sheet(name: str) -> None:
    """The sheet says what a user must know, and its domains and classes are those of the data."""
    sheet = existing_sheet(name)
    for field in ("title", "summary", "made_by", "domains", "classes", "licence", "citation", "source"):
        assert getattr(sheet, field), f"{name}: {field} of the data sheet is empty"
    assert sheet.few < sheet.many, f"{name}: few is {sheet.few}, expected less than many, {sheet.many}"
    dataset = data.load(name, labels=())
    named = (dataset.name, dataset.domains, dataset.classes) == (sheet.name, sheet.domains, sheet.classes)
    assert named, f"{name}: name, domains or classes of the data differ from the sheet"
    kind = data.kind_in(name)
    assert kind.holds(dataset.x), f"{name}: the sheet says that inputs are {sheet.inputs}, which the data are not"


def check_data_set_splits(name: str) -> None:
    """Every pair can be validated and tested, every domain trained, and labels thin out the training set only."""
    dataset, default = data.load(name, labels=()), data.load(name)
    for split in ("val", "test"):
        assert (dataset.counts(split) > 0).all(), f"{name}: a pair has no samples in {split}"
        assert (dataset.counts(split) == default.counts(split)).all(), f"{name}: the labels change the split {split}"
    assert (default.counts("train").sum(1) > 0).all(), f"{name}: a domain has no training samples"


def check_data_set_repeats(name: str) -> None:
    """Loading again gives the same samples, whatever was done to the first ones."""
    first = data.load(name)
    before = first.checksum
    if isinstance(first.x, np.ndarray) and first.x.flags.writeable:
        first.x[:] = 0
    assert data.load(name).checksum == before, f"{name}: loading again gives other samples"


METRIC_CHECKS: list[Check] = [check_metric_is_described, check_metric_without_samples, check_metric_ignores_order]
METRIC_CHECKS += [check_metric_range]
BACKBONE_CHECKS: list[Check] = [check_backbone_features]
DATA_SET_CHECKS: list[Check] = [check_data_set_sheet, check_data_set_splits, check_data_set_repeats]
