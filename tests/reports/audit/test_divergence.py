"""Label divergence: the equations against loops, and what must hold for any counts."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from crosstail.reports.audit.divergence import jensen_shannon, label_divergence


@st.composite
def count_tables(draw, min_domains=1, min_samples=1):
    num_domains, num_classes = draw(st.integers(min_domains, 4)), draw(st.integers(1, 6))
    row = st.lists(st.integers(0, 200), min_size=num_classes, max_size=num_classes)
    return np.array([draw(row.filter(lambda n: sum(n) >= min_samples)) for _ in range(num_domains)])


def divergence(p, q):
    """½ KL(p ‖ m) + ½ KL(q ‖ m), one class at a time."""
    total = 0.0
    for a, b in zip(p, q, strict=True):
        m = (a + b) / 2
        total += a * math.log2(a / m) / 2 if a else 0
        total += b * math.log2(b / m) / 2 if b else 0
    return total


def distributions(counts):
    return [[n / sum(row) for n in row] for row in counts.tolist()]


@given(count_tables())
def test_both_terms_and_their_sum_are_those_of_the_appendix(counts):
    found, p = label_divergence(counts), distributions(counts)
    uniform = [1 / counts.shape[1]] * counts.shape[1]
    total = 0.0
    for d in range(len(p)):
        assert found.from_uniform[d] == pytest.approx(divergence(p[d], uniform), abs=1e-9)
        total += divergence(p[d], uniform)
        for other in range(len(p)):
            assert found.between[d, other] == pytest.approx(divergence(p[d], p[other]), abs=1e-9)
            if other != d:
                total += divergence(p[d], p[other])
    assert found.total == pytest.approx(total, abs=1e-9)


@given(count_tables())
def test_ratio_effective_classes_and_means_by_loops(counts):
    found = label_divergence(counts)
    for d, row in enumerate(counts.tolist()):
        there = [n for n in row if n]
        assert found.imbalance_ratio[d] == pytest.approx(max(there) / min(there))
        entropy = -sum(n / sum(row) * math.log2(n / sum(row)) for n in there)
        assert found.effective_classes[d] == pytest.approx(2**entropy)
    pairs = [(i, j) for i in range(len(counts)) for j in range(len(counts)) if i != j]
    assert found.imbalance == pytest.approx(np.mean(found.from_uniform))
    assert found.mismatch == pytest.approx(np.mean([found.between[pair] for pair in pairs]) if pairs else 0)


@given(count_tables())
def test_symmetric_and_between_0_and_1(counts):
    found = label_divergence(counts)
    assert (found.between == found.between.T).all() and (np.diag(found.between) == 0).all()
    for values in (found.from_uniform, found.between):
        assert np.isfinite(values).all() and (values >= 0).all() and (values <= 1).all()


@given(count_tables(min_domains=2))
def test_0_exactly_for_the_same_shares(counts):
    found, p = label_divergence(counts), distributions(counts)
    for d in range(len(p)):
        assert (found.from_uniform[d] > 1e-12) == (len(set(counts[d].tolist())) > 1)
        for other in range(len(p)):
            # Shares as whole numbers, so that equal ones are found equal.
            same = (counts[d] * counts[other].sum() == counts[other] * counts[d].sum()).all()
            assert (found.between[d, other] > 1e-12) == (not same)


@given(count_tables(), st.integers(2, 9), st.randoms())
def test_scaling_a_domain_changes_nothing_and_classes_may_be_in_any_order(counts, factor, random):
    order = list(range(counts.shape[1]))
    random.shuffle(order)
    found, changed = label_divergence(counts), label_divergence(counts[:, order] * factor)
    np.testing.assert_allclose(changed.from_uniform, found.from_uniform, atol=1e-12)
    np.testing.assert_allclose(changed.between, found.between, atol=1e-12)


def test_no_class_in_common_is_1_and_one_class_of_many_nears_1_from_uniform():
    assert label_divergence([[5, 0], [0, 9]]).between[0, 1] == 1
    assert label_divergence([[7] + [0] * 999]).from_uniform[0] > 0.99


def test_a_domain_without_samples_is_left_out():
    found, without = label_divergence([[3, 1], [0, 0], [1, 3]]), label_divergence([[3, 1], [1, 3]])
    assert np.isnan(found.from_uniform).tolist() == [False, True, False]
    for value in ("total", "imbalance", "mismatch", "chance_imbalance", "chance_mismatch"):
        assert getattr(found, value) == pytest.approx(getattr(without, value))
    assert found.farthest() == (0, 2)


def test_without_a_second_domain_there_is_no_mismatch():
    for counts in ([[3, 1]], [[3, 1], [0, 0]]):
        found = label_divergence(counts)
        assert found.mismatch == 0 and found.chance_mismatch == 0 and found.farthest() is None


def test_farthest_are_the_two_domains_that_differ_most():
    assert label_divergence([[9, 1], [5, 5], [1, 9]]).farthest() == (0, 2)
    assert label_divergence([[5, 5], [5, 5]]).farthest() == (0, 1)


@pytest.mark.parametrize("per_class", [10, 40])
def test_chance_is_what_samples_of_the_same_distribution_show(per_class):
    rng = np.random.default_rng(0)
    found = [label_divergence(rng.multinomial(20 * per_class, [1 / 20] * 20, size=3)) for _ in range(200)]
    assert np.mean([f.mismatch for f in found]) == pytest.approx(found[0].chance_mismatch, rel=0.1)
    assert np.mean([f.imbalance for f in found]) == pytest.approx(found[0].chance_imbalance, rel=0.1)


@given(count_tables())
def test_chance_is_never_above_the_largest_divergence(counts):
    found = label_divergence(counts)
    assert 0 <= found.chance_imbalance <= 1 and 0 <= found.chance_mismatch <= 1


@pytest.mark.parametrize("counts", [[1, 2], [[1.0, 2.0]], [[-1, 2]], [[], []]])
def test_what_is_no_table_of_counts_is_refused(counts):
    with pytest.raises(ValueError, match="counts is"):
        label_divergence(counts)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6))
def test_jensen_shannon_is_finite_for_any_shares(weights):
    p, q = np.array(weights).T
    assume(p.sum() > 1e-300 and q.sum() > 1e-300)
    assert 0 <= jensen_shannon(p / p.sum(), q / q.sum()) <= 1
