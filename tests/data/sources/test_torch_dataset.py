import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, IterableDataset, StackDataset, TensorDataset
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

from crosstail.data import load

Y, DOMAIN = torch.arange(24) % 3, torch.arange(24) // 12


class Named(list):
    """A list of samples with names."""

    classes, domains = ("cat", "dog", "emu"), ("web", "studio")


def test_vectors_with_domains():
    x = torch.randn(24, 5)
    dataset = load(TensorDataset(x, Y, DOMAIN))
    np.testing.assert_array_equal(dataset.x, x.numpy())
    assert dataset.y.tolist() == Y.tolist() and dataset.domain.tolist() == DOMAIN.tolist()
    assert (dataset.name, dataset.classes, dataset.domains) == ("TensorDataset", ("0", "1", "2"), ("0", "1"))
    assert "24 samples of TensorDataset" in dataset.notes[0]
    assert load(StackDataset(x=x, label=Y, domain=DOMAIN)).checksum == dataset.checksum
    assert load(ConcatDataset([TensorDataset(x, Y, DOMAIN)])).checksum == dataset.checksum


def test_without_domains_there_is_one():
    dataset = load(TensorDataset(torch.randn(24, 5), Y))
    assert dataset.domains == ("all",) and any("no domain" in note for note in dataset.notes)


def test_names_of_the_data_set():
    samples = Named((np.zeros(4), int(y), int(d)) for y, d in zip(Y, DOMAIN, strict=True))
    dataset = load(samples)
    assert (dataset.classes, dataset.domains) == (Named.classes, Named.domains)
    words = load([(np.zeros(4), Named.classes[y], Named.domains[d]) for y, d in zip(Y, DOMAIN, strict=True)])
    assert words.classes == ("cat", "dog", "emu") and words.domains == ("studio", "web")


def test_images(photos):
    root = photos(n=2)
    files = ImageFolder(root / "photo")
    dataset = load(files)
    assert (
        dataset.x.shape == (6, 40, 50, 3) and dataset.x.dtype == np.uint8 and dataset.classes == ("cat", "dog", "emu")
    )
    np.testing.assert_array_equal(dataset.x[0], np.asarray(files[0][0]))
    as_float = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
    assert load(ImageFolder(root / "photo", as_float)).x.tobytes() == dataset.x.tobytes()
    normalised = v2.Compose([as_float, v2.Normalize([0.5] * 3, [0.2] * 3)])
    with pytest.raises(ValueError, match=r"^ImageFolder: x of sample 0 .* normalisation"):
        load(ImageFolder(root / "photo", normalised))


class Endless(IterableDataset):
    def __iter__(self):
        yield 0


WRONG = {
    "endless": (Endless(), "Endless: has no length"),
    "nothing": ([], "list: has no samples"),
    "a number": ([1, 2], "sample 0 is a int"),
    "no label": ([{"x": np.zeros(3), "site": 1}], "sample 0 is a dictionary with x, site"),
    "a matrix": ([(np.zeros((3, 4)), 1)], r"sample 0 has the shape \(3, 4\)"),
    "two sizes": ([(np.zeros(3), 1), (np.zeros(4), 1)], r"sample 1 has the shape \(4,\)"),
    "NaN": ([(np.zeros(3), 1), (np.full(3, np.nan), 1)], "sample 1 has a value that is NaN"),
    "a float": ([(np.zeros(3), 0.5)], "y of sample 0 is 0.5"),
    "above": (Named([(np.zeros(3), 3, 0)]), "y of sample 0 is 3, but there are 3 names"),
    "no data set": (3, "int: .*expected a path"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_named(what):
    source, message = WRONG[what]
    with pytest.raises(ValueError, match=message):
        load(source)
