"""A diagram of tables and what they refer to, as SVG: drawn here because a page may load nothing from elsewhere."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape

from sqlalchemy import Column, Table

BOX_WIDTH, ROW_HEIGHT, HEADER_HEIGHT = 160, 18, 24
COLUMN_GAP, BOX_GAP = 48, 18


@dataclass(frozen=True, slots=True)
class Box:
    """A table's place in the diagram, and the columns that are shown: its keys."""

    table: Table
    x: float
    y: float
    keys: tuple[Column[object], ...]

    @property
    def height(self) -> float:
        return HEADER_HEIGHT + ROW_HEIGHT * len(self.keys) + 6

    def row(self, number: int) -> float:
        """The middle of a row."""
        return self.y + HEADER_HEIGHT + ROW_HEIGHT * (number + 0.5) + 2


def diagram(tables: Sequence[Table]) -> str:
    """Return the SVG: a table stands to the right of all that it refers to."""
    boxes = {box.table: box for box in _placed(tables)}
    width = max(box.x for box in boxes.values()) + BOX_WIDTH + 1
    height = max(box.y + box.height for box in boxes.values()) + 1
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-1 -1 {width + 1:g} {height + 1:g}" role="img" '
        'aria-label="Tables and their foreign keys">'
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" class="arrow"/></marker></defs>'
        f"{''.join(_lines(boxes))}{''.join(map(_drawn, boxes.values()))}</svg>"
    )


def _referred(table: Table) -> set[Table]:
    return {key.column.table for column in table.columns for key in column.foreign_keys} - {table}


def _placed(tables: Sequence[Table]) -> Iterable[Box]:
    @cache
    def level(table: Table) -> int:
        return max((level(other) + 1 for other in _referred(table)), default=0)

    placed: dict[Table, Box] = {}
    for number in range(max(map(level, tables)) + 1):
        bottom = 0.0
        # Near what they refer to, so that lines are short.
        column = [table for table in tables if level(table) == number]
        for table in sorted(column, key=lambda table: _mean([placed[other].y for other in _referred(table)])):
            keys = tuple(each for each in table.columns if each.primary_key or each.foreign_keys)
            placed[table] = Box(table, number * (BOX_WIDTH + COLUMN_GAP), bottom, keys)
            bottom += placed[table].height + BOX_GAP
    return placed.values()


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _lines(boxes: dict[Table, Box]) -> Iterable[str]:
    for box in boxes.values():
        for number, column in enumerate(box.keys):
            for key in column.foreign_keys:
                target = boxes[key.column.table]
                x, y = target.x + BOX_WIDTH, target.y + HEADER_HEIGHT / 2
                bend = (box.x - x) / 2
                yield (
                    f'<path class="line" marker-end="url(#arrow)" d="M{box.x:g} {box.row(number):g} '
                    f'C{box.x - bend:g} {box.row(number):g} {x + bend:g} {y:g} {x:g} {y:g}"/>'
                )


def _drawn(box: Box) -> str:
    name = escape(box.table.name)
    rows = "".join(
        f'<text x="{box.x + 8:g}" y="{box.row(number) + 4:g}" class="{"primary" if column.primary_key else "foreign"}">'
        f"{escape(column.name)}</text>"
        for number, column in enumerate(box.keys)
    )
    return (
        f'<a href="#{name}"><rect x="{box.x:g}" y="{box.y:g}" width="{BOX_WIDTH}" height="{box.height:g}" rx="4"/>'
        f'<text x="{box.x + 8:g}" y="{box.y + 17:g}" class="name">{name}</text>{rows}</a>'
    )
