"""Tables that fit into a narrow terminal."""

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

_LONG_WORD = 20  # It may be broken before others.
_PART_OF_NAME = 8  # At least as much of a word stays together, of one that has more than letters in it above all.


def widths(head: str, texts: Sequence[str], *, words: bool) -> tuple[int, ...]:
    """Return the widths of a column, from the one that it takes by itself to the least, as `FittedTable` says.

    Args:
        words: Whether the texts are words, which break first, or figures and times.
    """
    above, parts = _widest(head.split()), [part for text in texts for part in text.split()]
    natural, part = _widest([*head.splitlines(), *texts]), _widest(parts)
    if not words:
        between_parts = max(above, part)
        return natural, max(above, _widest(texts)), between_parts, between_parts, between_parts
    between_words = max(above, min(part, _LONG_WORD))
    least = max(above, min(part, _PART_OF_NAME))
    within_names = max(least, _widest(one for one in parts if one.isalpha()))
    return natural, between_words, between_words, min(between_words, within_names), least


def _widest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)


@dataclass(frozen=True)
class FittedTable:
    """A table whose widest columns give way until it fits: texts break between words, then times do, names, and words.

    Numbers and what stands above them stay whole: where nothing else can give way, each row is a list of its values.
    rich would make all columns narrower in proportion, or cut them off.

    sizes: for each column, its `widths`.
    """

    table: Table
    sizes: Sequence[tuple[int, ...]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        sizes = [size[0] for size in self.sizes]
        self._set(sizes)
        natural = Measurement.get(console, options.update(max_width=sys.maxsize), self.table).maximum
        excess = natural - options.max_width
        for step in range(1, len(self.sizes[0])):
            while excess > 0:
                giving = [place for place, size in enumerate(self.sizes) if sizes[place] > size[step]]
                if not giving:
                    break
                sizes[max(giving, key=sizes.__getitem__)] -= 1
                excess -= 1
        self._set(sizes)
        if excess <= 0:
            yield self.table
        else:
            yield from self._rows()

    def _rows(self) -> Iterator[RenderableType]:
        """The title, then each row, with a line for every value in it."""
        if self.table.title is not None:
            yield self.table.title
        columns = self.table.columns
        for row in zip(*(column.cells for column in columns), strict=True):
            drawn = Table(box=None, show_header=False)
            drawn.add_column(overflow="fold", style="bold")
            drawn.add_column(overflow="fold")
            for column, value in zip(columns, row, strict=True):
                if str(value):
                    drawn.add_row(" ".join(str(column.header).split()), value)
            yield drawn
            yield Text()

    def _set(self, sizes: Sequence[int]) -> None:
        for column, size in zip(self.table.columns, sizes, strict=True):
            column.width = size


def fitted(
    heads: Sequence[str], rows: Sequence[Sequence[Text]], *, words: Collection[int], last_is_total: bool = False
) -> FittedTable:
    """Return a table of texts.

    Args:
        words: The numbers of the columns, from 0, that hold words; the others hold figures.
    """
    drawn = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for number, head in enumerate(heads):
        drawn.add_column(Text(head), overflow="fold", justify="left" if number in words else "right")
    for number, row in enumerate(rows, start=1):
        if last_is_total and number == len(rows):
            drawn.add_section()
        drawn.add_row(*row)
    texts = [[row[number].plain for row in rows] for number in range(len(heads))]
    return FittedTable(drawn, [widths(head, texts[number], words=number in words) for number, head in enumerate(heads)])
