"""Wrong names and paths, found before torch is imported."""

from collections.abc import Iterable
from pathlib import Path

from crosstail import discovery, metrics
from crosstail.data.sources._locate import require_source
from crosstail.data.sources.benchmark import spelled
from crosstail.training.spec import AUTO, RunSpec, split_method


def known_source(source: str) -> str:
    """A source that exists; a benchmark's name is normalised to our spelling."""
    require_source(source)
    return spelled(source)


def require_output(out: Path, inputs: Iterable[Path], *suffixes: str) -> None:
    """Refuse to write to a file with another suffix, to one of the inputs, or among the files of a run or a sweep."""
    if out.suffix.lower() not in suffixes:
        raise ValueError(f"--out {out}: expected a file that ends in {' or '.join(suffixes)}")
    if out.exists() and any(file.exists() and out.samefile(file) for file in inputs):
        raise ValueError(f"--out {out} is an input: choose another file")
    if out.suffix.lower() == ".json" and any((out.parent / name).exists() for name in ("spec.json", "plans")):
        raise ValueError(f"--out {out} is in the folder of a run or a sweep: choose another one")


def check_spec(spec: RunSpec, methods: Iterable[str] = ()) -> None:
    """Refuse an unknown algorithm, second stage or backbone, or a missing file, in a spec or in methods."""
    stages = [spec.second_stage]
    for method in (*methods, *(() if spec.algorithm == AUTO else (spec.algorithm,))):
        algorithm, stage = split_method(method)
        stages.append(stage)
        for word in discovery.combined(algorithm):
            name = word if word.endswith(".py") else word.partition("@")[0]
            discovery.known("crosstail.algorithms", name, "algorithm")
    for stage in filter(None, stages):
        discovery.known("crosstail.second_stages", stage, "second stage")
    if spec.select_on and spec.select_on.endswith(".py"):
        discovery.known(metrics.PACKAGE, spec.select_on, "metric")
    if spec.backbone is not None and not spec.backbone.startswith("timm:"):
        discovery.known("crosstail.backbones", spec.backbone, "backbone")


def check_prior(prior: str | None) -> None:
    """Refuse a --prior that is neither a word nor a file."""
    if prior not in (None, "uniform", "train", "estimate") and not Path(prior).is_file():
        raise FileNotFoundError(f"--prior {prior}: there is no such file; or use uniform, train or estimate")
