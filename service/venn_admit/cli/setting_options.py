"""The options of commands that take settings of a calibration, from what is declared of them."""

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from venn_admit.core.calibrators.arguments import ALL_DECLARED, documentation, listed
from venn_admit.core.calibrators.declaration import Declared, SettingKind


def option_name(setting: str) -> str:
    """Return a setting as an option, without its hyphens in front."""
    return setting.replace("_", "-")


def with_setting_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each setting, after its first two parameters; they come as its last, `**given`."""
    signature = inspect.signature(command)
    own = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    parameters = [*own[:2], *_options(), *own[2:]]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return command


def _options() -> Iterator[inspect.Parameter]:
    for name, declared in ALL_DECLARED.items():
        yield inspect.Parameter(
            name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=declared.usual, annotation=_option(name, declared)
        )


def _option(name: str, declared: Declared) -> Any:
    text = documentation(name)
    if declared.rows:
        example = listed(declared.example)
        said = f"A CSV or JSON file, which may name the classes, or rows such as {example}."
        return Annotated[str | None, typer.Option(help=f"{text} {said}", metavar="FILE")]
    if declared.many:
        example = ",".join(map(str, declared.example))
        return Annotated[str | None, typer.Option(help=f"{text.removesuffix('.')}. Such as {example}.")]
    if declared.kind is SettingKind.FLAG:
        return Annotated[bool | None, typer.Option(f"--{option_name(name)}/--no-{option_name(name)}", help=text)]
    if declared.kind is SettingKind.NUMBER:
        return Annotated[float | None, typer.Option(help=text)]
    if declared.kind is SettingKind.INTEGER:
        return Annotated[int | None, typer.Option(help=text, min=declared.least, max=declared.most)]
    return Annotated[str | None, typer.Option(help=text)]


def read_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the values that options have by the names of settings; None for one that is not given.

    That of a matrix is a path if it is a file, whose names of classes `with_files` knows. Raises InvalidInputError,
    which names the option, if a value cannot be read.
    """
    return {name: None if value is None else _read(name, value) for name, value in given.items()}


def _read(name: str, value: Any) -> Any:
    declared = ALL_DECLARED[name]
    if declared.rows and not _ROWS.fullmatch(value):
        return Path(value)
    return declared.read(option_name(name), value)


_ROWS = re.compile(r"[\s\d.,;eE+-]*;[\s\d.,;eE+-]*")


def with_files(asked: dict[str, Any], class_names: Sequence[str]) -> dict[str, Any]:
    """Return the values of options with what their files hold instead of paths. Raises InvalidInputError."""
    from venn_admit.files.losses import read_loss

    return {name: read_loss(value, class_names) if isinstance(value, Path) else value for name, value in asked.items()}
