"""The transferability graph against loops over definitions 1, 3 and 4 of the paper."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crosstail.reports.graph_chart import graph_chart
from crosstail.transfer import TransferabilityGraph, TransferStatistics

FULL = [[3, 1, 5], [2, 4, 6], [7, 2, 1]]
HOLES = [[3, 0, 5], [2, 4, 0], [0, 0, 6], [1, 2, 3]]


def make(counts, seed=0, num_features=4):
    """Random features (N, F) with these counts (D, C), shuffled."""
    counts = np.asarray(counts)
    rng = np.random.default_rng(seed)
    domain, y = (np.repeat(index.ravel(), counts.ravel()) for index in np.indices(counts.shape))
    order = rng.permutation(len(y))
    centres = 2 * rng.normal(size=(*counts.shape, num_features))
    z = (centres[domain, y] + rng.normal(size=(len(y), num_features)))[order].astype(np.float32)
    return z, y[order], domain[order]


def build(z, y, domain, counts, **options):
    num_domains, num_classes = np.shape(counts)
    return TransferabilityGraph.from_features(z, y, domain, num_domains=num_domains, num_classes=num_classes, **options)


def mean(values):
    """Mean of what is there, None if nothing is."""
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


def euclidean(z, own, others):
    centre = [sum(column) / len(own) for column in zip(*own, strict=True)]
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(z, centre, strict=True)))


def mahalanobis(z, own, others):
    """√Σ (z − μ)² / v̂ with v̂ = (n v + 10 v̄) / (n + 10), where v̄ is the mean variance within all pairs."""
    samples = [(row, pair) for pair in others for row in pair]
    total, n = 0.0, len(own)
    pooled = []
    for f in range(len(z)):
        centres = [sum(row[f] for row in pair) / len(pair) for pair in others]
        squares = sum((row[f] - c) ** 2 for pair, c in zip(others, centres, strict=True) for row in pair)
        pooled.append(squares / len(samples))
    for f, value in enumerate(z):
        centre = sum(row[f] for row in own) / n
        variance = sum((row[f] - centre) ** 2 for row in own) / n
        common = max(pooled[f], 1e-3 * sum(pooled) / len(pooled))
        total += (value - centre) ** 2 / ((n * variance + 10 * common) / (n + 10))
    return math.sqrt(total)


def oracle_edges(z, y, domain, distance=euclidean):
    """{(d, c, d', c'): trans((d, c), (d', c'))}, definition 1."""
    members = {}
    for row, c, d in zip(z.tolist(), y.tolist(), domain.tolist(), strict=True):
        members.setdefault((d, c), []).append(row)
    pairs = sorted(members)
    all_members = list(members.values())
    return {(*p, *q): mean(distance(row, members[q], all_members) for row in members[p]) for p in pairs for q in pairs}


def edges_of(graph):
    return {(*p, *q): graph.matrix[i, j] for i, p in enumerate(graph.pairs) for j, q in enumerate(graph.pairs)}


def oracle_statistics(edges, num_domains, num_classes, weight=lambda *edge: 1.0):
    """α, β, γ as nested expectations in the order in which definitions 3 and 4 write them, over what is present."""
    domains, classes = range(num_domains), range(num_classes)

    def edge(*key):
        return weight(*key) * edges[key] if key in edges else None

    alpha = mean(mean(mean(edge(d, c, e, c) for e in domains if e != d) for d in domains) for c in classes)
    beta = mean(mean(mean(edge(d, c, d, k) for k in classes if k != c) for c in classes) for d in domains)
    gamma = mean(
        mean(mean(mean(edge(d, c, e, k) for k in classes if k != c) for c in classes) for e in domains if e != d)
        for d in domains
    )
    return [math.nan if value is None else value for value in (alpha, beta, gamma)]


def same(found, expected, rel=1e-5):
    assert found == pytest.approx(expected, rel=rel, nan_ok=True)


@pytest.mark.parametrize("counts", [FULL, HOLES])
@pytest.mark.parametrize(("metric", "distance"), [("euclidean", euclidean), ("mahalanobis", mahalanobis)])
def test_edges_are_those_of_definition_1(counts, metric, distance):
    data = make(counts)
    graph = build(*data, counts, metric=metric)
    edges = oracle_edges(*data, distance)
    assert [tuple(pair) for pair in graph.pairs.tolist()] == sorted({key[:2] for key in edges})
    assert graph.counts.tolist() == counts
    assert edges_of(graph) == {key: pytest.approx(value, rel=1e-5, abs=1e-6) for key, value in edges.items()}


tables = (
    st.integers(1, 4)
    .flatmap(
        lambda width: st.lists(st.lists(st.integers(0, 4), min_size=width, max_size=width), min_size=1, max_size=4)
    )
    .filter(lambda table: any(map(any, table)))
)


@given(tables, st.integers(0, 1000), st.sampled_from([0.0, 0.5, 1.0]))
@example(FULL, 0, 1.0)
@example(HOLES, 0, 1.0)
@settings(max_examples=40, deadline=None)
def test_statistics_are_those_of_definition_3(counts, seed, nu):
    data = make(counts, seed, num_features=3)
    graph, edges = build(*data, counts), oracle_edges(*data)
    same(graph.statistics, oracle_statistics(edges, *np.shape(counts)))
    expected = oracle_statistics(
        edges, *np.shape(counts), weight=lambda d, c, e, k: (counts[e][k] / counts[d][c]) ** nu
    )
    same(graph.calibrated_statistics(nu=nu), expected)


@pytest.mark.parametrize("counts", [FULL, HOLES])
@pytest.mark.parametrize("nu", [0.0, 0.7, 1.0, 2.0])
def test_calibrated_statistics_are_those_of_definition_4(counts, nu):
    """With the counts of a training set that is not the set of the features."""
    data = make(counts)
    table = np.random.default_rng(1).integers(1, 100, np.shape(counts))
    expected = oracle_statistics(
        oracle_edges(*data),
        *np.shape(counts),
        weight=lambda d, c, e, k: (float(table[e, k]) / float(table[d, c])) ** nu,
    )
    graph = build(*data, counts)
    same(graph.calibrated_statistics(table, nu), expected)
    same(graph.calibrated_statistics(torch.from_numpy(table), nu), expected)


def test_calibration_without_a_count_is_refused():
    graph = build(*make(FULL), FULL)
    counts = np.array(FULL)
    counts[1, 2] = 0
    with pytest.raises(ValueError, match=r"pair \(domain 1, class 2\) has features but a count of 0"):
        graph.calibrated_statistics(counts)


def test_separation_is_beta_plus_gamma_minus_alpha():
    assert TransferStatistics(1.0, 4.0, 6.0).separation == 9.0


@pytest.mark.parametrize("metric", ["euclidean", "mahalanobis"])
@pytest.mark.parametrize("chunk", [1, 3, 7, 19, 20, 10_000])
def test_chunk_size_does_not_matter(metric, chunk):
    data = make(HOLES)
    found, whole = (build(*data, HOLES, metric=metric, chunk=size) for size in (chunk, len(data[0])))
    np.testing.assert_allclose(found.matrix, whole.matrix, rtol=2e-5, atol=1e-6)
    assert (found.pairs == whole.pairs).all() and (found.counts == whole.counts).all()


def test_numpy_torch_and_memory_maps_give_the_same(tmp_path):
    z, y, domain = make(HOLES)
    expected = build(z, y, domain, HOLES).matrix
    np.save(tmp_path / "z.npy", z)
    mapped = np.load(tmp_path / "z.npy", mmap_mode="r")
    assert not mapped.flags.writeable
    frozen = y.copy()
    frozen.flags.writeable = False
    variants = {
        "torch": (torch.from_numpy(z), torch.from_numpy(y), torch.from_numpy(domain)),
        "memory map": (mapped, frozen, domain),
        "with a gradient": (torch.from_numpy(z).requires_grad_(), y, domain),
        "small label types": (z, y.astype(np.uint8), torch.from_numpy(domain).to(torch.int32)),
        "float64": (z.astype(np.float64), y, domain),
    }
    for name, data in variants.items():
        assert (build(*data, HOLES, chunk=5).matrix == build(z, y, domain, HOLES, chunk=5).matrix).all(), name
        np.testing.assert_allclose(build(*data, HOLES).matrix, expected, rtol=1e-6)


@pytest.mark.parametrize("metric", ["euclidean", "mahalanobis"])
def test_torch_may_have_float64_as_its_default(metric):
    data = make(FULL)
    expected = build(*data, FULL, metric=metric).matrix
    torch.set_default_dtype(torch.float64)
    try:
        np.testing.assert_allclose(build(*data, FULL, metric=metric).matrix, expected, rtol=1e-5, atol=1e-5)
    finally:
        torch.set_default_dtype(torch.float32)


def test_the_features_are_left_alone():
    z, y, domain = make(FULL)
    before = z.copy()
    build(z, y, domain, FULL)
    assert (z == before).all()


@pytest.mark.parametrize(
    ("counts", "defined"),
    [
        ([[3, 2, 4]], (False, True, False)),
        ([[3], [2], [4]], (True, False, False)),
        ([[3]], (False, False, False)),
    ],
)
def test_one_domain_or_class_leaves_some_undefined(counts, defined):
    assert tuple(not math.isnan(value) for value in build(*make(counts), counts).statistics) == defined


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("chunk", [4, 1000])
def test_a_feature_that_is_no_number_is_named(value, chunk):
    z, y, domain = make(FULL)
    z[13, 2] = value
    with pytest.raises(ValueError, match="features of sample 13 are NaN or infinite"):
        build(z, y, domain, FULL, chunk=chunk)


def test_wrong_input_is_named():
    z, y, domain = make(FULL)
    y = y.copy()
    with pytest.raises(ValueError, match="no features"):
        build(z[:0], y[:0], domain[:0], FULL)
    with pytest.raises(ValueError, match=r"features have shape \(31,\), expected \(N, F\)"):
        build(z[:, 0], y, domain, FULL)
    with pytest.raises(ValueError, match=r"y has shape \(30,\), expected \(31,\)"):
        build(z, y[1:], domain, FULL)
    with pytest.raises(ValueError, match=r"domain has shape \(31, 1\), expected \(31,\)"):
        build(z, y, domain[:, None], FULL)
    with pytest.raises(ValueError, match=r"metric 'cosine'.* euclidean, mahalanobis"):
        build(z, y, domain, FULL, metric="cosine")
    for wrong in (3, -1):  # of domain 0 it would otherwise count as a class of domain 1, or of the last one
        y[5] = wrong
        with pytest.raises(ValueError, match=f"y of sample 5 is {wrong}, expected 0 to 2"):
            build(z, y, domain, FULL)


seeds = st.integers(0, 10_000)


@given(tables, seeds, st.data())
@settings(max_examples=25, deadline=None)
def test_renaming_domains_and_classes_changes_no_statistic(counts, seed, draw):
    z, y, domain = make(counts, seed)
    num_domains, num_classes = np.shape(counts)
    new_domain = np.array(draw.draw(st.permutations(range(num_domains))))
    new_class = np.array(draw.draw(st.permutations(range(num_classes))))
    found = build(z, new_class[y], new_domain[domain], counts)
    before = build(z, y, domain, counts)
    same(found.statistics, before.statistics, rel=1e-4)
    same(found.calibrated_statistics(), before.calibrated_statistics(), rel=1e-4)


@given(tables, seeds, st.integers(2, 5))
@settings(max_examples=25, deadline=None)
def test_duplicates_of_all_samples_change_nothing(counts, seed, times):
    z, y, domain = make(counts, seed)
    found = build(np.repeat(z, times, axis=0), np.repeat(y, times), np.repeat(domain, times), counts)
    before = build(z, y, domain, counts)
    np.testing.assert_allclose(found.matrix, before.matrix, rtol=1e-4, atol=1e-5)
    same(found.calibrated_statistics(), before.calibrated_statistics(), rel=1e-4)


@given(tables, seeds)
@settings(max_examples=25, deadline=None)
def test_shifted_and_rotated_features_have_the_same_distances(counts, seed):
    z, y, domain = make(counts, seed)
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    moved = (z.astype(np.float64) @ turn + 50 * rng.normal(size=4)).astype(np.float32)
    before = build(z, y, domain, counts).matrix
    np.testing.assert_allclose(build(moved, y, domain, counts).matrix, before, rtol=1e-3, atol=1e-4)


@given(tables, seeds, st.floats(1e-3, 1e3))
@settings(max_examples=25, deadline=None)
def test_scaling_the_features_scales_the_distances(counts, seed, factor):
    z, y, domain = make(counts, seed)
    before = build(z, y, domain, counts).matrix
    found = build(factor * z.astype(np.float64), y, domain, counts).matrix
    np.testing.assert_allclose(found / factor, before, rtol=1e-4, atol=1e-5)


def test_large_offsets_do_not_swallow_the_distances():
    """Features far from the origin: the expanded square alone would leave no correct digit."""
    z, y, domain = make(FULL)
    far = z.astype(np.float64) + 4096  # float32 keeps 1/2048 here
    expected = oracle_edges(far.astype(np.float32).astype(np.float64), y, domain)
    graph = build(far, y, domain, FULL)
    assert edges_of(graph) == {key: pytest.approx(value, rel=1e-3, abs=1e-3) for key, value in expected.items()}


def test_to_frame_has_one_row_per_edge_with_names():
    graph = build(*make(HOLES), HOLES)
    domains, classes = ["p", "q", "r", "s"], ["x", "y", "z"]
    frame = graph.to_frame(domains, classes)
    assert list(frame.columns) == ["from_domain", "from_class", "to_domain", "to_class", "transferability"]
    assert len(frame) == graph.matrix.size
    for i, (d, c) in enumerate(graph.pairs):
        for j, (e, k) in enumerate(graph.pairs):
            row = frame.iloc[i * len(graph.pairs) + j]
            assert tuple(row[:4]) == (domains[d], classes[c], domains[e], classes[k])
            assert row.iloc[4] == graph.matrix[i, j]
    assert graph.to_frame()["from_domain"].iloc[0] == "0"


def test_nodes_have_their_names_counts_and_places():
    graph = build(*make(HOLES), HOLES)
    nodes = graph.nodes(["p", "q", "r", "s"], ["x", "y", "z"])
    expected = [("p", "x", 3), ("p", "z", 5), ("q", "x", 2), ("q", "y", 4), ("r", "z", 6)]
    expected += [("s", "x", 1), ("s", "y", 2), ("s", "z", 3)]
    assert list(nodes[["domain", "class", "count"]].itertuples(index=False, name=None)) == expected
    assert (nodes[["x", "y"]].to_numpy() == graph.layout()).all()


def layer(spec, mark):
    """The encodings and the rows of the layer of a chart that draws such marks."""
    (found,) = (part for part in spec["layer"] if part["mark"]["type"] == mark)
    return found["encoding"], spec["datasets"][found["data"]["name"]]


def test_chart_shows_every_pair_by_class_domain_and_count():
    graph = build(*make(HOLES), HOLES)
    chart = graph_chart(graph.nodes(["p", "q", "r", "s"], ["x", "y", "z"]), "BoDA")
    spec = chart.to_dict()  # checks the specification against the schema of Vega-Lite
    assert spec["title"] == "BoDA"
    encoding, rows = layer(spec, "point")
    assert "find_pair" in encoding.pop("opacity")["condition"]["test"]
    fields = {channel: value["field"] for channel, value in encoding.items() if isinstance(value, dict)}
    assert fields == {"x": "x", "y": "y", "color": "class", "shape": "domain", "size": "count"}
    nodes = graph.nodes(["p", "q", "r", "s"], ["x", "y", "z"])
    pd.testing.assert_frame_equal(pd.DataFrame(rows), nodes, check_dtype=False)


def test_chart_has_one_scale_for_both_axes_that_holds_all_points():
    """What the eye measures must be the distance."""
    graph = build(*make(HOLES), HOLES)
    spec = graph_chart(graph.nodes(), size=300).to_dict()
    scales = [part["encoding"][axis]["scale"]["domain"] for part in spec["layer"] for axis in "xy"]
    low, high = scales[0]
    assert len(scales) >= 4 and scales == [[low, high]] * len(scales) and spec["width"] == spec["height"]
    assert np.abs(graph.layout()).max() < high == -low
    wide = graph_chart(graph.nodes()).to_dict()  # of any width: the longer side shows more in proportion
    ends = [[part["encoding"][axis]["scale"]["domainMax"]["expr"] for axis in "xy"] for part in wide["layer"]]
    for across, down in ends:
        for width, height in ((900, 300), (300, 600)):
            sides = {"width": width, "height": height, "max": max}
            x, y = (eval(end, sides) for end in (across, down))
            assert x / width == pytest.approx(y / height) and min(x, y) == pytest.approx(high)


def test_chart_joins_every_pair_with_the_middle_of_its_class():
    spec = graph_chart(build(*make(HOLES), HOLES).nodes()).to_dict()
    (rule,) = (part for part in spec["layer"] if part["mark"]["type"] == "rule")
    mean, chosen = rule["transform"]
    assert mean["groupby"] == ["class"]
    assert {(one["op"], one["field"], one["as"]) for one in mean["joinaggregate"]} == {
        ("mean", "x", "middle_x"),
        ("mean", "y", "middle_y"),
    }
    ends = {axis: rule["encoding"][axis]["field"] for axis in ("x", "y", "x2", "y2")}
    assert ends == {"x": "x", "y": "y", "x2": "middle_x", "y2": "middle_y"}
    assert chosen["filter"]["empty"]  # all classes, until one is picked


def test_chart_of_very_many_pairs_joins_those_of_a_picked_class_only():
    counts = np.ones((3, 70), int)
    spec = graph_chart(build(*make(counts), counts).nodes()).to_dict()
    (rule,) = (part for part in spec["layer"] if part["mark"]["type"] == "rule")
    assert not rule["transform"][-1]["filter"]["empty"]


@pytest.mark.parametrize("counts", [[[1]], [[2, 1]], [[1] * 12, [1] * 12]])
def test_chart_of_few_and_of_many_pairs(counts):
    _, rows = layer(graph_chart(build(*make(counts), counts).nodes()).to_dict(), "point")
    assert len(rows) == np.size(counts)


def test_chart_of_pairs_that_all_coincide():
    z, y, domain = make(FULL)
    _, rows = layer(graph_chart(build(0 * z, y, domain, FULL).nodes()).to_dict(), "point")
    assert {(row["x"], row["y"]) for row in rows} == {(0.0, 0.0)}
