"""Samples that are the same or broken: against comparing every file with every other, and each file read once."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from crosstail.data import BrokenImage, ImageFiles, examine
from crosstail.data.examination import CONTENT, HEADER, PIXELS, find_broken, look_alikes
from crosstail.data.images import files as module


@pytest.fixture
def reads(monkeypatch, tmp_path):
    """The names of the photos whose bytes are read, in an empty cache."""
    monkeypatch.setenv("CROSSTAIL_CACHE", str(tmp_path / "cache"))
    found, opened = [], Path.open

    def noted(self, *args, **kwargs):
        if self.suffix == ".jpg":
            found.append(self.name)
        return opened(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", noted)
    return found


@pytest.fixture
def photos(tmp_path):
    """Eight small photos; the third is cut short."""
    rng = np.random.default_rng(0)
    for i in range(8):
        Image.fromarray(rng.integers(0, 255, (40, 60, 3), dtype=np.uint8)).save(tmp_path / f"{i}.jpg")
    (tmp_path / "2.jpg").write_bytes((tmp_path / "2.jpg").read_bytes()[:700])
    return ImageFiles(tmp_path, [f"{i}.jpg" for i in range(8)])


def test_files_are_grouped_by_content_as_by_comparing_all_with_all(tmp_path):
    contents = [b"one", b"two", b"one", b"", b"three", b"two", b"", b"one", b"eno"]
    for i, content in enumerate(contents):
        (tmp_path / str(i)).write_bytes(content)
    found = examine(ImageFiles(tmp_path, list(map(str, range(len(contents)))))).same()
    together = {pair for group in found for pair in combinations(group, 2)}
    assert together == {(a, b) for a, b in combinations(range(9), 2) if contents[a] == contents[b] != b""}


def test_files_that_cannot_be_read_are_equal_to_nothing(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "other").mkdir()
    found = examine(ImageFiles(tmp_path, ["gone", "lost", "folder", "other"]))
    assert found.same() == []
    assert list(found.problems.values()) == ["there is no such file"] * 2 + ["is not a file"] * 2
    with pytest.raises(BrokenImage, match="gone: there is no such file"):
        _ = found.hashes
    assert examine(ImageFiles(tmp_path, [])).same() == []


def test_one_read_answers_every_question(photos, reads, monkeypatch):
    monkeypatch.setattr(module, "_KEPT", 0)
    photos = ImageFiles(photos.root, photos.paths())
    found = examine(photos, PIXELS)
    assert list(found.problems) == [2] and "truncated" in found.problems[2]
    assert found.looks[0][:3] == ((60, 40), "RGB", "JPEG") and found.looks[2].thumbnail is None
    assert found.thumbnails.shape == (8, 64, 64) and not found.thumbnails[2].any()
    part = photos.take([3, 2, 5])
    assert examine(part).hashes.tolist() == found.hashes[[3, 2, 5]].tolist()
    assert list(examine(part, HEADER).problems) == [1]
    look_alikes(photos)
    assert find_broken(ImageFiles(photos.root, photos.paths())) == [("2.jpg", found.problems[2])]  # loaded again
    assert sorted(reads) == sorted(photos.paths())


def test_a_file_that_changes_is_read_again(photos, reads):
    before = examine(photos, PIXELS)
    (photos.root / "2.jpg").write_bytes((photos.root / "0.jpg").read_bytes())
    reads.clear()
    after = examine(photos, PIXELS)
    assert reads == ["2.jpg"] and not after.problems and after.same() == [[0, 2]]
    assert before.problems


def test_another_process_finds_the_hashes_in_the_cache(photos, reads):
    hashes = examine(photos).hashes
    reads.clear()
    again = ImageFiles(photos.root, photos.paths())
    assert examine(again, CONTENT).hashes.tolist() == hashes.tolist()
    assert not reads


def test_bytes_stay_in_memory_as_long_as_they_fit(photos, reads, monkeypatch):
    sizes = [(photos.root / path).stat().st_size for path in photos.paths()]
    monkeypatch.setattr(module, "_KEPT", sum(sizes[:4]) + 1)
    photos.table = module.FileTable(len(photos))
    for _ in range(2):
        for i in (0, 1, 2, 3, 4):
            assert len(photos.content(i)) == sizes[i]
    assert reads == ["0.jpg", "1.jpg", "2.jpg", "3.jpg", "4.jpg", "4.jpg"]
