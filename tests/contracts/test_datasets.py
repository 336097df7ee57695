"""Every benchmark has a data sheet that agrees with what it loads."""

import numpy as np
import pytest

from crosstail import data, discovery
from crosstail.data.benchmarks._load import BENCHMARKS

# What a user must know of every data set; the rest of a sheet depends on where the data come from.
REQUIRED = ("name", "title", "summary", "made_by", "domains", "classes", "licence", "citation", "source")
NAMES = discovery.names(BENCHMARKS)


def module_of(name):
    return discovery.find(BENCHMARKS, name, "data set")


# Those with archives must be fetched first: their loading is tested in tests/data/benchmarks on small copies.
@pytest.fixture(scope="module", params=[name for name in NAMES if not module_of(name).SHEET.archives])
def found(request):
    module = module_of(request.param)
    return request.param, module, module.load(seed=0)


@pytest.fixture(scope="module")
def default(found):
    """With the labels of the sheet."""
    return data.load(found[0])


def test_the_sheet_agrees_with_the_data(found):
    name, module, dataset = found
    sheet = module.SHEET
    assert sheet.name == dataset.name == name
    assert (sheet.domains, sheet.classes) == (dataset.domains, dataset.classes)


@pytest.mark.parametrize("name", NAMES)
def test_the_sheet_says_what_a_user_must_know(name):
    module = module_of(name)
    for field in REQUIRED:
        assert getattr(module.SHEET, field), f"{field} is empty"
    assert module.SHEET.few < module.SHEET.many
    assert module.__doc__ and module.SHEET.name in module.__doc__


def test_the_default_labels_apply(found, default):
    _, module, dataset = found
    assert (default.counts("train") <= dataset.counts("train")).all()
    for split in ("val", "test"):
        assert (default.counts(split) == dataset.counts(split)).all()
    if module.SHEET.labels:
        assert len(default) < len(dataset)


def test_every_pair_can_be_tested_and_every_domain_trained(found, default):
    _, _, dataset = found
    assert (dataset.counts("test") > 0).all() and (dataset.counts("val") > 0).all()
    assert (default.counts("train").sum(axis=1) > 0).all()


def test_inputs_are_images_or_vectors(found):
    _, _, dataset = found
    is_image = dataset.x.dtype == np.uint8 and dataset.x.ndim == 4 and dataset.x.shape[3] == 3
    is_vector = dataset.x.dtype == np.float32 and dataset.x.ndim == 2
    assert is_image or is_vector
    assert dataset.kind.picture == is_image


def test_shot_thresholds_are_those_of_the_sheet(found):
    name, module, _ = found
    assert data.shot_thresholds(name) == (module.SHEET.many, module.SHEET.few)
