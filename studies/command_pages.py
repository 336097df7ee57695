"""Write the pages of the commands and of RunSpec's fields from their help: `python -m studies.command_pages`."""

import re
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from crosstail import cli
from crosstail.reports.run.command import NEGATIVE, SPELLED
from crosstail.training.spec import RunSpec, identifying_fields

DOCS = Path(__file__).parents[1] / "docs"
WRITTEN = "<!-- written by studies/command_pages.py -->"


def pages() -> dict[Path, str]:
    """The text of every page."""
    cli.app.resolved_commands()
    help_text = cli.app.generate_docs()
    found = dict(re.findall(r"^## crosstail (\w+)\n(.*?)(?=^## crosstail|\Z)", help_text, re.MULTILINE | re.DOTALL))
    pages = {verb: _page(verb, found[verb]) for verb in cli.VERBS}
    of_a_run = {line for line in pages["fit"].splitlines() if line.startswith("* `--")}
    short = {verb: page if verb == "fit" else _without(page, of_a_run) for verb, page in pages.items()}
    texts = {DOCS / "commands" / f"{verb}.md": page for verb, page in short.items()}
    return texts | {DOCS / "commands/index.md": _index(found), DOCS / "reference/run-spec.md": _fields()}


def _page(verb: str, text: str) -> str:
    text = re.sub(r"\n +(?=\S)", " ", text).replace("```console", "```text")
    return f"# crosstail {verb}\n\n{WRITTEN}\n\n{text.strip()}\n"


def _without(page: str, of_a_run: set[str]) -> str:
    """A page on which the options that `fit` has too are only named."""
    lines = page.splitlines()
    names = [line.split("`")[1].split()[0].rstrip(",") for line in lines if line in of_a_run]
    if len(names) < 3:
        return page
    kept = [line for line in lines if line not in of_a_run]
    return "\n".join([*kept, "* As in [`fit`](fit.md): " + ", ".join(f"`{name}`" for name in names) + ".", ""])


def _index(found: dict[str, str]) -> str:
    purposes = {verb: text.partition("```\n\n")[2].partition("\n\n")[0] for verb, text in found.items()}
    rows = [f"| [`{verb}`]({verb}.md) | {purposes[verb]} |" for verb in cli.VERBS]
    intro = (
        "The usual path is [`audit`](audit.md), [`race`](race.md), [`fit`](fit.md), [`evaluate`](evaluate.md), "
        "[`predict`](predict.md): each ends with the next command, ready to paste. `--help` shows the same text as "
        "these pages; the exit code is 0 on success, 1 on a failed job and 2 on wrong input."
    )
    return "\n".join(["# Commands", "", WRITTEN, "", intro, "", "| command | what it does |", "|---|---|", *rows, ""])


def _fields() -> str:
    intro = (
        "The fields of [`RunSpec`](training.md#crosstail.training.RunSpec), each an option of "
        "[`crosstail fit`](../commands/fit.md), where its meaning is, a keyword in Python and a key in the `--plan` of "
        "a sweep. Two runs whose identifying fields are equal are the same run. A field that is `None` but needs a "
        "value takes what suits the data."
    )
    header = ["| field | option | default | identifies |", "|---|---|---|---|"]
    identifying = identifying_fields(RunSpec)
    rows = []
    for field in fields(RunSpec):
        identifies = "yes" if field.name in identifying else "no"
        rows.append(f"| `{field.name}` | {_option(field)} | {_default(field)} | {identifies} |")
    return "\n".join(["# Fields of a run", "", WRITTEN, "", intro, "", *header, *rows, ""])


def _option(field: "Field[Any]") -> str:
    if field.name == "dataset":
        return "`DATA`"
    names = [SPELLED.get(field.name, f"--{field.name.replace('_', '-')}"), NEGATIVE.get(field.name)]
    return ", ".join(f"`{name}`" for name in names if name)


def _default(field: "Field[Any]") -> str:
    if field.default is MISSING:
        return "empty" if field.default_factory is not MISSING else "required"
    return f"`{field.default}`"


if __name__ == "__main__":
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
