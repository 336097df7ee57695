"""Equal files, against a comparison of every file with every other."""

from itertools import combinations

from crosstail.data.images.same_content import equal_files


def test_files_are_grouped_by_content_as_by_comparing_all_with_all(tmp_path):
    contents = [b"one", b"two", b"one", b"", b"three", b"two", b"", b"one", b"eno"]
    paths = {}
    for i, content in enumerate(contents):
        paths["file", i] = tmp_path / str(i)
        paths["file", i].write_bytes(content)
    reports = []
    found = equal_files(paths, lambda what, done, total: reports.append((done, total)))
    together = {pair for group in found for pair in combinations(sorted(group), 2)}
    assert together == {
        (a, b) for a, b in combinations(sorted(paths), 2) if paths[a].read_bytes() == paths[b].read_bytes()
    }
    assert len(found) == 3 and reports == [(8, 8)]  # b"three" has a size of its own


def test_files_that_cannot_be_read_are_equal_to_nothing(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "other").mkdir()
    paths = {name: tmp_path / name for name in ("gone", "lost", "folder", "other")}
    assert equal_files(paths) == [] and equal_files({}) == []
