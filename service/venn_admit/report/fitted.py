"""Tables that fit into a narrow terminal."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table

_LONG_WORD = 20  # It may be broken before others.
_PART_OF_NAME = 8  # At least as much of a word stays together that has more than letters in it, such as an id.


def widths(head: str, texts: Sequence[str], *, words: bool) -> tuple[int, ...]:
    """Return the widths of a column, from the one that it takes by itself to the least, as `Fitted` says.

    Args:
        words: Whether the texts are words, which break first, or figures and times.
    """
    above, parts = _widest(head.split()), [part for text in texts for part in text.split()]
    natural, part = _widest([*head.splitlines(), *texts]), _widest(parts)
    if not words:
        between_parts = max(above, part)
        return natural, max(above, _widest(texts)), between_parts, between_parts, between_parts
    between_words = max(above, min(part, _LONG_WORD))
    within_names = max(above, min(part, _PART_OF_NAME), _widest(one for one in parts if one.isalpha()))
    return natural, between_words, between_words, min(between_words, within_names), above


def _widest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)


@dataclass(frozen=True)
class Fitted:
    """A table whose widest columns give way until it fits: texts break between words, then times do, names, and words.

    Numbers and what stands above them stay whole as long as anything else can give way. rich would make all columns
    narrower in proportion, or cut them off.

    sizes: for each column, its `widths`.
    """

    table: Table
    sizes: Sequence[tuple[int, ...]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
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
        yield self.table

    def _set(self, sizes: Sequence[int]) -> None:
        for column, size in zip(self.table.columns, sizes, strict=True):
            column.width = size
