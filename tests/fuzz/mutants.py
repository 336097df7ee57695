"""Change one operator, comparison or constant of the sources at a time, and see whether the tests of its folder notice.

python -m tests.fuzz.mutants --number 20
"""

import argparse
import ast
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
FOLDERS = {
    "losses": "tests/losses",
    "metrics": "tests/metrics",
    "transfer": "tests/transfer",
    "algorithms": "tests/algorithms",
    "data/splits": "tests/data/splits",
    "sweep/select.py": "tests/sweep/test_select.py",
}
"""Sources, and the tests that should notice."""
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
}


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """The nodes that can be changed, and the name of the field; not in annotations, defaults of options or messages."""
    for node in ast.walk(tree):
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


def candidates() -> list[tuple[str, Path, int]]:
    """Folder, file and number of every place."""
    found = []
    for folder in FOLDERS:
        source = ROOT / "src/crosstail" / folder
        for file in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
            number = len(list(places(ast.parse(file.read_text(encoding="utf-8")))))
            found += [(folder, file, i) for i in range(number)]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=120, help="mutants, drawn at random (default: 120)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chosen = Random(arguments.seed).sample(candidates(), arguments.number)
    killed = 0
    with tempfile.TemporaryDirectory(prefix="crosstail-mutants-") as folder:
        for name in ("src", "tests", "pyproject.toml"):
            copied = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copied(ROOT / name, Path(folder) / name)
        for tests in {FOLDERS[part] for part, _, _ in chosen}:
            assert not _fails(tests, Path(folder)), f"{tests} fail without any change"
        for part, file, number in chosen:
            target = Path(folder) / file.relative_to(ROOT)
            tree = ast.parse(file.read_text(encoding="utf-8"))
            node, field = list(places(tree))[number]
            line = node.lineno  # type: ignore[attr-defined]
            what = mutate(node, field)
            target.write_text(ast.unparse(tree), encoding="utf-8")
            noticed = _fails(FOLDERS[part], Path(folder))
            shutil.copy(file, target)
            killed += noticed
            if not noticed:
                print(f"survived: {file.relative_to(ROOT)}:{line}: {what}", flush=True)
    print(f"{killed} of {len(chosen)} mutants killed")
    return 0


def _fails(tests: str, folder: Path) -> bool:
    """Whether the tests notice; so does one that takes ten minutes."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", tests]
    path = {"PYTHONPATH": f"{folder / 'src'}:{folder}", "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    try:
        ended = subprocess.run(command, cwd=folder, env=path, capture_output=True, timeout=600, check=False)
    except subprocess.TimeoutExpired:
        return True
    return ended.returncode != 0


if __name__ == "__main__":
    sys.exit(main())
