"""Change one operator, comparison or constant of the sources at a time, and see whether the tests of its folder notice.

The outcomes are kept in docs/results/mutants.json: run it again to go on after a stop, or to try the survivors with
new tests. It ends with the survivors.

python -m tests.fuzz.mutants --number 20
"""

import argparse
import ast
import hashlib
import importlib
import os
import re
import resource
import shutil
import sys
import tempfile
import tomllib
import traceback
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "docs/results/mutants.json"
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
"""Survivors that change no result, each with the reason."""
FOLDERS = {
    "losses": "tests/losses",
    "metrics": "tests/metrics",
    "transfer": "tests/transfer",
    "algorithms": "tests/algorithms",
    "data/splits": "tests/data/splits",
    "sweeps/select.py": "tests/sweeps/test_select.py",
}
"""Sources, and the tests that should notice."""
LIBRARIES = (
    "torch",
    "torchvision",
    "timm",
    "lightning_fabric",
    "sklearn.manifold",
    "pandas",
    "scipy.stats",
    "hypothesis",
)
"""What the tests import, imported once."""
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
}


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """The nodes that can be changed, and the name of the field; not in the declarations of hyperparameters."""
    declared = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "hp"]
    left_out = {inner for call in declared for inner in ast.walk(call)}
    for node in ast.walk(tree):
        if node in left_out:
            continue
        if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in OPERATORS:
            yield node, "op"
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
            yield node, "ops"
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield node, "value"


def mutate(node: ast.AST, field: str) -> str:
    """Change a node in place; what was changed."""
    before = ast.unparse(node)
    if field == "value":
        node.value = node.value + 1  # type: ignore[attr-defined]
    elif field == "ops":
        node.ops = [OPERATORS[type(node.ops[0])](), *node.ops[1:]]  # type: ignore[attr-defined]
    else:
        node.op = OPERATORS[type(node.op)]()  # type: ignore[attr-defined]
    return f"{before} → {ast.unparse(node)}"


class Mutant(msgspec.Struct, frozen=True):
    """A change of one place, and what the tests said."""

    file: str
    line: int
    number: int
    """Among the places of its file."""
    change: str
    killed: bool | None = None

    @property
    def name(self) -> str:
        """The same after a change elsewhere in its file, up to other places with the same text."""
        return f"{self.file}: {self.change}"

    @property
    def part(self) -> str:
        """The key of FOLDERS."""
        return next(part for part in FOLDERS if self.file.startswith(f"src/crosstail/{part}"))


def drawn(most: int, seed: int) -> list[Mutant]:
    """The mutants whose names have the smallest hashes: they stay the same when other sources change."""
    found: dict[str, Mutant] = {}
    for part in FOLDERS:
        source = ROOT / "src/crosstail" / part
        for file in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
            for number, (node, field) in enumerate(places(ast.parse(file.read_text(encoding="utf-8")))):
                line, change = node.lineno, mutate(deepcopy(node), field)  # type: ignore[attr-defined]
                mutant = Mutant(str(file.relative_to(ROOT)), line, number, change)
                found.setdefault(mutant.name, mutant)
    return sorted(found.values(), key=lambda m: hashlib.sha256(f"{seed} {m.name}".encode()).digest())[:most]


def mutated(file: Path, number: int) -> str:
    """The content of a file with one place changed."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    mutate(*list(places(tree))[number])
    return ast.unparse(tree)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=120, help="mutants, drawn at random (default: 120)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    known = (
        {m.name: m for m in msgspec.json.decode(RECORDS.read_bytes(), type=list[Mutant])} if RECORDS.exists() else {}
    )
    mutants = drawn(arguments.number, arguments.seed)
    judged = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))
    kept = {m.name for m in mutants if m.name in known and (known[m.name].killed or m.name in judged)}
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.modules["torchmetrics"] = None  # type: ignore[assignment]  # as in conftest.py
    for library in LIBRARIES:
        importlib.import_module(library)
    with tempfile.TemporaryDirectory(prefix="crosstail-mutants-") as folder:
        for name in ("src", "tests", "docs", "studies", "pyproject.toml"):
            copied = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copied(ROOT / name, Path(folder) / name)
        for mutant in mutants:
            if mutant.name not in kept:
                known[mutant.name] = msgspec.structs.replace(mutant, killed=(killed := _noticed(mutant, Path(folder))))
                keep([known[m.name] for m in mutants if m.name in known])
                print("killed  " if killed else "survived", f"{mutant.file}:{mutant.line}: {mutant.change}", flush=True)
    keep([known[m.name] for m in mutants])
    print(summary([known[m.name] for m in mutants]))
    return 0


def keep(mutants: list[Mutant]) -> None:
    """Write the records."""
    RECORDS.write_bytes(msgspec.json.format(msgspec.json.encode(mutants)) + b"\n")


def summary(mutants: list[Mutant]) -> str:
    """How many are killed in each part, and what is known of the survivors."""
    reasons = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))
    lines = []
    for part in FOLDERS:
        rows = [m for m in mutants if m.part == part]
        lines.append(f"{part}: {sum(bool(m.killed) for m in rows)} of {len(rows)} killed")
    survivors = [m for m in mutants if not m.killed]
    lines += [f"{m.file}:{m.line}: {m.change}: {reasons.get(m.name, 'not killed')}" for m in survivors]
    return "\n".join(lines)


def _noticed(mutant: Mutant, folder: Path) -> bool:
    """Whether a test fails because of a mutant: one that fails without it too does not count."""
    target, tests = folder / mutant.file, FOLDERS[mutant.part]
    before, changed = target.read_text(encoding="utf-8"), mutated(target, mutant.number)
    for which in _in_order(folder / tests, target.stem):
        target.write_text(changed, encoding="utf-8")
        try:
            failed = _failure(["-k", which, tests], folder)
        finally:
            target.write_text(before, encoding="utf-8")
        if failed:
            again = _failure(failed, folder)
            assert not again, f"{' '.join(again)} fails without any change"
            return True
    return False


def _in_order(tests: Path, module: str) -> tuple[str, str]:
    """Expressions that select the tests whose name or file mentions a module, and then the others."""
    files = {file for file in tests.glob("**/test_*.py") if _mentions(file, module)}
    words = " or ".join(sorted({module, *(file.stem for file in files)}))
    return words, f"not ({words})"


def _mentions(test: Path, module: str) -> bool:
    return re.search(rf"\b{module}\b", test.read_text(encoding="utf-8")) is not None


def _failure(selected: list[str], folder: Path) -> list[str]:
    """The arguments that select the first test that fails, or the same ones for a hang; none if all pass.

    A hang is ten minutes of processor time, whatever else the machine does.
    """
    said = folder / "said.txt"
    if not (process := os.fork()):
        quiet = "ignore::pytest.PytestAssertRewriteWarning"  # of what was imported before
        _test(["-q", "-x", "-p", "no:cacheprovider", "-W", quiet, *selected], folder, said)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if code in (0, 5):  # 5: there are no such tests
        return []
    found = re.search(r"^(?:FAILED|ERROR) (\S+\.py(?:::.*?)?)(?: - .*)?$", said.read_text(), re.MULTILINE)
    return [found[1]] if found else selected


def _test(words: list[str], folder: Path, said: Path) -> NoReturn:
    """Run tests of a copy in this process, which has imported their libraries but nothing of the project, and end."""
    code = 3
    try:
        os.chdir(folder)
        output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1), os.dup2(output, 2)
        for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
            del sys.modules[name]
        elsewhere = [path for path in sys.path if path and ROOT not in (Path(path), Path(path).parent)]
        sys.path[:] = [str(folder / "src"), str(folder), *elsewhere]
        os.environ.update(PYTHONPATH=f"{folder / 'src'}:{folder}", CI="1")  # with CI, hypothesis has no time limits
        resource.setrlimit(resource.RLIMIT_CPU, (600, 600))
        code = int(pytest.main(words))
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush(), sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
