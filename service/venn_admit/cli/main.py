"""The command line: each verb is a flow. Imports are late, so that `--help` costs little more than typer."""

import os
import sys
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from venn_admit import __version__
from venn_admit.cli.output import shown_lines, warn
from venn_admit.cli.verbs.calibrating import calibrate, classifier, generation, index, recalibrate
from venn_admit.cli.verbs.deciding import decide, monitor, report, scoring, what_if
from venn_admit.cli.verbs.extracting import extract
from venn_admit.cli.verbs.running import catalogue, demo, jobs, keys, operation, removal, serve, start
from venn_admit.errors import VennAdmitError
from venn_admit.runtime import interruption


class _Verbs(TyperGroup):
    """The verbs. One that is interrupted ends in one line, with the exit code that the signal stands for."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            said = "terminated" if isinstance(error, interruption.Terminated) else "interrupted"
            typer.secho(said, err=True, fg=typer.colors.RED)
            raise typer.Exit(interruption.exit_code(error)) from error


app = typer.Typer(
    name="venn-admit",
    cls=_Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="May I act on this prediction? Admit or reject, so that the admitted ones of every class are right at "
    "least 1 - alpha of the time (ADMIT and Venn-ADMIT, Schmaltz & Rasooly 2022).",
)
classifier.register(app)
extract.register(app)
calibrate.register(app)
generation.register(app)
start.register(app)
catalogue.register(app)
recalibrate.register(app)
scoring.register(app)
decide.register(app)
index.register(app)
report.register(app)
what_if.register(app)
monitor.register(app)
demo.register(app)
jobs.register(app)
serve.register(app)
keys.register(app)
removal.register(app)
operation.register(app)


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
    if any(name.upper().startswith("VENN_ADMIT_") for name in os.environ):  # pydantic takes a third of the start
        from venn_admit.runtime.settings import unknown_variables

        for line in unknown_variables(os.environ):
            warn(line)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Exit codes: 0 done; 2 bad input; 3 not found; 4 not ready; 5 database; 6 job; 7 alarm.

    Args:
        arguments: Those after the program's name; None: those of this process, whose signals are then handled too.
    """
    if arguments is None:
        interruption.raise_on_request_to_end()
    # NumPy multiplies small tiles here: on shared cores, each further thread would mostly wait for the others.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        app(args=arguments, prog_name=app.info.name)
    except VennAdmitError as error:
        from venn_admit.cli.advice import advised

        _show_traceback()
        typer.secho(f"error: {shown_lines(advised(error))}", err=True, fg=typer.colors.RED)
        sys.exit(error.exit_code)
    except Exception as error:  # a fault of the program
        _show_traceback()
        said = shown_lines(_masked(f"{type(error).__name__}: {error}"))
        typer.secho(f"error: {said}; this is a fault of the program: --debug before the verb shows where", err=True)
        sys.exit(VennAdmitError.exit_code)
    finally:
        interruption.ignore_further_requests()


def _show_traceback() -> None:
    if _Debug.on:
        typer.echo(shown_lines(_masked(traceback.format_exc())), err=True)


def _masked(text: str) -> str:
    from venn_admit.runtime.settings import secret_addresses
    from venn_admit.secrets import mask

    return mask(text, *secret_addresses(os.environ))
