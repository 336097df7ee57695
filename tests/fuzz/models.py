"""Models: weights that are damaged or do not fit, devices that are not there, code that is broken."""

import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import torch
from safetensors.torch import save_file
from tests.fuzz._case import Case
from tests.fuzz._good import COMMANDS, SHORT
from tests.fuzz.arrays import damaged

ON_RUN = {
    "model.pt": ("predict run-b vectors.npz", "evaluate run-b vectors.npz --split test", "graph run-b --out g.csv"),
    "predictions.pt": ("compare run-b run-c", "report run-b --page-only", COMMANDS["run-b"]),
    "known.pt": ("evaluate run-b vectors.npz", COMMANDS["run-b"]),
}


def case(random: Random, good: Path) -> Case:
    """A file of tensors, an option or an algorithm with one flaw."""
    return random.choices((_tensors, _weights, _option, _own_code), (6, 2, 2, 2))[0](random, good)


def _tensors(random: Random, good: Path) -> Case:
    """The tensors of a run."""
    name = random.choice(list(ON_RUN))
    file, command = f"run-b/{name}", random.choice(ON_RUN[name])
    names = (name, "run-b", "vectors.npz are new")  # the last: what is known of the data may be a copy
    if random.random() < 0.4:
        how, content = damaged((good / file).read_bytes(), random)
        return Case(f"{file}: {how}", command, names, lambda folder: (folder / file).write_bytes(content))
    state = torch.load(good / file, weights_only=True)
    how, changed = changed_state(state, random)
    return Case(f"{file}: {how}", command, names, lambda folder: torch.save(changed, folder / file))


def changed_state(state: dict[str, Any], random: Random) -> tuple[str, Any]:
    """A state in which one entry is another, or that is no state at all."""
    key = random.choice(list(state))
    value = state[key]
    ways: dict[str, Callable[[], Any]] = {
        "missing": lambda: {k: v for k, v in state.items() if k != key},
        "of another name": lambda: {("x" if k == key else k): v for k, v in state.items()},
        "one more": lambda: {**state, "x": torch.zeros(1)},
        "longer": lambda: {**state, key: torch.cat([value, value]) if value.ndim else value},
        "shorter": lambda: {**state, key: value[:-1] if value.ndim else value},
        "one axis more": lambda: {**state, key: value[None]},
        "empty": lambda: {**state, key: torch.zeros(0)},
        "a number": lambda: {**state, key: 1.5},
        "a list": lambda: {**state, key: [1, 2]},
        "None": lambda: {**state, key: None},
        "NaN": lambda: {**state, key: torch.full(value.shape, float("nan"))},
        "huge": lambda: {**state, key: torch.full(value.shape, 1e30)},
        "negative": lambda: {**state, key: torch.full(value.shape, -1, dtype=torch.int64)},
        "integers": lambda: {**state, key: value.long()},
        "complex": lambda: {**state, key: value.to(torch.complex64)},
        "sparse": lambda: {**state, key: value.to_sparse() if value.ndim else value},
        "not a dictionary": lambda: list(state.values()),
        "an empty dictionary": lambda: {},
        "a tensor": lambda: torch.zeros(3),
        "numbers as keys": lambda: dict(enumerate(state.values())),
    }
    how = random.choice(sorted(ways))
    return f"{key}: {how}", ways[how]()


def _weights(random: Random, good: Path) -> Case:
    """A file given as --weights."""
    name = random.choice(("w.safetensors", "w.pth", "w.bin", "folder.pth", "none.pth"))
    tensors = {"conv_stem.weight": torch.zeros(32, 3, 3, 3), "bn1.weight": torch.zeros(random.choice((1, 32)))}
    how, state = changed_state(tensors, random)

    def spoil(folder: Path) -> None:
        if name == "folder.pth":
            (folder / name).mkdir()
        elif name == "w.safetensors":
            save_file({str(k): v for k, v in tensors.items()}, folder / name)
        elif name != "none.pth":
            torch.save(state, folder / name)
        if name.startswith("w.") and random.random() < 0.4:
            (folder / name).write_bytes(damaged((folder / name).read_bytes(), random)[1])

    command = random.choice(
        (
            f"fit photos --weights {name} --algorithm erm --backbone efficientnet_lite0 {SHORT} --out run-n",
            f"embed photos --weights {name} --out e.npz",
            f"predict run-p photos --weights {name}",
        )
    )
    return Case(f"{name}: {how}", command, (name, "--weights"), spoil)


def _option(random: Random, good: Path) -> Case:
    """A device, a number or a name that is not there."""
    fit = f"fit vectors.npz --algorithm erm {SHORT} --out run-n"
    option = random.choice(
        (
            *("--accelerator cuda", "--accelerator mps", "--accelerator tpu", "--accelerator cuda --devices 2"),
            *("--devices 0", "--devices -1", "--nodes 0", "--precision 16", "--steps 0", "--steps -5"),
            *("--batch-size 0", "--evaluations 0", "--width 0", "--backbone none", "--backbone resnet50"),
            *("--backbone small_cnn", "--resolution 0", "--folds 1", "--folds 1000", "--fold 3", "--unseen none"),
            *("--protocol dg --unseen none", "--labels step:0", "--labels x", "--labels forward:-1", "--group-by '('"),
            *("--hparam lr=nan", "--hparam lr=-1", "--hparam x=1", "--hparam lr=x", "--hparam lr", "--hparams none"),
            *("--second-stage none", "--views -1", "--head none", "--log none", "--seed -1", "--data-seed -1"),
            *("--seed 99999999999999999999", "--column x=none", "--column none", "--stop-at 0", "--accumulate 0"),
        )
    )
    words = tuple(word.replace("-", " ") for word in re.split("[ :=]|--", option) if word)
    plain = tuple(word.replace(" ", "_") for word in words)
    hyphenated = tuple(word.replace(" ", "-") for word in words)
    return Case(option, f"{fit} {option}", (*words, *plain, *hyphenated), lambda _: None)


def _own_code(random: Random, good: Path) -> Case:
    """An algorithm in a file of the user's."""
    lines = random.choice(
        (
            "",
            "def f(:",
            "import nothing_of_that_name",
            "x = 1",
            "raise RuntimeError('no')",
            "\x00",
            "class Own: pass",
        )
    )
    return Case(
        f"own.py: {lines!r}",
        f"fit vectors.npz --algorithm ./own.py {SHORT} --out run-n",
        ("own.py",),
        lambda folder: (folder / "own.py").write_text(lines),
    )
