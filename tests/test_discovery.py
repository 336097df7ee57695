"""The file is the registration: names, hidden files, and the error for an unknown name."""

import sys

import pytest

from crosstail import discovery


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with two names, machinery, a folder and a file that is no module."""
    folder = tmp_path / "made_package"
    (folder / "folder").mkdir(parents=True)
    for name in ("__init__.py", "wolf.py", "bear.py", "_machinery.py", "folder/__init__.py", "notes.txt"):
        (folder / name).write_text(f"WHO = {name!r}\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "made_package"
    for name in [name for name in sys.modules if name.split(".")[0] == "made_package"]:
        del sys.modules[name]


def test_names_are_the_files_sorted_without_machinery(package):
    assert discovery.names(package) == ["bear", "folder", "wolf"]


def test_a_new_file_is_a_new_name(package, tmp_path):
    assert "fox" not in discovery.names(package)
    (tmp_path / "made_package" / "fox.py").write_text("")
    assert "fox" in discovery.names(package)


def test_listing_imports_nothing(package, tmp_path):
    (tmp_path / "made_package" / "broken.py").write_text("raise RuntimeError('imported')")
    assert "broken" in discovery.names(package)
    assert "made_package.wolf" not in sys.modules


def test_find_imports_the_file(package):
    assert discovery.find(package, "wolf", "animal").WHO == "wolf.py"


def test_an_unknown_name_is_told_the_near_one(package):
    with pytest.raises(ValueError) as caught:
        discovery.find(package, "wolff", "animal")
    assert str(caught.value) == "unknown animal 'wolff': did you mean 'wolf'?"


def test_a_name_that_is_near_to_none_is_told_them_all(package):
    with pytest.raises(ValueError) as caught:
        discovery.find(package, "zebra", "animal")
    assert str(caught.value) == "unknown animal 'zebra': there are bear, folder, wolf."


@pytest.mark.parametrize("name", ["_machinery", "__init__", "", "wolf.py", "../wolf", "folder.x"])
def test_machinery_and_paths_are_no_names(package, name):
    with pytest.raises(ValueError, match="unknown animal"):
        discovery.find(package, name, "animal")


@pytest.mark.parametrize(
    ("package_name", "some", "hidden"),
    [
        ("crosstail.algorithms", {"erm", "boda", "boda_m", "da"}, {"_algorithm", "_hparams"}),
        ("crosstail.backbones", {"mlp", "small_cnn", "efficientnet_lite0", "identity"}, {"_backbone"}),
        ("crosstail.data.benchmarks", {"digits"}, {"_sheet", "_draw_digits"}),
    ],
)
def test_what_crosstail_offers(package_name, some, hidden):
    found = set(discovery.names(package_name))
    assert some <= found and not hidden & found
