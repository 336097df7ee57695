"""For all tests: their processes and order, temporary files in memory, a separate cache, and one thread."""

import atexit
import gc
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

# Lightning Fabric imports it where it is installed, and with it Transformers: seconds in each process. Only one of the
# examples needs it, and no user of crosstail.
sys.modules["torchmetrics"] = None
# Hypothesis would import trio, because that is installed and registers itself.
os.environ["HYPOTHESIS_NO_PLUGINS"] = "1"


def suits(folder: Path) -> bool:
    """Whether there is a folder with room for the files of all tests, where programs can be executed."""
    room = folder.is_dir() and shutil.disk_usage(folder).free > 4 << 30
    return room and not os.statvfs(folder).f_flag & os.ST_NOEXEC


SOURCES = Path(__file__).parents[1] / "src"
MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and suits(MEMORY):
    # Every run flushes a dozen files to the disk; the tests have thousands of runs, and would spend minutes waiting.
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", f"{tempfile.gettempdir()}/torchinductor")  # stays after the tests
    tempfile.tempdir = os.environ["TMPDIR"] = str(MEMORY)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than cores, because many tests wait for programs that they start."""
    return 1 + (os.cpu_count() or 1)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage while modules are imported, which leave little, nor later among what they consist of."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        atexit.register(gc.unfreeze)  # extension modules look for leaks at the end
        gc.enable()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Import no module of the sources to look for examples in its docstrings if it has none: some take seconds."""
    if collection_path.suffix == ".py" and collection_path.is_relative_to(SOURCES):
        return b">>>" not in collection_path.read_bytes() or None
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first, then those with many, so that no process is left with a long one at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    number = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path not in slow, -number[item.path]))


@pytest.fixture(scope="session", autouse=True)
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What processes that tests start inherit: never the user's cache, but one that all test processes share."""
    own = tmp_path_factory.getbasetemp()
    absent = tmp_path_factory.mktemp("absent")
    (absent / "torchmetrics.py").write_text("raise ImportError")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CROSSTAIL_CACHE", str((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "cache"))
        patch.setenv("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
        patch.setenv("PYTHONPATH", str(absent), prepend=os.pathsep)
        yield


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """The models of tests are so small that several threads only wait for each other."""
    import torch  # here, because the process that only distributes the tests does without it

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the project, or $CROSSTAIL_SHARED/data; tests that need it skip without it."""
    folder = Path(os.environ.get("CROSSTAIL_SHARED", Path(__file__).parents[1].parent / "shared")) / "data"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there (real data for tests; CROSSTAIL_SHARED says where)")
    return folder
