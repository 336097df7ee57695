"""The JSON files of runs and sweeps, and the TOML plan of a sweep: any value may be of another type, size or shape."""

import json
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz._case import Case
from tests.fuzz._good import COMMANDS, SHORT

OF_RUN = ("spec.json", "data.json", "result.json", "calibration.json", "records.jsonl", "audit.json")
OF_SWEEP = ("plans/*.json", "data.json", "index.jsonl", "runs/*/result.json", "runs/*/spec.json")
OF_SWEEP += ("selected.json",)

# Twice where the command is quick.
ON_RUN = (
    *2 * ("predict {run} vectors.npz --json", "predict {run} vectors.npz --coverage 0.9 --prior estimate --site lab"),
    *2 * ("evaluate {run} vectors.npz --split test --json", "audit vectors.npz --run {run}"),
    *2 * ("compare {run} run-c --json", "compare run-c {run} --json", "graph {run} --json --out g.csv"),
    *("graph {run} --out g.html", "report {run} run-c --page-only", "compare {run} run-c --out c.html"),
    *("{fit}", "export {run} --out m.pt2 --format torch"),
)
ON_SWEEP = (
    *2 * ("status sweep-a --json", "select sweep-a --json", "status sweep-a", "select sweep-a"),
    *("report sweep-a --page-only", COMMANDS["sweep-a"]),
    f"fit vectors.npz --algorithm erm {SHORT} --hparams sweep-a/selected.json --out chosen",
)

SCALARS = (
    *(None, True, False, 0, 1, -1, 3, 2**31, 2**63, 10**30, -(10**30), 0.5, -0.5, 1e308, -1e308, float("nan")),
    *(float("inf"), "", "x", "1", "cat", "../x", "\x00", "🙂" * 300, [], {}, [[]], [None], {"x": 1}, [1, "2"], [[0]]),
)


def case(random: Random, good: Path) -> Case:
    """A file with one mutation, and a command that reads it."""
    if random.random() < 0.1:
        return _plan(random)
    if random.random() < 0.6:
        run, name = random.choice(("run-a", "run-b")), random.choice((*OF_RUN, "result.json", "records.jsonl"))
        command, file = random.choice(ON_RUN).format(run=run, fit=COMMANDS[run]), f"{run}/{name}"
        names: tuple[str, ...] = (name, run)
    else:
        found = sorted(path.relative_to(good) for path in (good / "sweep-a").glob(random.choice(OF_SWEEP)))
        file = str(random.choice(found))
        command, names = random.choice(ON_SWEEP), ("sweep-a",)
        if "runs/" in file and random.random() < 0.2:
            command = f"predict {Path(file).parent} vectors.npz"
    content, how = mutated((good / file).read_bytes(), random)
    return Case(f"{file}: {how}", command, names, lambda folder: (folder / file).write_bytes(content))


def mutated(content: bytes, random: Random) -> tuple[bytes, str]:
    """A JSON file, or one with a line of JSON each, with one mutation; and what it is."""
    if random.random() < 0.12:
        return _damaged(content, random)
    lines = [content] if content.startswith((b"{\n", b"[\n")) else content.splitlines(keepends=True)
    number = random.randrange(len(lines))
    value = json.loads(lines[number])
    value, how = _changed(value, random)
    lines[number] = json.dumps(value).encode("utf-8", "surrogatepass") + b"\n"
    return b"".join(lines), f"line {number + 1}, {how}" if len(lines) > 1 else how


def _damaged(content: bytes, random: Random) -> tuple[bytes, str]:
    end = random.randrange(len(content) + 1)
    ways = {
        "cut short": content[:end],
        "empty": b"",
        "not UTF-8": content[:end] + b"\xff\xfe" + content[end:],
        "UTF-16": content.decode().encode("utf-16"),
        "with a BOM": b"\xef\xbb\xbf" + content,
        "followed by rubbish": content + b"]]",
        "nested 100,000 deep": b"[" * 100_000,
        "null": b"null",
        "a list": b"[" + content.strip().replace(b"\n", b"") + b"]"
        if content.startswith((b"{\n", b"[\n"))
        else b"[[]]\n",
        "a word": b'"x"\n',
        "zeros": bytes(len(content)),
    }
    how = random.choice(sorted(ways))
    return ways[how], how


def _changed(value: Any, random: Random, path: str = "$") -> tuple[Any, str]:
    """The value with one of its parts changed; deeper parts are less likely."""
    if isinstance(value, dict | list) and value and random.random() < 0.75:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = random.choice(keys)
        inside, how = _changed(value[key], random, f"{path}.{key}")
        if how.endswith("missing"):
            if isinstance(value, dict):
                return {k: v for k, v in value.items() if k != key}, how
            return value[:key] + value[key + 1 :], how
        if isinstance(value, dict):
            return {**value, key: inside}, how
        return [*value[:key], inside, *value[key + 1 :]], how
    return _other(value, random, path)


def _other(value: Any, random: Random, path: str) -> tuple[Any, str]:
    """Another value in the place of one: of the same type half of the time, so that it passes a check of types."""
    if random.random() < 0.1:
        return value, f"{path} missing"
    if random.random() < 0.5:
        if isinstance(value, dict):
            return random.choice(
                (
                    ({**value, "extra": 1}, f"{path} with another key"),
                    (list(value.values()), f"{path} as a list"),
                    (dict(zip([*list(value)[1:], "x"], value.values(), strict=True)) if value else {}, f"{path} moved"),
                )
            )
        if isinstance(value, list):
            return random.choice(
                (
                    ([*value, *value], f"{path} twice as long"),
                    ({str(i): v for i, v in enumerate(value)}, f"{path} as a dictionary"),
                    (value[:-1], f"{path} one shorter"),
                    (value[::-1], f"{path} reversed"),
                    ([value], f"{path} in a list"),
                )
            )
        if isinstance(value, int | float) and not isinstance(value, bool):
            other = random.choice((-value, value + 1, value * 1000, value - 1, 10**9, 10**6))
            return other, f"{path} = {other}"
        if isinstance(value, str):
            other = random.choice(("", value[:-1], value * 2, value.upper(), "erm", "cat", "\ud800"))
            return other, f"{path} = {other[:20]!r}"
    other = random.choice(SCALARS)
    return other, f"{path} = {str(other)[:20]!r}"


def _plan(random: Random) -> Case:
    """A TOML plan with a value that no option takes, or damaged."""
    options: dict[str, Any] = {"dataset": "vectors.npz", "algorithm": ["erm"], "trials": 1, "seeds": 1, "steps": 4}
    options |= {"launcher": "inline", "out": "sweep-b", "width": 8, "evaluations": 2, "batch_size": 4}
    key = random.choice([*options, "hparams", "column", "labels", "extra", "dry_run", "fold", "time_limit", "weights"])
    literal = random.choice(
        (
            "-1",
            "0",
            "1e400",
            "nan",
            "''",
            "'x'",
            "[]",
            "{}",
            "[[]]",
            "[1, 'x']",
            "{x = 1}",
            "{x = [1]}",
            "true",
            "1979-05-27",
        )
    )
    lines = [f"{name} = {json.dumps(value)}" for name, value in options.items() if name != key]
    content = "\n".join([*lines, f"{key} = {literal}"]).encode()
    how = f"{key} = {literal}"
    if random.random() < 0.2:
        content, how = _damaged(content, random)
    return Case(
        f"plan.toml: {how}",
        "sweep --plan plan.toml --dry-run",
        ("plan.toml", key, key.replace("_", "-"), literal.strip("'"), literal.capitalize(), "'inf'"),  # the last: 1e400
        lambda folder: (folder / "plan.toml").write_bytes(content),
    )
