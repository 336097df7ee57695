from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from crosstail.data import load
from crosstail.data.inputs import kind_of_model
from crosstail.prediction.predictor import find_inputs
from crosstail.training import RunSpec

RUN = SimpleNamespace(result=SimpleNamespace(spec=RunSpec(dataset="photos")))
IMAGES, VECTORS = (
    SimpleNamespace(input_shape=shape, kind=kind_of_model(shape), run=RUN) for shape in ((3, 8, 8), (4,))
)


def save_image(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(path)
    return path


def test_hidden_files_and_folders_are_skipped(tmp_path):
    root = tmp_path / ".cache" / "photos"  # hidden folders above the given one do not matter
    shown = [save_image(root / "a.png"), save_image(root / "b" / "c.PNG")]
    for name in ("._a.png", ".git/x.png", "b/.thumbnails/c.png"):
        save_image(root / name)
    names, *_ = find_inputs([root], IMAGES)
    assert names == [str(path) for path in shown]
    assert find_inputs([root / "._a.png"], IMAGES)[0] == [str(root / "._a.png")]  # it was asked for by name


def test_a_folder_has_the_images_that_training_finds(tmp_path):
    root = tmp_path / "photos"
    for name in ("cat", "dog.png"):  # a folder, despite its suffix
        save_image(tmp_path / "elsewhere" / name / "a.png")
        (root / "rome").mkdir(parents=True, exist_ok=True)
        (root / "rome" / name).symlink_to(tmp_path / "elsewhere" / name)
    (root / "rome" / "up").symlink_to(root)
    names, *_ = find_inputs([root], IMAGES)
    assert names == [str(root / path) for path in ("rome/cat/a.png", "rome/dog.png/a.png")]
    assert names == [str(root / path) for path in load(str(root)).x.paths()]


@pytest.mark.parametrize("name", ["x.npy", "X.NPY", "x.npz", "X.NPZ"])
def test_arrays_whatever_the_case_of_their_suffix(tmp_path, name):
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    with (tmp_path / name).open("wb") as file:
        np.save(file, x) if name.lower().endswith("npy") else np.savez(file, x=x)
    names, found, *_ = find_inputs([tmp_path / name], VECTORS)
    assert names == ["0", "1"] and np.array_equal(found, x)


def test_a_row_of_a_table_without_a_path_is_named(tmp_path):
    save_image(tmp_path / "a.png")
    table = tmp_path / "new.csv"
    table.write_text("path,hospital\na.png,rome\n,rome\na.png,\n")
    with pytest.raises(ValueError, match=r"new\.csv: row 2 has no path"):
        find_inputs([table], IMAGES)
    table.write_text("file,hospital\na.png,rome\n")
    with pytest.raises(ValueError, match=r"'path'.*file, hospital"):
        find_inputs([table], IMAGES)
    table.write_text("path,hospital\nb.png,rome\na.png,oslo\n")
    with pytest.raises(ValueError, match=r"new\.csv: '.*b\.png' cannot be read"):
        find_inputs([table], IMAGES)
    names, _, found, missing = find_inputs([table], IMAGES, skip_missing=True)
    assert names == [str(tmp_path / "a.png")] and found["hospital"].tolist() == ["oslo"] and "b.png" in missing[0]
    table.write_text("path,hospital\na.png,rome\na.png,\n")
    names, _, found, _ = find_inputs([table], IMAGES)
    assert names == [str(tmp_path / "a.png")] * 2 and found["hospital"].isna().tolist() == [False, True]
