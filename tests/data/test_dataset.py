"""The checksum changes with everything that a run is trained and tested on."""

from dataclasses import replace

import numpy as np
import pytest

from crosstail.data import DomainDataset, load_folder


@pytest.fixture
def vectors():
    x, y, domain = np.arange(12, dtype=np.float32).reshape(6, 2), np.array([0, 1] * 3), np.array([0, 0, 0, 1, 1, 1])
    return DomainDataset("tiny", x, y, domain, np.full(6, "train", "<U5"), ("a", "b"), ("p", "q"))


CHANGES = {
    "a row removed": lambda d: d.keep(np.arange(5)),
    "rows in another order": lambda d: d.keep(np.arange(6)[::-1]),
    "another value": lambda d: d.with_x(np.where(d.x == 3, 0, d.x)),
    "another label": lambda d: replace(d, y=1 - d.y),
    "another domain": lambda d: replace(d, domain=1 - d.domain),
    "another split": lambda d: replace(d, split=np.array(["train", "test"] * 3)),
    "a class renamed": lambda d: replace(d, classes=("a", "c")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_checksum_of_vectors(vectors, change):
    assert CHANGES[change](vectors).checksum != vectors.checksum
    assert replace(vectors, name="other", notes=("a note",)).checksum == vectors.checksum


def test_checksum_of_image_files(photos):
    root = photos(n=8)
    before = load_folder(root)
    assert load_folder(root).checksum == before.checksum != load_folder(root, seed=1).checksum
    found = {before.checksum}
    (root / "photo/cat/0.jpg").rename(root / "photo/cat/new.jpg")
    found.add(load_folder(root).checksum)
    (root / "photo/cat/1.jpg").rename(root / "photo/dog/1b.jpg")
    found.add(load_folder(root).checksum)
    (root / "photo/cat/2.jpg").unlink()
    found.add(load_folder(root).checksum)
    with (root / "photo/cat/3.jpg").open("ab") as file:
        file.write(b"more")
    found.add(load_folder(root).checksum)
    assert len(found) == 5


def test_the_checksum_notices_that_files_of_the_same_size_have_changed_places(photos):
    root = photos(n=8)
    cat, dog = root / "photo/cat/0.jpg", root / "photo/dog/0.jpg"
    size = max(cat.stat().st_size, dog.stat().st_size)
    for file in (cat, dog):
        file.write_bytes(file.read_bytes().ljust(size, b"\0"))
    before = load_folder(root).checksum
    contents = cat.read_bytes(), dog.read_bytes()
    dog.write_bytes(contents[0])
    cat.write_bytes(contents[1])
    assert load_folder(root).checksum != before
