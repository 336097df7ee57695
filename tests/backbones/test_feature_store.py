"""The feature store: several writers, kills at any moment, and no wrong row is ever returned."""

import hashlib

import numpy as np
import pytest

from crosstail.backbones._feature_store import FeatureStore


def key(i):
    return hashlib.sha256(bytes([i])).digest()


def row(i):
    return np.arange(3, dtype=np.float32) + i


def write(folder, numbers):
    store = FeatureStore(folder, 3)
    for i in numbers:
        store.add([key(i)], row(i)[None])
    store.close()


def test_what_was_added_is_found_the_next_time(tmp_path):
    first = FeatureStore(tmp_path / "s", 3)
    assert first.get(key(0)) is None
    first.add([key(0), key(1)], np.stack([row(0), row(1)]))
    first.add([key(2)], row(2)[None])
    first.close()
    second = FeatureStore(tmp_path / "s", 3)
    for i in range(3):
        np.testing.assert_array_equal(second.get(key(i)), row(i))
    assert second.get(key(3)) is None


def test_two_at_once_do_not_disturb_each_other(tmp_path):
    one, other = FeatureStore(tmp_path, 3), FeatureStore(tmp_path, 3)
    for i in range(10):
        (one, other)[i % 2].add([key(i)], row(i)[None])
    one.close()
    other.close()
    found = FeatureStore(tmp_path, 3)
    for i in range(10):
        np.testing.assert_array_equal(found.get(key(i)), row(i))


@pytest.mark.parametrize("cut", ["keys", "rows"])
def test_whatever_a_kill_leaves_is_right_or_not_found(tmp_path, cut):
    """A file may end at any byte; what was complete before is found, and one can go on."""
    write(tmp_path / "whole", range(3))
    for kept in range(next((tmp_path / "whole").glob(f"*.{cut}")).stat().st_size):
        folder = tmp_path / str(kept)
        folder.mkdir()
        for file in (tmp_path / "whole").iterdir():
            content = file.read_bytes()
            (folder / file.name).write_bytes(content[:kept] if file.suffix == f".{cut}" else content)
        found = [FeatureStore(folder, 3).get(key(i)) for i in range(3)]
        complete = kept // {"keys": 36, "rows": 12}[cut]
        assert [f is not None for f in found] == [i < complete for i in range(3)]
        for i in range(complete):
            np.testing.assert_array_equal(found[i], row(i))
        write(folder, [2])
        np.testing.assert_array_equal(FeatureStore(folder, 3).get(key(2)), row(2))


def test_every_flipped_bit_is_noticed(tmp_path):
    write(tmp_path, range(2))
    (file,) = tmp_path.glob("*.rows")
    whole = file.read_bytes()
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        file.write_bytes(flipped)
        store = FeatureStore(tmp_path, 3)
        damaged, other = (0, 1) if bit < 8 * 12 else (1, 0)
        assert store.get(key(damaged)) is None
        np.testing.assert_array_equal(store.get(key(other)), row(other))


def test_rows_in_another_order_are_noticed(tmp_path):
    write(tmp_path, range(2))
    (file,) = tmp_path.glob("*.rows")
    content = file.read_bytes()
    file.write_bytes(content[12:] + content[:12])
    store = FeatureStore(tmp_path, 3)
    assert store.get(key(0)) is None and store.get(key(1)) is None
