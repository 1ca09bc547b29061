"""How verbs speak: results on standard output, as text or one JSON object; progress on standard error."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from service.errors import InvalidInputError

Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]

# As many rows as a list may be asked for: an integer of the database's.
MOST = 2**31 - 1

# Wide enough for the tables where there is no terminal to ask.
output = Console(width=None if sys.stdout.isatty() else 120)
messages = Console(stderr=True)


def tell(as_json: bool, result: dict[str, Any], *lines: str) -> None:
    """Print a result: the lines to people, the dictionary to programs."""
    if as_json:
        from service.files.exports import finite_json  # which brings pyarrow

        typer.echo(json.dumps(finite_json(result), allow_nan=False))
    else:
        for line in lines:
            output.print(Text(line), soft_wrap=True)  # no markup: names and paths may look like it


def make_report_folder(path: Path) -> None:
    """Make a folder where it is missing, before what goes there is computed; InvalidInputError where it can't be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"{path}: expected a folder for the report, got {error}; give another") from error


def warn(text: str) -> None:
    messages.print(Text.assemble(("warning:", "yellow"), " ", text), soft_wrap=True)


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on standard error; yields a function that advances it by so many rows."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=messages) as bar:
        task = bar.add_task(what, total=total)
        yield lambda rows: bar.advance(task, rows)
