"""The options of commands that take settings of a calibration, from what is declared of them."""

import inspect
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from venn_admit.core.calibrators.arguments import ALL_DECLARED, documentation
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
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=declared.usual,
            annotation=_option(name, declared),
        )


def _option(name: str, declared: Declared) -> Any:
    text = documentation(name)
    if declared.many:
        example = ",".join(map(str, declared.example))
        return Annotated[str | None, typer.Option(help=f"{text.removesuffix('.')}. Such as {example}.")]
    if declared.kind is SettingKind.NUMBER:
        return Annotated[float | None, typer.Option(help=text)]
    if declared.kind is SettingKind.INTEGER:
        return Annotated[int | None, typer.Option(help=text, min=declared.least, max=declared.most)]
    return Annotated[str | None, typer.Option(help=text)]


def read_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the values that options have by the names of settings; None for one that is not given.

    Raises InvalidInputError, which names the option, if a value cannot be read.
    """
    return {
        name: None if value is None else ALL_DECLARED[name].read(option_name(name), value)
        for name, value in given.items()
    }
