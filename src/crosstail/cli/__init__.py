"""The command line: one file per verb."""

import sys

import typer
from rich.console import Console

from crosstail.cli import demo, fit, graph, list_

app = typer.Typer(
    help="Classifiers for data from several domains, each with its own long tail of classes.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("fit")(fit.fit)
app.command("graph")(graph.graph)
app.command("list")(list_.list_)


def main() -> None:
    """Run the command line: exit code 0 on success, 1 on a failed job, 2 on wrong input."""
    problems = Console(stderr=True)
    try:
        app()
    except (ValueError, FileNotFoundError) as error:
        problems.print("error:", style="bold red", end=" ")
        problems.print(str(error), markup=False, highlight=False)
        sys.exit(2)
    except OSError as error:
        problems.print("error:", style="bold red", end=" ")
        problems.print(f"{error.strerror}: {error.filename or ''}".rstrip(": "), markup=False, highlight=False)
        sys.exit(1)
    except KeyboardInterrupt:
        problems.print("stopped; the same command goes on from the last checkpoint", markup=False)
        sys.exit(1)
