import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def picture():
    """Smooth colourful pixels, which survive JPEG."""

    def make(height=40, width=50, seed=0):
        rng = np.random.default_rng(seed)
        small = Image.fromarray(rng.integers(0, 256, (4, 5, 3), dtype=np.uint8))
        return small.resize((width, height), Image.Resampling.BICUBIC)

    return make


@pytest.fixture
def photos(tmp_path, picture):
    """A folder of small photos: 2 domains × 3 classes, n per pair."""

    def make(n=4, domains=("photo", "sketch"), classes=("cat", "dog", "emu"), root="photos", size=(40, 50)):
        for d, domain in enumerate(domains):
            for c, name in enumerate(classes):
                folder = tmp_path / root / domain / name
                folder.mkdir(parents=True)
                for i in range(n):
                    picture(*size, seed=10_000 * d + 100 * c + i).save(folder / f"{i}.jpg", quality=90)
        return tmp_path / root

    return make
