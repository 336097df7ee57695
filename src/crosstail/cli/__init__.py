"""The command line: one file per verb."""

import sys

import typer
from rich.console import Console
from rich.text import Text

from crosstail.cli import (
    audit,
    data,
    demo,
    embed,
    evaluate,
    export,
    fit,
    graph,
    list_,
    predict,
    race,
    report,
    select,
    status,
    sweep,
)

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
app.command("embed")(embed.embed)
app.command("evaluate")(evaluate.evaluate)
app.command("predict")(predict.predict)
app.command("graph")(graph.graph)
app.command("export")(export.export)
app.command("sweep")(sweep.sweep)
app.command("race")(race.race)
app.command("status")(status.status)
app.command("select")(select.select)
app.command("report")(report.report)
app.command("list")(list_.list_)


def main() -> None:
    """Run the command line: exit code 0 on success, 1 on a failed job, 2 on wrong input."""
    try:
        app()
    except (ValueError, FileNotFoundError) as error:
        _say("error: ", str(error))
        sys.exit(2)
    except MemoryError as error:
        _say("error: ", str(error) or "out of memory")
        sys.exit(1)
    except OSError as error:
        _say("error: ", f"{error.strerror or error}: {error.filename or ''}".rstrip(": "))
        sys.exit(1)
    except RuntimeError as error:
        from crosstail.training.loop import Diverged  # here, as importing torch takes seconds

        if not isinstance(error, Diverged):
            raise
        _say("error: ", str(error))
        sys.exit(1)
    except SystemExit as ended:
        if ended.code != 130:  # what typer makes of Ctrl-C
            raise
        _say("stopped: ", "the same command goes on from the last checkpoint")
        sys.exit(1)


def _say(what: str, text: str) -> None:
    Console(stderr=True).print(Text.assemble((what, "bold red"), text))
