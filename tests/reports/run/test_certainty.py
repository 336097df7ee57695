"""What the page of a run says about calibration: why it is used, and why its error is larger than in each domain."""

import numpy as np
import pytest
from msgspec import structs

from crosstail.metrics import Answers
from crosstail.metrics._calibration import Calibration
from crosstail.reports.document.model import Text
from crosstail.reports.run.certainty import Confidence, certainty
from crosstail.reports.run.certainty_data import Certainty
from crosstail.training.held_out import HeldOut

TOTALS = [[200, 200], [200, 200]]


@pytest.fixture
def said(finished):
    """The texts about test samples whose label is of the class with this probability as often as `right` says."""

    def texts(sharpness, samples=50, right=0.9):
        plain = finished([[200, 200], [200, 200]], totals=TOTALS)
        domain, y = np.divmod(np.arange(800) // 200, 2)
        log_p = np.log(np.where(np.arange(2) == y[:, None], 0.9, 0.1))
        wrong = np.arange(800) % 200 >= 200 * right
        log_p[wrong] = log_p[wrong, ::-1]
        log_p = log_p.astype(np.float16)
        given = {"predicted": log_p.argmax(1), "log_p": log_p, "true": log_p[np.arange(800), y]}
        test = Answers(**plain.result.answered, y=y, domain=domain, row=np.arange(800), **given)
        kept = structs.replace(Calibration.none(plain.result.domains, 2), sharpness=sharpness, samples=samples)
        run = plain.knowing(held_out=HeldOut(test.keep(np.zeros(800, bool)), test), calibration=kept)
        return " ".join(block.text for block in certainty(run, Certainty.of(run)) if isinstance(block, Text))

    return texts


def test_the_page_says_whether_and_why_temperatures_are_used(said):
    assert "used as they are" in said(1.0) and "before calibration" not in said(1.0)
    assert "no validation samples" in said(1.0, samples=0)
    worse, better = said(3.0), said(0.5, right=0.75)
    assert "though not this difference" in worse and "before calibration it was 0.0" in worse
    assert "they lower the log loss" in better and "though" not in better


def test_an_error_larger_than_in_each_domain_has_few_bins_there():
    """Two domains of 30 samples, each of which is too sure and too unsure in turn."""
    confidence = np.tile(np.linspace(0.5, 1, 30), 2)
    hit = np.tile(np.linspace(0.5, 1, 30) < 0.75, 2)
    both = Confidence(confidence, hit, np.ones(60), np.repeat([0, 1], 30))
    assert both.cancels() and both.error()[0] > max(both.error(both.domain == d)[0] for d in (0, 1))
    assert not Confidence(confidence, hit, np.ones(60), np.zeros(60, int)).cancels()
