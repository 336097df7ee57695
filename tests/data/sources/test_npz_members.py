"""Large arrays stay in their .npz file, and are as safe there as in memory."""

import numpy as np
import pytest

from crosstail import data
from crosstail.data.sources import _npz_members as mapped


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(mapped, "LARGE", 0)


def saved(path, x, save=np.savez, **more):
    n = len(x)
    save(path, x=x, y=np.arange(n) % 2, domain=np.arange(n) // 2 % 2, split=np.full(n, "train"), **more)
    return path


X = np.random.default_rng(0).normal(size=(8, 5)).astype(np.float32)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_mapped_array_is_the_same(everything_is_large, tmp_path, order, dtype):
    x = np.asarray(X, dtype, order=order)
    found = data.load(saved(tmp_path / "a.npz", x)).x
    assert isinstance(found, np.memmap) and not found.flags.writeable
    np.testing.assert_array_equal(found, x)


def test_images_and_views_are_mapped_too(everything_is_large, tmp_path):
    for x in (np.zeros((8, 4, 4, 3), np.uint8), np.zeros((8, 2, 5), np.float32)):
        found = data.load(saved(tmp_path / "a.npz", x)).x
        assert isinstance(found, np.memmap) and found.shape == x.shape


def test_a_small_or_compressed_array_is_read(tmp_path, monkeypatch):
    assert not isinstance(data.load(saved(tmp_path / "a.npz", X)).x, np.memmap)
    monkeypatch.setattr(mapped, "LARGE", 0)
    found = data.load(saved(tmp_path / "b.npz", X, np.savez_compressed)).x
    assert not isinstance(found, np.memmap)
    np.testing.assert_array_equal(found, X)


def test_the_checksum_is_that_of_the_array_in_memory(tmp_path, monkeypatch):
    path = saved(tmp_path / "a.npz", X)
    before = data.load(path).checksum
    monkeypatch.setattr(mapped, "LARGE", 0)
    assert data.load(path).checksum == before


def test_damage_and_numbers_that_are_none_are_named(everything_is_large, tmp_path):
    path = saved(tmp_path / "a.npz", X)
    content = bytearray(path.read_bytes())
    content[content.index(X.tobytes()) + 33] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a.npz: cannot be read as an .npz file of plain arrays \(Bad CRC-32"):
        data.load(path)
    odd = X.copy()
    odd[5, 1] = np.inf
    with pytest.raises(ValueError, match=r"row 5 of x has a value that is NaN or infinite \(1 such rows\)"):
        data.load(saved(tmp_path / "b.npz", odd))
    with pytest.raises(ValueError, match=r"row 2 of x has a value that is NaN or infinite"):
        data.load(saved(tmp_path / "c.npz", np.where(np.arange(8)[:, None] == 2, 1e300, X.astype(np.float64))))
    with pytest.raises(ValueError, match=r"cannot be read as an .npz file of plain arrays"):
        data.load(saved(tmp_path / "d.npz", np.array([{}] * 8)))


def test_what_is_saved_is_loaded_and_a_failure_leaves_nothing(tmp_path):
    dataset = data.load(saved(tmp_path / "a.npz", X, classes=["x", "y"], domains=["ä", "b"]))
    data.save_arrays(dataset, tmp_path / "b.npz")
    again = data.load(tmp_path / "b.npz")
    assert again.checksum == dataset.checksum and (again.classes, again.domains) == (("x", "y"), ("ä", "b"))
    with pytest.raises(OSError):
        data.save_arrays(dataset, tmp_path / "no" / "b.npz")
    assert {path.name for path in tmp_path.iterdir()} == {"a.npz", "b.npz"}
