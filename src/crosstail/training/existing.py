"""Runs on disk: found where `best` points to, and explained where there is none; needs no torch."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from crosstail import discovery
from crosstail.data.sources._locate import LOOKED_AT, require_source


def existing_run(path: Path) -> Path:
    """The folder of a finished run; `path` may be a file that names it, as `point_to` writes where links fail."""
    if path.is_file() and path.stat().st_size < 4096:
        path = path.parent / path.read_text(encoding="utf-8", errors="replace").strip()
    if not (path / "result.json").exists():
        raise ValueError(no_run(path))
    return path


def no_run(path: Path) -> str:
    """Explain what was found instead of a finished run."""
    if not path.is_dir():
        if path.exists():
            return f"{path} is a file: expected the folder of a run"
        beside = [entry.name for entry in islice(path.parent.iterdir(), LOOKED_AT)] if path.parent.is_dir() else []
        near = discovery.nearest(path.name, [name for name in beside if (path.parent / name).is_dir()])
        how = f"did you mean {path.with_name(near)}?" if near else f"`crosstail fit DATA --out {path}` makes one"
        return f"{path}: there is no such folder; {how}"
    if (path / "spec.json").exists():
        return f"{path} is not finished: run its `crosstail fit` command to the end first"
    if (path / "plans").is_dir():
        race, best = any((path / name).exists() for name in ("race.json", "forecast.json")), path / "best"
        run = f"its best run is {best}" if best.exists() else f"its runs are in {path / 'runs'}"
        if race and not (path / "race.json").exists():
            run = f"it is not finished: its `crosstail race` command goes on, and its best run will be {best}"
        return f"{path} is the folder of a {'race' if race else 'sweep'}, not of a run: {run}"
    if inside := sorted(file.parent for file in path.glob("*/spec.json")):
        chosen = path / "refit" if path / "refit" in inside else inside[0]
        return f"{path} holds {len(inside)} runs, not one: name one of them, such as {chosen}"
    return f"{path} is not a run: it has no spec.json"


@contextmanager
def naming_run(run: Path) -> Iterator[None]:
    """Name the run in errors about what its files say."""
    try:
        yield
    except (ValueError, FileNotFoundError) as error:
        raise error if str(run) in str(error) else ValueError(f"{run}: {error}") from None
    except RuntimeError as error:
        if "allocate memory" not in str(error):  # torch has no error of its own for it
            raise
        raise MemoryError(f"{run}: the sizes in its result.json take more memory than there is") from None


def require_data(run: Path, source: str) -> None:
    """Refuse a run whose data are not found, which are named relative to the folder that it was started in."""
    try:
        require_source(source)
    except (ValueError, FileNotFoundError):
        home = next((folder for folder in run.resolve().parents if (folder / source).exists()), None)
        how = f"run the command in {home}, where they are" if home else "run the command where it was trained"
        raise ValueError(f"{run} was trained on {source}, which is not found from this folder: {how}") from None


def point_to(run: Path, link: Path) -> None:
    """Make a relative link to a run, or a file with its relative path where the file system has no links."""
    link.unlink(missing_ok=True)
    target = run.relative_to(link.parent)
    try:
        link.symlink_to(target, target_is_directory=True)
    except OSError:
        link.write_text(f"{target.as_posix()}\n", encoding="utf-8")
