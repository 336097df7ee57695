"""Augmentation: torchvision's arithmetic, the paper's distributions, a function of the seed and the step."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as oracle

from crosstail.data.images import colour
from crosstail.data.images.augment import Augment, crop_box

OPS = {
    "brightness": (colour.brightness, oracle.adjust_brightness, (0.0, 3.0)),
    "contrast": (colour.contrast, oracle.adjust_contrast, (0.0, 3.0)),
    "saturation": (colour.saturation, oracle.adjust_saturation, (0.0, 3.0)),
    "hue": (colour.hue, oracle.adjust_hue, (-0.5, 0.5)),
}


def random_images(count, size, seed=0):
    """Random pixels, with some that are grey, black, white or of two equal channels."""
    rng = np.random.default_rng(seed)
    x = rng.random((count, 3, size, size), dtype=np.float32)
    x[:, :, 0] = x[:, :1, 0]
    x[:, :, 1] = 0
    x[:, :, 2] = 1
    x[:, 1, 3] = x[:, 0, 3]
    x[:, :, 4] = np.round(4 * x[:, :, 4]) / 4
    return x


@pytest.mark.parametrize("name", OPS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_colours_are_those_of_torchvision(name, data):
    ours, theirs, limits = OPS[name]
    factors = data.draw(st.lists(st.floats(*limits, width=32), min_size=3, max_size=3))
    x = random_images(3, 12, seed=data.draw(st.integers(0, 9)))
    expected = [theirs(torch.from_numpy(image.copy()), factor) for image, factor in zip(x, factors, strict=True)]
    planar = x.reshape(3, 3, -1)
    ours(planar, np.float32(factors).reshape(3, 1, 1))
    assert abs(planar.reshape(x.shape) - torch.stack(expected).numpy()).max() < 1e-5


def test_hue_at_every_sixth_and_between():
    for shift in np.linspace(-0.5, 0.5, 61):
        x = random_images(1, 16, seed=3)
        expected = oracle.adjust_hue(torch.from_numpy(x[0].copy()), float(shift)).numpy()
        planar = x.reshape(1, 3, -1)
        colour.hue(planar, np.full((1, 1, 1), shift, np.float32))
        assert abs(planar.reshape(3, 16, 16) - expected).max() < 1e-5


def test_grey_is_that_of_torchvision():
    x = random_images(2, 9)
    expected = oracle.rgb_to_grayscale(torch.from_numpy(x.copy()), num_output_channels=3).numpy()
    planar = x.reshape(2, 3, -1)
    colour.grey(planar)
    assert abs(planar.reshape(x.shape) - expected).max() < 1e-6


@pytest.mark.parametrize("size", [9, 224])
def test_the_whole_of_a_batch_against_torchvision_image_by_image(size):
    """Several images at a time when they are small, one at a time when they are large: the same figures."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (11 if size == 9 else 3, size, size, 3), dtype=np.uint8)
    augment = Augment(resolution=size, grey=0.4, seed=1)
    draws = augment.draw(5, len(images))
    out = np.empty(images.shape, np.float32)
    augment.recolour(images, draws, out)
    assert draws.grey.any() and not draws.grey.all()
    for i, image in enumerate(images):
        x = torch.from_numpy(image).permute(2, 0, 1) / 255
        for k in draws.order:
            x = list(OPS.values())[k][1](x, float(draws.factors[k, i, 0, 0]))
        if draws.grey[i]:
            x = oracle.rgb_to_grayscale(x, num_output_channels=3)
        assert abs(out[i] - x.permute(1, 2, 0).numpy()).max() < 1e-3


def test_crop_and_flip_are_those_of_torchvision(picture):
    image = np.array(picture(90, 120))
    augment = Augment(resolution=32)
    draws = augment.draw(0, 6)
    assert draws.flip.any() and not draws.flip.all()
    for i in range(6):
        box = crop_box(90, 120, draws.area[i], draws.ratio[i], draws.place[i], augment.ratio)
        expected = oracle.resized_crop(torch.from_numpy(image).permute(2, 0, 1), *box, [32, 32], antialias=True)
        expected = expected.flip(2) if draws.flip[i] else expected
        assert abs(augment.crop(image, draws, i).astype(int) - expected.permute(1, 2, 0).numpy()).max() <= 1


@given(st.integers(1, 400), st.integers(1, 400), st.integers(0, 9))
@settings(max_examples=200, deadline=None)
def test_a_crop_lies_in_the_image(height, width, seed):
    augment = Augment(seed=seed)
    draws = augment.draw(0, 1)
    top, left, h, w = crop_box(height, width, draws.area[0], draws.ratio[0], draws.place[0], augment.ratio)
    assert h >= 1 and w >= 1 and 0 <= top <= height - h and 0 <= left <= width - w


def test_crops_are_distributed_as_in_torchvision():
    height, width, n = 200, 260, 4000
    augment = Augment()
    draws = augment.draw(0, n)
    ours = np.array(
        [crop_box(height, width, draws.area[i], draws.ratio[i], draws.place[i], augment.ratio) for i in range(n)]
    )
    torch.manual_seed(0)
    crop = v2.RandomResizedCrop(224, scale=(0.7, 1.0))
    params = [crop.make_params([torch.zeros(3, height, width)]) for _ in range(n)]
    theirs = np.array([[p["top"], p["left"], p["height"], p["width"]] for p in params])
    assert abs(ours.mean(axis=0) - theirs.mean(axis=0)).max() < 2
    assert abs(ours.std(axis=0) - theirs.std(axis=0)).max() < 1.5


def test_numbers_are_distributed_as_in_the_paper():
    draws = Augment().draw(0, 20_000)
    assert abs(draws.flip.mean() - 0.5) < 0.02 and abs(draws.grey.mean() - 0.1) < 0.01
    factors = draws.factors[..., 0, 0]
    assert np.allclose(factors.min(axis=1), [0.7, 0.7, 0.7, -0.3], atol=1e-3)
    assert np.allclose(factors.max(axis=1), [1.3, 1.3, 1.3, 0.3], atol=1e-3)
    orders = {tuple(Augment().draw(step, 1).order.tolist()) for step in range(400)}
    assert len(orders) == 24


def test_a_function_of_the_seed_and_the_step(picture):
    images = [np.asarray(picture(40 + i, 60, seed=i)) for i in range(5)]
    first = Augment(resolution=16, seed=3)(images, step=9)
    assert first.shape == (5, 3, 16, 16) and first.dtype == torch.float32 and 0 <= first.min() <= first.max() <= 1
    assert torch.equal(Augment(resolution=16, seed=3)(images, step=9), first)
    assert not torch.equal(Augment(resolution=16, seed=3)(images, step=10), first)
    assert not torch.equal(Augment(resolution=16, seed=4)(images, step=9), first)


def test_nothing_but_scaling_when_all_is_off(picture):
    image = np.asarray(picture(32, 32))
    off = Augment(resolution=32, scale=(1, 1), ratio=(1, 1), flip=0, jitter=(0, 0, 0, 0), grey=0)
    assert (off([image], step=0)[0].permute(1, 2, 0).numpy() == image / np.float32(255)).all()


def test_images_are_not_written_to(picture):
    images = np.stack([np.asarray(picture(24, 24, seed=i)) for i in range(3)])
    before = images.copy()
    images.flags.writeable = False  # a memory map
    Augment(resolution=24)(images, step=0)
    assert (images == before).all()


def test_wrong_numbers():
    with pytest.raises(ValueError, match="resolution is 0, expected 1 or more pixels"):
        Augment(resolution=0)
    with pytest.raises(ValueError, match=r"jitter of the hue is 0.7, expected 0 to 0.5"):
        Augment(jitter=(0.3, 0.3, 0.3, 0.7))
