"""Write the pages of the commands and of RunSpec's fields from their help: `python -m studies.command_pages`."""

import re
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from crosstail import cli
from crosstail.cli._run_options import HELP
from crosstail.report.run.command import NEGATIVE, SPELLED
from crosstail.training.spec import RunSpec, identifying_fields

DOCS = Path(__file__).parents[1] / "docs"
WRITTEN = "<!-- written by studies/command_pages.py -->"


def pages() -> dict[Path, str]:
    """The text of every page."""
    cli.app.resolved_commands()
    help_text = cli.app.generate_docs()
    found = dict(re.findall(r"^## crosstail (\w+)\n(.*?)(?=^## crosstail|\Z)", help_text, re.MULTILINE | re.DOTALL))
    texts = {DOCS / "commands" / f"{verb}.md": _page(verb, found[verb]) for verb in cli.VERBS}
    return texts | {DOCS / "commands/index.md": _index(found), DOCS / "reference/run-spec.md": _fields()}


def _page(verb: str, text: str) -> str:
    text = re.sub(r"\n +(?=\S)", " ", text).replace("```console", "```text")
    return f"# crosstail {verb}\n\n{WRITTEN}\n\n{text.strip()}\n"


def _index(found: dict[str, str]) -> str:
    purposes = {verb: text.partition("```\n\n")[2].partition("\n\n")[0] for verb, text in found.items()}
    rows = [f"| [`{verb}`]({verb}.md) | {purposes[verb]} |" for verb in cli.VERBS]
    intro = (
        "The usual path is [`audit`](audit.md), [`race`](race.md), [`fit`](fit.md), [`evaluate`](evaluate.md), "
        "[`predict`](predict.md): each prints the next command, ready to paste. `--help` shows the same text as these "
        "pages; the exit code is 0 on success, 1 on a failed job and 2 on wrong input."
    )
    return "\n".join(["# Commands", "", WRITTEN, "", intro, "", "| command | what it does |", "|---|---|", *rows, ""])


def _fields() -> str:
    intro = (
        "The fields of [`RunSpec`](training.md#crosstail.training.RunSpec), each an option of "
        "[`crosstail fit`](../commands/fit.md), a keyword in Python and a key in the `--plan` of a sweep. Two runs "
        "whose identifying fields are equal are the same run. A field that is `None` but needs a value takes what "
        "suits the data."
    )
    header = ["| field | option | default | identifies | meaning |", "|---|---|---|---|---|"]
    identifying = identifying_fields(RunSpec)
    rows = []
    for field in fields(RunSpec):
        meaning = " ".join((HELP[field.name] or "").split()).replace("|", "\\|")
        identifies = "yes" if field.name in identifying else "no"
        rows.append(f"| `{field.name}` | {_option(field)} | {_default(field)} | {identifies} | {meaning} |")
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
