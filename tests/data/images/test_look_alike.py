"""Copies of photos: how many are found, and how many other photos are taken for copies."""

import numpy as np
import pytest
from PIL import Image, ImageDraw
from studies.copies import ALTERED, RESIZED, jpeg, mixed, recall, seen, sets

from crosstail.data.images import look_alike
from crosstail.data.images.look_alike import alike


def scene(seed):
    """A drawn photo: shapes of all sizes on an uneven ground, and some grain."""
    rng = np.random.default_rng(seed)
    size = (int(rng.integers(260, 420)), int(rng.integers(200, 320)))
    picture = Image.fromarray(rng.integers(60, 200, (3, 4, 3), np.uint8)).resize(size, Image.Resampling.BICUBIC)
    for _ in range(90):
        shape = Image.new("L", size)
        x, y, w, h = rng.random(4) * [*size, size[0] / 4, size[1] / 4]
        points = [(x + w * a, y + h * b) for a, b in rng.random((5, 2))]
        ImageDraw.Draw(shape).polygon(points, fill=int(rng.integers(100, 255)))
        picture.paste(tuple(rng.integers(0, 256, 3).tolist()), mask=shape)
    grain = rng.normal(0, 3, (size[1], size[0], 3))
    return Image.fromarray((np.asarray(picture) + grain).clip(0, 255).astype(np.uint8))


@pytest.fixture(scope="module")
def scenes():
    return [jpeg(scene(seed), 90) for seed in range(30)]


def found(contents):
    """The share of copies of each kind that are found; the two cuts count together, and so do the three marks."""
    shares = {kind: recall(contents, kind) for kind in RESIZED | ALTERED}
    for words in ("cut", "text logo"):
        kinds = [kind for kind in ALTERED if any(word in kind for word in words.split())]
        shares |= dict.fromkeys(kinds, np.mean([shares[kind] for kind in kinds]))
    return shares


def missed(contents):
    """The kinds of copies of which too few are found."""
    least = dict.fromkeys(RESIZED, 0.95) | dict.fromkeys(ALTERED, 0.8)
    return {kind: share for kind, share in found(contents).items() if share < least[kind]}


def test_copies_of_drawn_scenes_are_found_and_nothing_else(scenes):
    assert not missed(scenes)
    assert len(set(alike(seen(scenes)))) == len(scenes)


@pytest.mark.parametrize("name", ["ham10000", "Office-Caltech10"])
def test_copies_of_real_photos_are_found_and_one_in_a_thousand_is_taken_for_another(shared_data, name):
    paths, shown = next((paths, shown) for one, paths, shown in sets(shared_data) if one == name)
    rows = np.random.default_rng(1).permutation(len(paths))[:1000]
    assert not missed([paths[row].read_bytes() for row in rows[:40]])
    group = alike(seen([paths[row].read_bytes() for row in rows]))
    kind = np.array([paths[row].parent.name for row in rows]) if name != "ham10000" else shown[rows]
    assert len(mixed(group, kind)) <= 1  # a product may have several photos here, but not products of two classes


def test_blocks_uniform_images_and_no_images(scenes, monkeypatch):
    x = seen(scenes[:12])
    x[9], x[10], x[11] = x[2], 7, 7
    together = alike(x).tolist()
    monkeypatch.setattr(look_alike, "_BLOCK", 4)
    assert alike(x).tolist() == together and len(set(together)) == 11 and together[9] == together[2]
    assert len(alike(x[:0])) == 0


def test_what_is_like_two_others_joins_them(scenes):
    """A middle is not like the whole, but one of several parts, each of which is a part of the one before, is."""
    whole = Image.fromarray(seen(scenes[:1])[0]).resize((400, 400), Image.Resampling.BICUBIC)
    parts = [whole.crop((cut, cut, 400 - cut, 400 - cut)) for cut in range(0, 61, 12)]
    x = np.array([np.asarray(part.resize((64, 64), Image.Resampling.BILINEAR)) for part in parts])
    assert len(set(alike(x[[0, 5]]))) == 2 and len(set(alike(x))) == 1


def test_smooth_images_are_compared_as_wholes():
    """Without detail, only images that correlate are alike."""
    y, x = np.mgrid[:64, :64]
    slopes = [100 + x + y / 2, 100 + (x + y / 2) * 0.8, 100 + x / 2 + y, 100 + x - y / 2]
    assert alike(np.array(slopes).astype(np.uint8)).tolist() == [0, 0, 1, 2]
