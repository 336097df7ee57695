"""Contract checks for every kind of part, including your own.

>>> check_docstring("erm")
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from crosstail import algorithms, discovery
from crosstail.data import DomainBatches, to_input
from crosstail.prediction.export import export
from crosstail.prediction.predictor import Predictor
from crosstail.testing.easy_data import STEPS, changed, easy_run, save_separable
from crosstail.testing.parts import BACKBONE_CHECKS, DATA_SET_CHECKS, METRIC_CHECKS
from crosstail.testing.plain_run import Stop, outcome_of, plain_run, stopping_at
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder
from crosstail.training.model import build_algorithm, load_model
from crosstail.training.resolve import resolve, steps_of_stages
from crosstail.training.run_data import input_shape, load_inputs
from crosstail.training.spec import split_method


def check_algorithm(name: str) -> None:
    """Run all checks on an algorithm or file and print each; the first that fails raises its error."""
    _run(CHECKS, name)


def check_second_stage(name: str) -> None:
    """The same for a second stage, after ERM."""
    _run(STAGE_CHECKS, f"erm:{name}")


def check_file(name: str) -> None:
    """The same for any kind of part in a file, as `python -m crosstail.testing ./mine.py` does."""
    for what, check in KINDS.items():
        if what in discovery.defined(Path(name)):
            check(name)
            return
    check_algorithm(name)


def _run(checks: Sequence[Callable[[str], None]], name: str) -> None:
    plain_run.cache_clear()  # a file may have changed
    for number, check in enumerate(checks, 1):
        what = f"{number:2} of {len(checks)}: {(check.__doc__ or '').splitlines()[0]}"
        try:
            check(name)
        except BaseException:
            print(f"✗ {what}")
            raise
        print(f"✓ {what}")


def check_docstring(name: str) -> None:
    """The docstring cites a paper, with authors and year in parentheses."""
    text = algorithms.find(name).__doc__ or ""
    assert re.search(r"\([^()]*\b(19|20)\d\d\b[^()]*\)", text), f"{name}: the docstring cites no paper with its year"


def check_learns(name: str) -> None:
    """On separable vectors, training at least halves the cross-entropy."""
    before, after = plain_run(name).cross_entropy
    assert after < before / 2, f"{name}: the loss on the training set went from {before:.3f} to {after:.3f}"


def check_beats_chance(name: str) -> None:
    """On easy, balanced data, every pair is above chance."""
    worst = plain_run(name).outcome["test"].worst_pair or 0.0
    assert worst > 1 / 3, f"{name}: the worst pair has an accuracy of {worst:.2f}"


def check_deterministic(name: str) -> None:
    """The same seed gives the same weights and accuracies, whatever the global random state; another seed does not."""
    with easy_run(name) as (spec, folder):
        torch.manual_seed(1)
        np.random.seed(1)  # noqa: NPY002
        assert outcome_of(spec, folder / "again") == plain_run(name).outcome, (
            f"{name}: two runs with the same seed differ"
        )
        short = replace(spec, steps=2, evaluations=1)
        seeds = [outcome_of(replace(short, seed=seed), folder / str(seed))["weights"] for seed in (0, 1)]
        assert seeds[0] != seeds[1], f"{name}: two seeds give the same weights"


def check_resumes(name: str) -> None:
    """A run that is interrupted and resumed ends exactly like one that is not."""
    with easy_run(name) as (spec, folder):
        for stop in (1, STEPS // 2 + 1, STEPS) if any(steps_of_stages(resolve(spec))) else ():
            try:
                train_run(spec, folder / "stopped", progress=stopping_at(stop))
            except Stop:
                continue
            raise AssertionError(f"{name}: never reached step {stop}")
        assert outcome_of(spec, folder / "stopped") == plain_run(name).outcome, (
            f"{name}: a resumed run ends differently"
        )


def check_steps(name: str) -> None:
    """Training takes the requested number of steps and evaluates at the last one."""
    run = plain_run(name)
    expected = [(f"stage {i}", step + 1, steps) for i, steps in enumerate(run.taken, 1) for step in range(steps)]
    assert run.reports == expected, f"{name}: took {len(run.reports)} steps of {len(expected)}"
    last = run.outcome["records"][-1]["step"]
    assert last == run.taken[-1], f"{name}: not evaluated after the last step, {run.taken[-1]}"


def check_test_unseen(name: str) -> None:
    """Changing the test split changes the test accuracies and nothing else."""
    with easy_run(name) as (spec, folder):
        real = plain_run(name).outcome
        with changed(spec.dataset) as arrays:
            test, rng = arrays["split"] == "test", np.random.default_rng(1)
            arrays["x"][test] = rng.normal(size=arrays["x"][test].shape)
            arrays["y"][test] = rng.permutation(arrays["y"][test])
        other = outcome_of(spec, folder / "other")
        for part in ("weights", "records", "validation", "selected_step", "transferability"):
            assert other[part] == real[part], f"{name}: the test split changed the {part}"
        assert other["test"] != real["test"], f"{name}: the test accuracies do not come from the test split"


def check_absent_pairs_and_many_domains(name: str) -> None:
    """Training works with twelve domains, each without one class, one without any, and with a constant feature."""
    counts = [[0 if (c == d % 3 or d == 11) else 6 for c in range(3)] for d in range(12)]
    counts[0][1] = 1
    with easy_run(name, counts) as (spec, folder):
        with changed(spec.dataset) as arrays:
            arrays["x"][:, 0] = 0.1
        result = train_run(replace(spec, steps=6, batch_size=4, evaluations=1), folder).result
        assert np.array(result.test.totals).shape == (12, 3), f"{name}: the result lacks pairs"
        _check_finite(name, folder)


def check_one_domain(name: str) -> None:
    """With one domain, it trains or says that it needs more."""
    with easy_run(name, [[9, 9, 9]]) as (spec, folder):
        try:
            train_run(replace(spec, steps=6, evaluations=1), folder)
        except ValueError as error:
            assert "compares domains" in str(error), f"{name}: with one domain, it raises {error}"
            assert algorithms.find(name).min_domains > 1, f"{name}: refuses one domain but does not set min_domains"
        else:
            _check_finite(name, folder)


def check_images(name: str) -> None:
    """Training works on images, with a convolutional network, unless it trains no network at all."""
    if not algorithms.find(split_method(name)[0]).learns:
        return
    with easy_run(name) as (spec, folder):
        with changed(spec.dataset) as arrays:
            arrays["x"] = np.random.default_rng(0).integers(0, 255, (len(arrays["y"]), 8, 8, 3), dtype=np.uint8)
        train_run(replace(spec, backbone="small_cnn", width=8, steps=4, batch_size=5, evaluations=1), folder)
        _check_finite(name, folder)


def check_mixed_precision(name: str) -> None:
    """Five updates in bfloat16 give finite loss terms, and the weights remain float32."""
    with easy_run(name) as (spec, _):
        spec = resolve(spec)
        dataset = load_inputs(spec).embedded()
        algorithm = build_algorithm(spec, input_shape(dataset), dataset.counts("train")).train()
        optimizers, batches = algorithm.optimizers(), DomainBatches(dataset, batch_size=8)
        for step in range(5):
            algorithm.step, algorithm.steps = step, 5
            with torch.autocast("cpu", torch.bfloat16):
                terms = algorithm.update(batches.at(step), optimizers, torch.Tensor.backward)
            assert all(bool(term.isfinite()) for term in terms.values()), f"{name}: in bfloat16 the terms are {terms}"
        assert {p.dtype for p in algorithm.parameters()} == {torch.float32}, f"{name}: the weights are not float32"


def check_leaves_the_batch(name: str) -> None:
    """An update leaves the batch as it is: other parts of a combination read it too."""
    with easy_run(name) as (spec, _):
        spec = resolve(spec)
        dataset = load_inputs(spec).embedded()
        algorithm = build_algorithm(spec, input_shape(dataset), dataset.counts("train")).train()
        batch, same = (DomainBatches(dataset, batch_size=8).at(0) for _ in range(2))
        algorithm.update(batch, algorithm.optimizers(), torch.Tensor.backward)
        for field in ("x", "y", "domain"):
            assert torch.equal(getattr(batch, field), getattr(same, field)), f"{name}: writes into batch.{field}"


def check_two_stages(name: str) -> None:
    """With a new classifier, or stage one's rescaled if it is linear, every pair of easy data is above chance."""
    for stage in () if algorithms.find(name).alias_of else ("retrain", "tau_norm"):
        try:
            check_beats_chance(f"{name}:{stage}")
        except ValueError as error:
            assert stage == "tau_norm" and "not linear" in str(error), f"{name}: with {stage}, it raises {error}"


def check_known_domain(name: str) -> None:
    """With the domain known, scores change only if `uses_domain`, and depend on the sample's own domain alone."""
    with easy_run(name, [[9, 4, 9], [2, 9, 9], [0, 0, 0]]) as (spec, folder):
        with changed(spec.dataset) as arrays:
            arrays["split"][arrays["split"] == "val"] = "test"  # so that a second stage cannot choose to change nothing
        inputs = train_run(replace(spec, steps=6, evaluations=1), folder).inputs
        assert inputs
        dataset = inputs.embedded()
        model = load_model(RunFolder(folder), dataset, trust=True).eval()
        x, domain = to_input(dataset.x[:6]), torch.tensor([0, 1, 2] * 2)
        with torch.no_grad():
            unknown, known = model(x), model(x, domain)
            alone = torch.cat([model(x[i : i + 1], domain[i : i + 1]) for i in range(len(x))])
        assert bool(known.isfinite().all()), f"{name}: the scores are not finite if the domain is known"
        torch.testing.assert_close(known, alone, msg=f"{name}: the scores depend on the domains of other samples")
        same = torch.allclose(known, unknown)
        assert same != model.uses_domain, f"{name}: uses_domain is {model.uses_domain}, but the scores are {same=}"


def check_stored(name: str) -> None:
    """The model that is loaded from a run, and the one that is exported, predict what the run did."""
    with easy_run(name) as (spec, folder):
        run = train_run(spec, folder)
        dataset, said = run.dataset, run.test
        assert dataset
        answers = Predictor(folder, trust=True).probabilities(dataset.x[dataset.rows("test")]).argmax(1)
        assert said and (answers == said.predicted).all(), f"{name}: the stored model predicts other classes"
        export(folder, folder / "model.pt2", "torch", dataset=dataset, trust=True)  # compares the two


def check_hyperparameters(name: str) -> None:
    """Each hyperparameter has a meaning, and training works with values drawn by a search."""
    kind = algorithms.find(name)
    for field in fields(kind.Hparams):
        assert field.metadata.get("meaning"), f"{name}: {field.name} has no meaning"
    for trial in range(1, 4):
        drawn = algorithms.draw(kind.Hparams, trial)
        typed = algorithms.parse(kind.Hparams, {key: str(value) for key, value in drawn.items()})
        assert typed == algorithms.parse(kind.Hparams, drawn), f"{name}: hyperparameters change when parsed from text"
        with easy_run(name) as (spec, folder):
            train_run(replace(spec, hparams=drawn, steps=4, evaluations=1), folder)
            _check_finite(name, folder)


__all__ = ["CHECKS", "STAGE_CHECKS", "check_algorithm", "check_file", "check_second_stage", "save_separable"]

BOTH: list[Callable[[str], None]] = [check_learns, check_beats_chance, check_deterministic, check_resumes]
BOTH += [check_steps, check_test_unseen, check_absent_pairs_and_many_domains, check_one_domain, check_images]
CHECKS = [check_docstring, *BOTH, check_leaves_the_batch, check_mixed_precision, check_two_stages]
CHECKS += [check_known_domain, check_hyperparameters]
STAGE_CHECKS = [*BOTH, check_known_domain, check_stored]
KINDS: dict[str, Callable[[str], None]] = {
    "STAGE": check_second_stage,
    "METRIC": partial(_run, METRIC_CHECKS),
    "build": partial(_run, BACKBONE_CHECKS),
    "load": partial(_run, DATA_SET_CHECKS),
}
"""What a file defines, if it is not an algorithm, and how it is checked."""


def _check_finite(name: str, folder: Path) -> None:
    wrong = [key for key, value in RunFolder(folder).weights().items() if bool(torch.isnan(value).any())]
    assert not wrong, f"{name}: {wrong[0]} is NaN"
