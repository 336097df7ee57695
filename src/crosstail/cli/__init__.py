"""The command line: one file per verb."""

import sys

import typer
from rich.console import Console
from rich.text import Text

from crosstail.cli import audit, data, demo, evaluate, export, fit, graph, list_, predict, select, status, sweep

app = typer.Typer(
    help="Classifiers for data from several domains, each with its own long tail of classes.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("audit")(audit.audit)
app.command("data")(data.data)
app.command("fit")(fit.fit)
app.command("evaluate")(evaluate.evaluate)
app.command("predict")(predict.predict)
app.command("graph")(graph.graph)
app.command("export")(export.export)
app.command("sweep")(sweep.sweep)
app.command("status")(status.status)
app.command("select")(select.select)
app.command("list")(list_.list_)


def main() -> None:
    """Run the command line: exit code 0 on success, 1 on a failed job, 2 on wrong input."""
    try:
        app()
    except (ValueError, FileNotFoundError) as error:
        _say("error: ", str(error))
        sys.exit(2)
    except OSError as error:
        _say("error: ", f"{error.strerror or error}: {error.filename or ''}".rstrip(": "))
        sys.exit(1)
    except SystemExit as ended:
        if ended.code != 130:  # what typer makes of Ctrl-C
            raise
        _say("stopped: ", "the same command goes on from the last checkpoint")
        sys.exit(1)


def _say(what: str, text: str) -> None:
    Console(stderr=True).print(Text.assemble((what, "bold red"), text))
