import numpy as np
import pandas as pd
import pytest

from crosstail.data import kind_in
from crosstail.data.inputs import image_files, images, vectors


def test_arrays(tmp_path):
    np.savez(tmp_path / "vectors.npz", x=np.zeros((4, 3), np.float32))
    np.savez(tmp_path / "images.npz", x=np.zeros((4, 8, 8, 3), np.uint8))
    assert kind_in(str(tmp_path / "vectors.npz")) is kind_in("nowhere.npz") is vectors.KIND
    assert kind_in(str(tmp_path / "images.npz")) is images.KIND


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_of_a_manifest_only_the_header_is_read(tmp_path, suffix, monkeypatch):
    module = "crosstail.data.sources._manifest_table"
    monkeypatch.setattr(f"{module}.csv.read_csv", lambda *_, **__: pytest.fail("read the rows"))
    monkeypatch.setattr(f"{module}.parquet.read_table", lambda *_, **__: pytest.fail("read the rows"))
    table = pd.DataFrame({"site": ["p"], "label": ["a"], "x": [0], "file": ["a.png"]})
    path = tmp_path / f"m{suffix}"
    table.to_csv(path, index=False) if suffix == ".csv" else table.to_parquet(path)
    assert kind_in(str(path), {"domain": "site"}) is vectors.KIND
    assert kind_in(str(path), {"domain": "site", "path": "file"}) is image_files.KIND
    with pytest.raises(ValueError, match="domain"):
        kind_in(str(path))
