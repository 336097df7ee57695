"""From a spec to a result: two stages, selection on validation, and accuracies of the final model."""

import sys
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from crosstail import algorithms, second_stages
from crosstail.data import DomainBatches
from crosstail.metrics import PairAccuracy
from crosstail.metrics._calibration import calibrated
from crosstail.storage import only_process, write_json
from crosstail.testing import save_separable
from crosstail.testing.easy_data import changed
from crosstail.training import RunSpec, loop, second_stage
from crosstail.training.devices import OneDevice
from crosstail.training.evaluation import graph_of, split_answers
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder
from crosstail.training.model import build_algorithm, load_model
from crosstail.training.resolve import resolve
from crosstail.training.result import SplitAccuracy
from crosstail.training.run import Run
from crosstail.training.run_data import Inputs, input_shape, load_inputs
from crosstail.training.second_stage import build_classifier
from crosstail.transfer import TransferabilityGraph

fit_module = sys.modules[train_run.__module__]

COUNTS = [[150, 8, 2], [0, 60, 25]]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "v.npz"
    save_separable(path, COUNTS, num_features=3)
    return str(path)


def make(dataset, **changes):
    common = {"backbone": "mlp", "width": 8, "steps": 20, "batch_size": 4, "evaluations": 5}
    return RunSpec(**{"dataset": dataset, "algorithm": "boda", **common, **changes})


@pytest.mark.parametrize("stage", [None, "retrain", "ncm"])
def test_the_accuracies_are_those_of_the_model(dataset, tmp_path, stage):
    spec = make(dataset, second_stage=stage)
    result = train_run(spec, tmp_path).result
    inputs = load_inputs(resolve(spec)).embedded()
    model = load_model(RunFolder(tmp_path), inputs)
    for name, split in (("validation", "val"), ("test", "test")):
        said = split_answers(model, inputs, split, "pair_average")
        more = {"shots": said.value().shots(COUNTS)}
        if name == "validation":
            of = calibrated(Run(tmp_path).held_out.validation, Run(tmp_path).calibration)
            more["others"] = {"as_they_come": of.value("as_they_come").pair_average}
        assert getattr(result, name) == msgspec.structs.replace(SplitAccuracy.of_answers(said, "pair_average"), **more)
    accuracy = np.array(result.test.hits) / np.array(result.test.totals)
    expected = {"many": accuracy[0, 0], "zero": accuracy[1, 0], "few": np.mean([accuracy[0, 1], accuracy[0, 2]])}
    expected["medium"] = np.mean([accuracy[1, 1], accuracy[1, 2]])
    assert result.test.shots == pytest.approx(expected)
    assert result.counts == COUNTS and result.spec == resolve(spec)
    assert msgspec.to_builtins(result.transferability) == pytest.approx(graph_of(model, inputs).statistics._asdict())
    said = {name: values.numpy() for name, values in RunFolder(tmp_path).load("predictions.pt").items()}
    by_sample = PairAccuracy.from_predictions(**said, num_domains=2, num_classes=3)
    assert by_sample.hits.tolist() == result.test.hits and by_sample.totals.tolist() == result.test.totals


def test_groups_are_counted_in_the_result_and_stored_with_the_predictions(dataset, tmp_path):
    spec = make(dataset, steps=2)
    plain = load_inputs(resolve(spec)).samples
    grouped = replace(plain, group=np.arange(len(plain)) // 3)
    result = train_run(spec, tmp_path / "run", inputs=Inputs(grouped)).result
    for split, found in (("val", result.validation), ("test", result.test)):
        rows = grouped.rows(split)
        squares = np.zeros((2, 3), int)
        for d, c in np.ndindex(2, 3):
            members = [int(grouped.group[i]) for i in rows if (grouped.domain[i], grouped.y[i]) == (d, c)]
            squares[d, c] = sum(members.count(g) ** 2 for g in set(members))
        assert found.squares == squares.tolist() != found.totals
    read = RunFolder(tmp_path / "run")
    assert read.result() == result and read.result().test.pairs().squares.tolist() == squares.tolist()
    stored = Run(tmp_path / "run").test
    assert stored.group.tolist() == grouped.group[rows].tolist() and stored.y.tolist() == plain.y[rows].tolist()
    train_run(spec, tmp_path / "plain")
    plain = RunFolder(tmp_path / "plain")
    assert "squares" not in (plain.path / "result.json").read_text() and Run(plain.path).test.group is None


def test_the_graph_is_that_of_the_training_features(dataset, tmp_path):
    spec = resolve(make(dataset))
    inputs = load_inputs(spec).embedded()
    model = build_algorithm(spec, input_shape(inputs), inputs.counts("train"))
    train = inputs.split == "train"
    with torch.no_grad():
        z = model.backbone(torch.from_numpy(inputs.x[train]))
    expected = TransferabilityGraph.from_features(
        z, inputs.y[train], inputs.domain[train], num_domains=2, num_classes=3
    )
    np.testing.assert_allclose(graph_of(model, inputs).matrix, expected.matrix, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("stage", [None, "retrain"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_first_of_the_best_evaluations_on_validation_is_selected(dataset, tmp_path, seed, stage):
    spec = make(dataset, seed=seed, second_stage=stage, hparams={"lr": 0.02})
    result = train_run(spec, tmp_path).result
    records = [r for r in RunFolder(tmp_path).records() if r.stage == 1 + (stage is not None)]
    assert [r.step for r in records] == [0, 4, 8, 12, 16, 20]
    scores = [r.validation.pair_average for r in records]
    best = records[scores.index(max(scores))]
    assert result.selected_step == best.step
    assert result.test.hits == best.test.hits and result.validation.hits == best.validation.hits


@pytest.mark.parametrize("stage", [None, "retrain"])
def test_a_result_names_all_hyperparameters_of_its_algorithm(dataset, tmp_path, stage):
    spec = make(dataset, second_stage=stage, hparams={"lr": 0.02, "weight": 0.3})
    hparams = train_run(spec, tmp_path).result.hparams
    assert hparams == RunFolder(tmp_path).result().hparams
    assert hparams == asdict(algorithms.find("boda").Hparams(lr=0.02, weight=0.3))


def test_stage_two_keeps_the_representation_and_trains_a_new_classifier(dataset, tmp_path):
    train_run(make(dataset), tmp_path / "once")
    train_run(make(dataset, second_stage="retrain"), tmp_path / "twice")
    once, twice = (RunFolder(tmp_path / name).load("model.pt") for name in ("once", "twice"))
    assert set(twice) == {key for key in once if key.startswith(("backbone.", "head."))}
    assert all(torch.equal(once[key], twice[key]) for key in once if key.startswith("backbone."))
    assert not torch.equal(once["head.weight"], twice["head.weight"])
    first = [r for r in RunFolder(tmp_path / "twice").records() if r.stage == 1]
    alone = RunFolder(tmp_path / "once").records()
    assert [r.losses for r in first] == [r.losses for r in alone]


def test_stage_two_has_the_learning_rate_of_stage_one_but_no_dropout(dataset):
    spec = resolve(make(dataset, second_stage="retrain", hparams={"lr": 0.02, "weight_decay": 0.1, "dropout": 0.5}))
    data = load_inputs(spec).embedded()
    first = build_algorithm(spec, input_shape(data), data.counts("train"))
    second = build_classifier(spec, second_stages.find("retrain"), first, data)
    assert first.hparams.dropout == 0.5
    assert (second.hparams.lr, second.hparams.weight_decay, second.hparams.dropout) == (0.02, 0.1, 0.0)


def test_only_stage_two_has_class_balanced_batches(dataset, tmp_path, monkeypatch):
    drawn = []

    class Spied(DomainBatches):
        def stream(self, start, stop):
            for batch in super().stream(start, stop):
                drawn[-1].append(batch)
                yield batch

        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            drawn.append([])

    monkeypatch.setattr(loop, "DomainBatches", Spied)
    train_run(make(dataset, second_stage="retrain", steps=60), tmp_path)
    assert [len(batches) for batches in drawn] == [60, 60]
    shares = []
    for batches in drawn:
        y, domain = (torch.cat([getattr(batch, name) for batch in batches]) for name in ("y", "domain"))
        shares.append([[float((y[domain == d] == c).float().mean()) for c in range(3)] for d in range(2)])
    assert shares[0] == [
        pytest.approx([150 / 160, 8 / 160, 2 / 160], abs=0.03),
        pytest.approx([0, 60 / 85, 25 / 85], abs=0.03),
    ]
    assert shares[1] == [pytest.approx([1 / 3] * 3, abs=0.01), pytest.approx([0, 0.5, 0.5], abs=0.01)]
    assert drawn[1][0].x.shape == (8, 8)  # the features, embedded once, not the inputs


def test_the_seed_alone_decides_the_start(dataset):
    """Whatever was drawn before."""
    spec = resolve(make(dataset))
    inputs = load_inputs(spec).embedded()

    def start(spec):
        torch.rand(3)
        return torch.cat(
            [
                p.detach().flatten()
                for p in build_algorithm(spec, input_shape(inputs), inputs.counts("train")).parameters()
            ]
        )

    assert torch.equal(start(spec), start(spec))
    assert not torch.equal(start(spec), start(make(dataset, seed=1)))


def test_evaluations_are_spread_evenly_and_include_start_and_end(dataset, tmp_path):
    for evaluations, expected in ((1, [0, 7]), (2, [0, 4, 7]), (7, list(range(8))), (50, list(range(8)))):
        folder = tmp_path / str(evaluations)
        train_run(make(dataset, steps=7, evaluations=evaluations), folder)
        assert [r.step for r in RunFolder(folder).records()] == expected


def test_without_validation_samples_the_last_evaluation_counts(tmp_path):
    """Nothing to select by; the untrained model of step 0 would be the worst choice."""
    save_separable(tmp_path / "v.npz")
    with changed(tmp_path / "v.npz") as arrays:
        keep = arrays["split"] != "val"
        arrays |= {name: values[keep] for name, values in arrays.items()}
    result = train_run(make(str(tmp_path / "v.npz")), tmp_path / "run").result
    assert result.validation.pair_average is None and result.selected_step == 20


def test_a_run_without_a_model_says_what_to_do(dataset, tmp_path):
    spec = make(dataset, steps=2)
    train_run(spec, tmp_path)
    Path(tmp_path / "model.pt").unlink()
    with pytest.raises(ValueError, match=r"has no model\.pt: remove its result\.json, if any, and run its"):
        load_model(RunFolder(tmp_path), load_inputs(resolve(spec)).embedded())


def remove_rows(file, number=6):
    """Remove the first rows of an .npz, as if samples had been withdrawn."""
    with np.load(file) as arrays:
        kept = {name: values[number:] if len(values) > number else values for name, values in arrays.items()}
    np.savez(file, **kept)


@pytest.mark.parametrize("finished", [False, True])
def test_a_run_is_not_continued_or_reported_on_changed_data(tmp_path, finished):
    """Otherwise samples of the new test set may have been trained on."""
    save_separable(tmp_path / "v.npz", COUNTS)
    spec, folder = make(str(tmp_path / "v.npz")), tmp_path / "run"

    def stop_at_step_10(what, done, total):
        if done == 10 and not finished:
            raise KeyboardInterrupt

    with nullcontext() if finished else pytest.raises(KeyboardInterrupt):
        train_run(spec, folder, progress=stop_at_step_10)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    remove_rows(tmp_path / "v.npz")
    with pytest.raises(ValueError, match=r"v\.npz has changed.*--out"):
        train_run(spec, folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_run_with_other_defaults_is_not_continued(dataset, tmp_path):
    """As after an update of crosstail: the checkpoint has the old optimizer, the result would name the new one."""
    spec = make(dataset)
    train_run(spec, tmp_path)
    (tmp_path / "result.json").unlink()
    stored = RunFolder(tmp_path).spec()
    older = replace(stored, hparams=stored.hparams | {"weight_decay": 0.125})
    write_json(tmp_path / "spec.json", older)
    with pytest.raises(ValueError, match=r"weight_decay is 0\.125"):
        train_run(spec, tmp_path)
    assert train_run(older, tmp_path).result.hparams["weight_decay"] == 0.125


@pytest.mark.filterwarnings("ignore:.*copying from a non-meta parameter")
def test_resuming_in_stage_two_puts_the_whole_model_on_the_device(dataset, tmp_path, monkeypatch):
    """The backbone embeds the samples for the classifier, so it must be on the device before stage two begins."""
    spec = make(dataset, second_stage="retrain", average="moving")

    def stop_in_stage_two(what, done, total):
        if what == "stage 2":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_run(spec, tmp_path, progress=stop_in_stage_two)
    assert (tmp_path / "stage_one.pt").exists()
    placed = {}

    def embed(algorithm, dataset, fabric):  # tensors on torch's device "meta" have no values to embed with
        placed["backbone and head"] = algorithm
        return dataset

    def stop(loop, checkpoint):
        placed.update(classifier=loop.algorithm, averaged=loop.averaged.module)
        raise KeyboardInterrupt

    monkeypatch.setattr(fit_module, "fabric_of", lambda devices, precision: OneDevice("meta", precision))
    monkeypatch.setattr(second_stage, "embedded", embed)
    monkeypatch.setattr(loop._Loop, "resume", stop)
    with pytest.raises(KeyboardInterrupt):
        train_run(spec, tmp_path)
    assert list(placed) == ["backbone and head", "classifier", "averaged"]
    for name, module in placed.items():
        assert {str(tensor.device) for tensor in (*module.parameters(), *module.buffers())} == {"meta"}, name


def test_a_folder_in_which_another_process_trains_is_refused_and_left_as_it_is(dataset, tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train_run(make(dataset), folder, progress=stopping_at(6))
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    with only_process(folder), pytest.raises(ValueError, match=rf"another process works in {folder}.*--out"):
        train_run(make(dataset), folder)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert (
        train_run(make(dataset), folder).result.validation
        == train_run(make(dataset), tmp_path / "alone").result.validation
    )


def stopping_at(step):
    def progress(what, done, total):
        if done == step:
            raise KeyboardInterrupt

    return progress
