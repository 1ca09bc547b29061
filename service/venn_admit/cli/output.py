r"""How verbs print: results on standard output, as text or one JSON object; progress on standard error.

Ids, names, paths and attributes come from others. A control character in them could move the cursor, recolour the
terminal or reverse the text, so none reaches it: each is shown as an escape sequence, such as \x1b.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

# DEL and C1; separators of lines; embeddings, overrides and isolates of bidirectional text; lone surrogates.
_BEYOND_C0 = "\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_CONTROLS = re.compile(f"[\x00-\x1f{_BEYOND_C0}]")
# Text that is laid out already contains tabs and line breaks.
_CONTROLS_IN_LAYOUT = re.compile(f"[\x00-\x08\x0b-\x1f{_BEYOND_C0}]")


def shown(value: object) -> str:
    r"""Return text as one line that is safe for a terminal: control characters and line breaks are escape sequences.

    >>> print(shown("red\x1b[31m\nnext"))
    red\x1b[31m\nnext
    """
    return _CONTROLS.sub(_escape, str(value))


def shown_lines(text: str) -> str:
    """As `shown`, except that line breaks stay; the lines after them are indented, unlike the start of a message."""
    return "\n  ".join(map(shown, text.split("\n")))


def _escape(match: re.Match[str]) -> str:
    return repr(match.group())[1:-1]


class _Terminal(Console):
    """A console for any text: it escapes what was not escaped before the layout."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or not _CONTROLS_IN_LAYOUT.search(segment.text):
                yield segment
            else:
                yield Segment(_CONTROLS_IN_LAYOUT.sub(_escape, segment.text), segment.style)


# The largest integer that the database takes as the limit of a list.
LARGEST_LIMIT = 2**31 - 1

# If there is no terminal whose width could be asked for, tables get 120 columns.
output = _Terminal(width=None if sys.stdout and sys.stdout.isatty() else 120)
messages = _Terminal(stderr=True)


def print_result(as_json: bool, result: dict[str, Any], *parts: RenderableType) -> None:
    """Print a result: its sentences and tables to people, the dictionary to programs."""
    if as_json:
        from venn_admit.files.output.exports import finite_json  # which brings pyarrow

        # DEL is the one control character that JSON in ASCII leaves as it is.
        typer.echo(json.dumps(finite_json(result), allow_nan=False).replace("\x7f", "\\u007f"))
    else:
        for part in parts:
            text = Text(shown(part)) if isinstance(part, str) else part  # no markup: names and paths may look like it
            output.print(text, soft_wrap=isinstance(text, Text))  # sentences are left to the terminal, tables are not


def cell(value: object) -> Text:
    """Return a value, which may come from others, as a table shows it."""
    return Text(shown(value))


def warn(text: str) -> None:
    messages.print(Text.assemble(("warning:", "yellow"), " ", shown_lines(text)), soft_wrap=True)


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error; yields a function that advances it by a number of rows."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold")),
        BarColumn(bar_width=20),  # leaves names their line
        MofNCompleteColumn(table_column=Column(no_wrap=True)),  # what can be wrapped gives way first
        TimeElapsedColumn(table_column=Column(no_wrap=True)),
    )
    with Progress(*columns, console=messages) as bar:
        task = bar.add_task(shown(what), total=total)
        try:
            yield lambda rows: bar.advance(task, rows)
        except BaseException:
            bar.live.transient = True  # what ended it is said instead
            raise
