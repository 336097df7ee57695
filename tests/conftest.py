"""Fixtures for all tests: a separate cache, and one thread."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests never read or write the user's cache; processes that they start inherit this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CROSSTAIL_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
        yield


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """The models of tests are so small that several threads only wait for each other."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the project, or $CROSSTAIL_SHARED/data; tests that need it skip without it."""
    folder = Path(os.environ.get("CROSSTAIL_SHARED", Path(__file__).parents[1].parent / "shared")) / "data"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there (real data for tests; CROSSTAIL_SHARED says where)")
    return folder
