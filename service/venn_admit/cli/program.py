"""The command line: each verb is a flow. Imports are late, so that a command imports what it needs and no more."""

import os
import sys
import traceback
from collections import Counter, UserDict
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from inspect import getdoc
from io import TextIOWrapper
from types import SimpleNamespace
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup

from venn_admit import __version__
from venn_admit.cli.output import LARGEST_LIMIT, shown_lines, warn
from venn_admit.cli.verbs import VERBS, VerbGroup
from venn_admit.errors import VennAdmitError
from venn_admit.runtime.interruption import exit_code, outcome_text


class _UnlessGiven:
    """Converts what Typer would, except for texts and what is not given, for which Typer would import pydantic."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        is_text = param.type_descriptor.annotation is str and isinstance(value, str)
        if is_text or (param.nargs == 1 and not param.multiple and value in (None, param.default)):
            return value
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


_UNLESS_GIVEN = _UnlessGiven()


class _Helped:
    """Help that shows arguments as they are typed, NAME and [FILE], and no type beside flags, which take no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc] # beside a command of Typer's
        for one in parameters:
            if one.param_type_name == "argument":
                one.metavar = one.metavar or one.name.upper()
            elif one.is_flag:
                one.metavar = ""
            if getattr(one, "_runtime_param", self) is None:
                one._runtime_param = _UNLESS_GIVEN
            one.display_type = partial(_type_text, one)
            one._get_number_range_help_str = partial(_range_text, one)
        return parameters

    def make_parser(self, ctx: Any) -> Any:
        """Return a parser that refuses an option with a value that is given twice: only the last would count."""
        parser = super().make_parser(ctx)  # type: ignore[misc] # as above
        parse = parser.parse_args

        def parse_once(args: list[str]) -> Any:
            found = parse(args)
            options = [one for one in found[2] if one.param_type_name == "option" and not one.is_flag]
            for one, count in Counter(options).items():
                if count > 1 and not one.multiple:
                    raise typer.BadParameter(f"given {count} times; give it once, with commas between values", ctx, one)
            return found

        parser.parse_args = parse_once
        return parser

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = [one for one in self.get_params(ctx) if one.param_type_name == "argument"]
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc] # as above
        names = [one.metavar if one.required or "[" in one.metavar[:1] else f"[{one.metavar}]" for one in arguments]
        return [pieces[0], *names, *pieces[1 + len(names) :]]


def _type_text(parameter: Any, _ctx: Any = None) -> str:
    """The type of a value, of one of them if there may be several."""
    annotation = parameter.type_descriptor.annotation
    (one,) = get_args(annotation) or (annotation,)
    return f"<{one.__name__.lower()}>"


def _range_text(parameter: Any) -> str | None:
    """The bounds of a number; what the database cannot hold is none that anybody meets."""
    if parameter.min is None or parameter.max in {None, LARGEST_LIMIT}:
        return None if parameter.min is None else f"at least {parameter.min}"
    return f"{parameter.min} to {parameter.max}"


def _import_formatter() -> None:
    """Import what formats help without two modules that only Markdown and tracebacks need: a fifth of its time."""
    unused = {"rich.markdown": "Markdown", "rich.traceback": "Traceback"}
    stubs = {module: SimpleNamespace(**{name: None}) for module, name in unused.items() if module not in sys.modules}
    sys.modules.update(stubs)  # type: ignore[arg-type] # each for one import
    try:
        import_module("typer.rich_utils")
    finally:
        for module in stubs:
            del sys.modules[module]


class _Command(_Helped, TyperCommand):
    """A verb."""


class _Group(_Helped, TyperGroup):
    """Verbs that share a first word. Their help has what each does, for which none is built."""

    def list_commands(self, _ctx: Any) -> list[str]:
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _import_formatter()
        verbs = self.commands
        self.commands = verbs.described()  # type: ignore[attr-defined] # they are `_Verbs`
        try:
            super().format_help(ctx, formatter)
        finally:
            self.commands = verbs


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

    def described(self) -> dict[str, Any]:
        """Return the verbs without their options, each with its help."""
        return {
            name: _Command(name, help=getdoc(_function(found)), rich_help_panel=self._panels.get(name))
            if isinstance(found, str)
            else self[name]
            for name, found in self.data.items()
        }


def _built(name: str, where: str, panel: str | None) -> Any:
    # In a terminal of 80 columns Rich's table leaves a third of a line to what an option does.
    made = typer.Typer(add_completion=False, rich_markup_mode=None)
    made.command(name, cls=_Command, rich_help_panel=panel)(_function(where))
    return typer.main.get_command(made)


def _function(where: str) -> Any:
    module, function = where.split(":")
    return getattr(import_module(f"venn_admit.cli.verbs.{module}"), function)


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
            typer.secho(outcome_text(error), err=True, fg=typer.colors.RED)
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # what the terminal cannot show must not end what has been done
            stream.reconfigure(errors="backslashreplace")
    try:
        app(args=arguments, prog_name=app.info.name)
    except VennAdmitError as error:
        from venn_admit.cli.advice import advised

        _show_traceback()
        typer.secho(f"error: {shown_lines(advised(error))}", err=True, fg=typer.colors.RED)
        sys.exit(error.exit_code)
    except Exception as error:  # a fault of the program, unless nobody takes what it writes
        _show_traceback()
        if _is_of_output(error):
            said = f"the output cannot be written: {error}; check where it goes"
            sys.stdout = None  # or Python tries again at its end, and says so
        else:
            said = shown_lines(_masked(f"{type(error).__name__}: {error}"))
            said += "; this is a fault of the program: --debug before the verb shows where"
        typer.secho(f"error: {said}", err=True)
        sys.exit(VennAdmitError.exit_code)


def _is_of_output(error: Exception) -> bool:
    """Whether what these libraries write for the program to standard output or standard error could not be written."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return isinstance(error, OSError) and frame.f_globals.get("__name__", "").startswith(("click.", "rich.", "typer."))


def _show_traceback() -> None:
    if _Debug.on:
        typer.echo(shown_lines(_masked(traceback.format_exc())), err=True)


def _masked(text: str) -> str:
    from venn_admit.runtime.settings import secret_addresses
    from venn_admit.secrets import mask

    return mask(text, *secret_addresses(os.environ))
