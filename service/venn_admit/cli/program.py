"""The command line: each verb is a flow. Imports are late, so that a command imports what it needs and no more."""

import os
import sys
import traceback
from collections import UserDict
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from venn_admit import __version__
from venn_admit.cli.output import shown_lines, warn
from venn_admit.cli.verbs import VERBS, VerbGroup
from venn_admit.errors import VennAdmitError
from venn_admit.runtime.interruption import Terminated, exit_code


class _Helped:
    """Help that shows arguments as they are typed, NAME and [FILE], and no type beside flags, which take no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc] # beside a command of Typer's
        for one in parameters:
            if one.param_type_name == "argument":
                one.metavar = one.metavar or one.name.upper()
            elif one.is_flag:
                one.metavar = ""
        return parameters

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]  # type: ignore[misc] # as above


class _Command(_Helped, TyperCommand):
    """A verb."""


class _Group(_Helped, TyperGroup):
    """Verbs that share a first word."""


class _Verbs(UserDict[str, Any]):
    """The verbs of a group, each of which is imported and built when it is looked up."""

    def __init__(self, verbs: Mapping[str, str | VerbGroup], panels: Mapping[str, str]) -> None:
        super().__init__(verbs)
        self._panels = panels

    def __getitem__(self, name: str) -> Any:
        found = self.data[name]
        if isinstance(found, VerbGroup):
            made = _Group(name=name, help=found.help, no_args_is_help=True, rich_help_panel=self._panels.get(name))
            made.commands = _Verbs(found.verbs, {})
            self.data[name] = made
        elif isinstance(found, str):
            self.data[name] = _built(name, found, self._panels.get(name))
        return self.data[name]


def _built(name: str, where: str, panel: str | None) -> Any:
    module, function = where.split(":")
    made = typer.Typer(add_completion=False)
    made.command(name, cls=_Command, rich_help_panel=panel)(
        getattr(import_module(f"venn_admit.cli.verbs.{module}"), function)
    )
    return typer.main.get_command(made)


class _Program(_Group):
    """All verbs. One that is interrupted ends in one line, with the exit code that the signal stands for."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        verbs = {name: verb for of_panel in VERBS.values() for name, verb in of_panel.items()}
        self.commands = _Verbs(verbs, {name: panel for panel, of_panel in VERBS.items() for name in of_panel})

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            said = "terminated" if isinstance(error, Terminated) else "interrupted"
            typer.secho(said, err=True, fg=typer.colors.RED)
            raise typer.Exit(exit_code(error)) from error


# The names that scripts were promised; help shows those of today.
_PROMISED_NAMES = {"no-weights": "unweighted", "q-equals-k": "require-full-match"}

app = typer.Typer(
    name="venn-admit",
    cls=_Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "token_normalize_func": lambda name: _PROMISED_NAMES.get(name, name),
    },
    help="May I act on this prediction? Admit or reject: certified, at least 1 - alpha of the admitted of every class "
    "are right, at confidence .95 (after ADMIT and Venn-ADMIT, Schmaltz & Rasooly 2022).",
)


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


def run(arguments: list[str] | None) -> None:
    """Run the verb that the arguments name, or the process's own, and exit as `main` says."""
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


def _show_traceback() -> None:
    if _Debug.on:
        typer.echo(shown_lines(_masked(traceback.format_exc())), err=True)


def _masked(text: str) -> str:
    from venn_admit.runtime.settings import secret_addresses
    from venn_admit.secrets import mask

    return mask(text, *secret_addresses(os.environ))
