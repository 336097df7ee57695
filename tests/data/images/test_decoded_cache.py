"""The cache of decoded images: the same pixels, without decoding again, within its size, and whole after a kill."""

import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.opened import opened

from crosstail.data.images.decoded_cache import DecodedCache
from crosstail.data.images.files import ImageFiles


@pytest.fixture
def files(photos):
    root = photos(n=3, size=(90, 70))
    return ImageFiles(root, sorted(p.relative_to(root).as_posix() for p in root.rglob("*.jpg")), resolution=32)


def images(read):
    return [file for file in read if file.suffix == ".jpg"]


def test_the_same_pixels_without_decoding_again(files, tmp_path):
    cached = files.cached(folder=tmp_path / "cache")
    with opened() as read:
        first = cached[:]
    assert len(images(read)) == len(files) and (first == files[:]).all()
    with opened() as read:
        assert (cached[:] == first).all()
        assert (cached.take([4, 2])[:] == first[[4, 2]]).all()
        assert (pickle.loads(pickle.dumps(cached))[:] == first).all()
        assert (files.cached(folder=tmp_path / "cache")[:] == first).all()  # another run
    assert images(read) == []


def test_parts_of_a_data_set_share_one_cache(files, tmp_path):
    files.take([1, 3]).cached(folder=tmp_path)[:]
    with opened() as read:
        assert files.cached(folder=tmp_path)[[3]].shape == (1, 32, 32, 3)
    assert images(read) == []


def test_a_file_that_changed_is_decoded_again(files, tmp_path, picture):
    cached = files.cached(folder=tmp_path)
    before = cached[:]
    path = files.root / files.paths()[5]
    picture(90, 70, seed=99).save(path)
    os.utime(path, (5, 5))
    after = cached[:]
    assert (after == files[:]).all() and (after[5] != before[5]).any()
    assert (np.delete(after, 5, 0) == np.delete(before, 5, 0)).all()


def test_another_resolution_has_its_own(files, tmp_path):
    cached = files.cached(folder=tmp_path)
    cached[:]
    small = cached.at_resolution(16)
    assert (small[:] == files.at_resolution(16)[:]).all()
    assert len(list(tmp_path.iterdir())) == 3  # two caches beside the photos


def test_beyond_its_size_images_are_decoded_each_time(files, tmp_path):
    expected, room = files[:], 4 * 90 * 70 * 3
    cached = files.cached(folder=tmp_path / "cache", max_bytes=room)
    for _ in range(2):
        assert (cached[:] == expected).all()
    (pixels,) = (tmp_path / "cache").glob("*/pixels")
    assert 0 < pixels.stat().st_size <= room


@pytest.mark.parametrize("what", ["pixels cut short", "pixels lost", "table lost", "table scrambled"])
def test_what_is_not_whole_is_decoded_again(files, tmp_path, what):
    expected = files[:]
    files.cached(folder=tmp_path / "cache")[:]
    (folder,) = (tmp_path / "cache").iterdir()
    pixels, table = folder / "pixels", folder / "table"
    if what == "pixels cut short":
        os.truncate(pixels, pixels.stat().st_size // 2 + 3)
    elif what == "pixels lost":  # a power cut may leave zeros in the place of what was not on the disk yet
        content = bytearray(pixels.read_bytes())
        content[1000:30_000] = bytes(29_000)
        pixels.write_bytes(content)
    elif what == "table lost":
        table.write_bytes(b"")
    else:
        table.write_bytes(np.random.default_rng(0).bytes(table.stat().st_size))
    for _ in range(2):
        assert (files.cached(folder=tmp_path / "cache")[:] == expected).all()


def test_a_kill_in_the_middle(files, tmp_path):
    expected = files[:]
    script = (
        "import sys, pickle\n"
        "from crosstail.data import read_image\n"
        "files = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    for i in range(len(files)):\n"
        "        files._cache.write(i, *files._state(i), read_image(files.root / files.paths(i)[0], at_least=37))\n"
    )
    cached = files.cached(folder=tmp_path / "cache")
    (tmp_path / "files").write_bytes(pickle.dumps(cached))
    process = subprocess.Popen([sys.executable, "-c", script, tmp_path / "files"], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.1)
        assert (cached[:] == expected).all()  # while another process writes
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert (files.cached(folder=tmp_path / "cache")[:] == expected).all()


def test_a_place_that_cannot_be_written(files, tmp_path):
    (tmp_path / "cache").write_text("a file")
    assert (files.cached(folder=tmp_path / "cache")[:] == files[:]).all()


def test_closed(tmp_path):
    cache = DecodedCache(tmp_path, 2)
    cache.write(0, 1, 1, np.ones((3, 3, 3), np.uint8))
    assert cache.read(0, 1, 1).tolist() == np.ones((3, 3, 3)).tolist()
    assert cache.read(0, 1, 2) is None and cache.read(1, 1, 1) is None
    cache.close()
    cache.write(1, 1, 1, np.ones((3, 3, 3), np.uint8))
    assert cache.read(0, 1, 1) is None
