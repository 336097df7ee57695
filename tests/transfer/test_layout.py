"""The 2-D layout: deterministic, faithful to the distances, and independent of the order of the pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosstail.transfer.layout import planar_layout


def distances(points):
    return np.linalg.norm(points[:, None] - points[None, :], axis=2)


def stress(points, matrix):
    """Sum of squared differences over all edges of the symmetrised matrix."""
    wanted = (matrix + matrix.T) / 2
    np.fill_diagonal(wanted, 0)
    return float(((distances(points) - wanted) ** 2).sum())


def classical(matrix):
    """Torgerson's scaling: the two largest eigenvectors of the doubly centred squares."""
    wanted = (matrix + matrix.T) / 2
    np.fill_diagonal(wanted, 0)
    centring = np.eye(len(wanted)) - 1 / len(wanted)
    values, vectors = np.linalg.eigh(-0.5 * centring @ wanted**2 @ centring)
    return vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0))


def transferability(seed, size, num_features=6):
    """Distances as they are between clouds in several dimensions: not planar, not symmetric, not 0 on the diagonal."""
    rng = np.random.default_rng(seed)
    matrix = distances(rng.normal(size=(size, num_features))) + 0.1 * rng.random((size, size))
    return matrix + 0.2 * np.eye(size)


seeds, sizes = st.integers(0, 10_000), st.integers(3, 12)


@given(seeds, sizes)
@settings(max_examples=20, deadline=None)
def test_planar_configurations_are_recovered(seed, size):
    matrix = distances(np.random.default_rng(seed).normal(size=(size, 2)))
    np.testing.assert_allclose(distances(planar_layout(matrix)), matrix, atol=1e-3)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_planar_configurations_are_recovered_at_any_scale(scale):
    matrix = scale * distances(np.random.default_rng(0).normal(size=(8, 2)))
    np.testing.assert_allclose(distances(planar_layout(matrix)), matrix, atol=1e-3 * scale)


@given(seeds, sizes)
@settings(max_examples=20, deadline=None)
def test_same_matrix_same_picture_and_the_matrix_is_left_alone(seed, size):
    matrix = transferability(seed, size)
    before = matrix.copy()
    first = planar_layout(matrix)
    np.random.seed(seed)  # noqa: NPY002
    assert (planar_layout(matrix) == first).all()
    assert (matrix == before).all()


@given(seeds, sizes)
@settings(max_examples=20, deadline=None)
def test_the_order_of_the_pairs_does_not_matter(seed, size):
    matrix = transferability(seed, size)
    order = np.random.default_rng(seed).permutation(size)
    moved = planar_layout(matrix[np.ix_(order, order)])
    np.testing.assert_allclose(distances(moved), distances(planar_layout(matrix))[np.ix_(order, order)], atol=1e-6)


@given(seeds, sizes)
@settings(max_examples=20, deadline=None)
def test_both_directions_count_the_same(seed, size):
    matrix = transferability(seed, size)
    mean = (matrix + matrix.T) / 2
    assert (planar_layout(matrix) == planar_layout(mean)).all()
    assert (planar_layout(matrix) == planar_layout(matrix.T)).all()


@given(seeds, sizes)
@settings(max_examples=20, deadline=None)
def test_stress_is_not_worse_than_that_of_classical_scaling(seed, size):
    matrix = transferability(seed, size)
    assert stress(planar_layout(matrix), matrix) <= stress(classical(matrix), matrix) + 1e-6


def test_stress_is_better_where_the_pairs_are_not_planar():
    matrix = transferability(0, 12)
    assert stress(planar_layout(matrix), matrix) < 0.9 * stress(classical(matrix), matrix)


@given(seeds, sizes)
@settings(max_examples=20, deadline=None)
def test_the_picture_is_centred_and_its_longest_axis_lies_flat(seed, size):
    points = planar_layout(transferability(seed, size))
    np.testing.assert_allclose(points.mean(0), 0, atol=1e-9)
    spread = points.T @ points
    assert abs(spread[0, 1]) < 1e-8 * spread[0, 0] and spread[0, 0] >= spread[1, 1]


def test_one_two_and_three_pairs():
    assert planar_layout(np.array([[0.7]])).tolist() == [[0.0, 0.0]]
    assert distances(planar_layout(np.array([[0.5, 2.0], [4.0, 0.1]])))[0, 1] == pytest.approx(3.0)
    matrix = np.array([[0.2, 3.0, 4.0], [3.0, 0.1, 5.0], [4.0, 5.0, 0.3]])
    found = distances(planar_layout(matrix))
    np.testing.assert_allclose(found, matrix - np.diag(np.diag(matrix)), atol=1e-3)


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_pairs_that_all_coincide_are_drawn_in_one_place(size):
    assert (planar_layout(np.zeros((size, size))) == np.zeros((size, 2))).all()


def test_some_pairs_that_coincide():
    points = np.array([[0.0, 0.0], [0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    np.testing.assert_allclose(distances(planar_layout(distances(points))), distances(points), atol=1e-3)


def test_pairs_on_a_line():
    points = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0], [7.0, 0.0]])
    np.testing.assert_allclose(distances(planar_layout(distances(points))), distances(points), atol=1e-3)
