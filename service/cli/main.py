"""The command line: each verb is a flow. Imports are late, so that `--help` costs little more than typer."""

import os
import sys
import traceback
from typing import Annotated

import typer

from service import __version__
from service.cli import (
    catalogue_commands,
    classifier_commands,
    decide_command,
    index_command,
    job_commands,
    operation_commands,
    recalibration_command,
    report_command,
    scoring_commands,
)
from service.errors import VennAdmitError

app = typer.Typer(
    name="venn-admit",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="May I act on this prediction? Admit or reject, so that the admitted ones of every class are right at "
    "least 1 - alpha of the time (ADMIT and Venn-ADMIT, Schmaltz & Rasooly 2022).",
)
classifier_commands.register(app)
catalogue_commands.register(app)
recalibration_command.register(app)
scoring_commands.register(app)
decide_command.register(app)
index_command.register(app)
report_command.register(app)
job_commands.register(app)
operation_commands.register(app)


class _Debug:
    """Whether errors are shown with their traceback."""

    on = False


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"venn-admit {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show errors with their traceback.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of every verb."""
    _Debug.on = debug


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Exit codes: 0 done; 2 bad input; 3 not found; 4 not ready; 5 database; 6 job.

    arguments: those after the program's name; None: this process's.
    """
    # NumPy's products here are of small tiles: on cores that are shared, each thread would mostly wait for the others.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        app(args=arguments, prog_name=app.info.name)
    except VennAdmitError as error:
        if _Debug.on:
            traceback.print_exc()
        typer.secho(f"error: {error}", err=True, fg=typer.colors.RED)
        sys.exit(error.exit_code)
    except Exception as error:  # nobody foresaw it
        if _Debug.on:
            traceback.print_exc()
        said = f"{type(error).__name__}: {error}"
        typer.secho(f"error: {said}; a fault of this program's: --debug before the verb shows where", err=True)
        sys.exit(VennAdmitError.exit_code)
    except KeyboardInterrupt:
        typer.secho("interrupted", err=True, fg=typer.colors.RED)
        sys.exit(130)
