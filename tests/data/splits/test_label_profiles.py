"""Label profiles: the formulas against loops, their text, and what they keep."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosstail.data.dataset import DomainDataset
from crosstail.data.splits.label_profiles import KINDS, LabelProfile, apply_labels

factors = st.one_of(st.integers(1, 500).map(float), st.floats(1, 500))
tailed = st.sampled_from([kind for kind in KINDS if kind != "uniform"])
profiles = st.one_of(st.just(LabelProfile("uniform")), st.builds(LabelProfile, tailed, factors))
pools = st.lists(st.integers(0, 300), min_size=1, max_size=12)


def oracle(kind, factor, available):
    n_max, num_classes, kept = max(available), len(available), []
    for c, there in enumerate(available):
        position = c if kind == "forward" else num_classes - 1 - c
        if kind == "uniform":
            n = n_max
        elif kind == "step":
            n = n_max if c < math.ceil(num_classes / 2) else n_max / factor
        else:
            n = n_max * math.pow(factor, -position / (num_classes - 1) if num_classes > 1 else 0)
        kept.append(min(there, max(1, math.floor(n + 1e-9))))
    return kept


@given(profiles, pools)
def test_counts_are_those_of_the_formula(profile, available):
    assert profile.counts(available).tolist() == oracle(profile.kind, profile.factor, available)


def test_smallest_digits_mlt_of_the_paper_has_4956_training_samples():
    both = sum(LabelProfile.parse(text).counts([1000] * 10).sum() for text in ("forward:100", "backward:100"))
    assert both == 4956


@given(factors, st.integers(1, 1000), st.integers(1, 20))
def test_forward_falls_and_backward_is_its_mirror_image(factor, n, num_classes):
    forward = LabelProfile("forward", factor).counts([n] * num_classes)
    assert (np.diff(forward) <= 0).all() and forward[0] == n
    assert (LabelProfile("backward", factor).counts([n] * num_classes) == forward[::-1]).all()


@given(tailed, factors, factors, pools)
def test_a_larger_factor_never_keeps_more(kind, a, b, available):
    small, large = sorted((a, b))
    assert (LabelProfile(kind, large).counts(available) <= LabelProfile(kind, small).counts(available)).all()


@given(profiles, pools)
def test_at_least_one_and_never_more_than_available(profile, available):
    kept = profile.counts(available)
    assert (kept <= available).all() and ((kept >= 1) == (np.array(available) >= 1)).all()


@given(profiles, st.lists(st.sampled_from(["dog", "7", "two words", "a!b", "x:y"]), unique=True, max_size=3))
def test_text_round_trip(profile, excluded):
    profile = LabelProfile(profile.kind, profile.factor, tuple(excluded))
    assert LabelProfile.parse(str(profile)) == profile


def test_text_is_short():
    assert str(LabelProfile.parse(" forward:50.0 ! 7, 9 ")) == "forward:50!7,9"
    assert str(LabelProfile.parse("uniform")) == "uniform"
    assert str(LabelProfile.parse("step:2.5")) == "step:2.5"


def test_excluded_classes_by_name_and_by_index():
    classes = ("cat", "dog", "2", "owl")  # a name goes before an index
    kept = LabelProfile.parse("uniform!dog,2,3").counts([5, 5, 5, 5], classes)
    assert kept.tolist() == [5, 0, 0, 0]
    assert LabelProfile.parse("uniform!cat").counts([5, 5], ("1", "cat")).tolist() == [5, 0]
    assert LabelProfile.parse("uniform!1").counts([5, 5], ("1", "cat")).tolist() == [0, 5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foward:50", "uniform, forward, backward, step"),
        ("", "uniform, forward"),
        ("forward", "'forward' has no factor, expected for example 'forward:50'"),
        ("forward:", "has the factor '', expected a number from 1 up, as in 'forward:50'"),
        ("forward:many", "has the factor 'many', expected a number from 1 up"),
        ("step:0.5", "has the factor 0.5, expected a number from 1 up, as in 'step:50'"),
        ("backward:nan", "has the factor nan, expected a number from 1 up"),
        ("backward:inf", "has the factor inf, expected a number from 1 up"),
        ("uniform:3", "'uniform' takes no factor but has 3"),
        ("forward:50!", "leaves out '', expected names or indices of classes"),
        ("forward:50!3,,4", "leaves out '', expected names or indices of classes"),
    ],
)
def test_wrong_text(text, message):
    with pytest.raises(ValueError) as error:
        LabelProfile.parse(text)
    assert message in str(error.value)


def test_unknown_class():
    profile = LabelProfile.parse("uniform!fox")
    with pytest.raises(ValueError, match="the class 'fox', expected an index from 0 to 1 or one of cat, dog"):
        profile.counts([5, 5], ("cat", "dog"))
    with pytest.raises(ValueError, match=r"the class 'fox', expected an index from 0 to 1$"):
        profile.counts([5, 5])


def make(per_pair=40, domains=2, classes=4):
    """x is the row number, so that samples can be followed."""
    domain, y, k = (a.ravel() for a in np.indices((domains, classes, per_pair)))
    split = np.where(k < per_pair - 6, "train", np.where(k < per_pair - 4, "val", "test"))
    order = np.random.default_rng(0).permutation(len(y))
    x = np.arange(len(y), dtype=np.float32)[:, None]
    names = [tuple("abcdefgh"[:n]) for n in (classes, domains)]
    return DomainDataset("made", x, y[order], domain[order], split[order], *names)


def kept_rows(dataset, split="train"):
    return set(dataset.x[dataset.rows(split), 0].astype(int).tolist())


def test_only_training_samples_go():
    whole = make()
    part = apply_labels(whole, ["forward:10", "backward:10!b"], seed=3)
    assert part.counts("train").tolist() == [[34, 15, 7, 3], [3, 0, 15, 34]]
    for split in ("val", "test"):
        assert kept_rows(part, split) == kept_rows(whole, split)
    assert kept_rows(part) < kept_rows(whole)
    same = whole.x[:, 0].searchsorted(part.x[:, 0])
    assert (whole.y[same] == part.y).all() and (whole.domain[same] == part.domain).all()


@pytest.mark.parametrize("kind", ["forward", "backward", "step"])
def test_a_smaller_count_keeps_a_subset(kind):
    whole = make()
    rows = [kept_rows(apply_labels(whole, [f"{kind}:{factor}"], seed=1)) for factor in (1, 2, 5, 30)]
    for larger, smaller in pairwise(rows):
        assert smaller < larger
    # Also between kinds: what counts is the number only.
    few, many = apply_labels(whole, ["forward:30"], seed=1), apply_labels(whole, ["step:2"], seed=1)
    assert kept_rows(few) < kept_rows(many)


def test_deterministic_and_different_by_seed():
    whole = make()
    first, again, other = (kept_rows(apply_labels(whole, ["forward:9"], seed)) for seed in (1, 1, 2))
    assert first == again != other


def test_one_profile_is_for_all_domains_and_none_keeps_all():
    whole = make(domains=3)
    assert (apply_labels(whole, ["step:2"], 0).counts() == [[34, 34, 17, 17]] * 3).all()
    assert (apply_labels(whole, "step:2", 0).counts() == [[34, 34, 17, 17]] * 3).all()
    assert apply_labels(whole, None, 0) is whole and apply_labels(whole, [], 0) is whole
    assert kept_rows(apply_labels(whole, ["uniform"], 0)) == kept_rows(whole)


def test_wrong_number_of_profiles():
    with pytest.raises(ValueError, match=r"made: 2 label profiles for 3 domains \(a, b, c\), expected one for all"):
        apply_labels(make(domains=3), ["uniform", "uniform"], 0)
