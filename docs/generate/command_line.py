"""The reference of the command line, from the tree of commands that typer makes of the program."""

from collections.abc import Iterator
from typing import Any

import typer

from docs.generate.markdown import join, one_line, plain, table
from venn_admit.cli.program import app

INTRODUCTION = """\
# Command line

What `venn-admit --help` and `venn-admit COMMAND --help` say, on one page. Results go to standard output and messages
to standard error. The [exit code](errors.md) tells what kind of error ended a command."""


def command_line_page() -> str:
    """Return the page: the program's own options, then each command that is not hidden."""
    program: Any = typer.main.get_command(app)
    return join(INTRODUCTION, _description(program), _parameters(program), *_commands(program, str(program.name)))


def _commands(group: Any, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        if command.hidden:
            continue
        full = f"{path} {name}"
        if hasattr(command, "commands"):
            yield join(f"## {full}", _description(command), _parameters(command)).rstrip()
            yield from _commands(command, full)
        else:
            level = "##" if path.count(" ") == 0 else "###"
            yield join(f"{level} {full}", _description(command), _usage(command, full), _parameters(command)).rstrip()


def _description(command: Any) -> str:
    return "\n\n".join(plain(one_line(paragraph)) for paragraph in (command.help or "").split("\n\n"))


def _usage(command: Any, full: str) -> str:
    words = [full]
    for parameter in _shown(command):
        if parameter.param_type_name == "argument":
            words.append(_placeholder(parameter) if parameter.required else f"[{_placeholder(parameter)}]")
        elif parameter.required:
            words.append(f"{parameter.opts[0]} {_placeholder(parameter)}")
    return f"```text\n{' '.join([*words, '[OPTIONS]'])}\n```"


def _parameters(command: Any) -> str:
    rows = [
        (_spelling(parameter), plain(one_line(parameter.help or "")), _default(parameter))
        for parameter in _shown(command)
    ]
    return table(["argument or option", "meaning", "default"], rows) if rows else ""


def _shown(command: Any) -> list[Any]:
    return [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]


def _spelling(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{_placeholder(parameter)}`"
    spelling = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    return spelling if parameter.is_flag else f"{spelling} `{_placeholder(parameter)}`"


def _placeholder(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name).upper()


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    if parameter.default is None or getattr(parameter, "is_flag", False):
        return ""
    return f"`{parameter.default}`"
