"""The kind of a source, from headers alone."""

import numpy as np
import pandas as pd
import pytest

from crosstail.data import kind_of


def test_arrays(tmp_path):
    np.savez(tmp_path / "vectors.npz", x=np.zeros((4, 3), np.float32))
    np.savez(tmp_path / "images.npz", x=np.zeros((4, 8, 8, 3), np.uint8))
    assert kind_of(str(tmp_path / "vectors.npz")) == kind_of("nowhere.npz") == "vectors"
    assert kind_of(str(tmp_path / "images.npz")) == "images"


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_of_a_manifest_only_the_header_is_read(tmp_path, suffix, monkeypatch):
    module = "crosstail.data.sources._manifest_table"
    monkeypatch.setattr(f"{module}.csv.read_csv", lambda *_, **__: pytest.fail("read the rows"))
    monkeypatch.setattr(f"{module}.parquet.read_table", lambda *_, **__: pytest.fail("read the rows"))
    table = pd.DataFrame({"site": ["p"], "label": ["a"], "x": [0], "file": ["a.png"]})
    path = tmp_path / f"m{suffix}"
    table.to_csv(path, index=False) if suffix == ".csv" else table.to_parquet(path)
    assert kind_of(str(path), {"domain": "site"}) == "vectors"
    assert kind_of(str(path), {"domain": "site", "path": "file"}) == "files"
    with pytest.raises(ValueError, match="domain"):
        kind_of(str(path))
