"""Every metric keeps the promises of crosstail.testing."""

import pytest

from crosstail import metrics
from crosstail.metrics import SampleValues
from crosstail.testing.parts import METRIC_CHECKS, _answers


@pytest.mark.parametrize("check", METRIC_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("metric", metrics.names())
def test_every_metric(metric, check):
    check(metric)


@pytest.mark.parametrize("metric", metrics.names())
def test_only_means_have_intervals(metric):
    found = _answers(80).value(metric)
    if isinstance(found, SampleValues):
        assert found.interval("worst_pair") is found.interval((0, 0)) is None
