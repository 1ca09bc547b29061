"""The parts of a report in text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from venn_admit.report.wording import share_text
from venn_admit_client.records.certificates import count_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME_WIDTH = 8
"""Characters of a class name over a column."""
ROW_NAME_WIDTH = 60
"""Those of one in a row, whose column takes several lines where there is less room."""


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of text. columns: headings, whose lines are separated by line breaks; the first column holds row names.

    last_is_total: whether the last row sums up those above. query: the name of the query that gives the figures, of
    those that a report offers; None for a table of what is not stored. words: the numbers of the columns that hold
    words, which may take several lines.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    last_is_total: bool = False
    query: str | None = None
    words: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a report: what it shows, in order, and notes that explain it."""

    title: str
    parts: tuple[str | TextTable, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart of a page. name: a word of its own; draw: makes the figure, which takes a while."""

    name: str
    caption: str
    draw: "Callable[[], Figure]"


@dataclass(frozen=True, slots=True)
class Unlock:
    """What further random labels would let a calibration admit.

    where: the partition or class, as the report names it. match_counts: its values of q; None without vectors, or for
    any. predicted: its predicted class; None for any. points: its points, which cannot be admitted now. lacking: in
    words. labels: the number of random labels that it takes, in expectation; inf if it is unknown.
    """

    where: str
    match_counts: range | None
    predicted: int | None
    points: int
    lacking: str
    labels: float


class Finding(NamedTuple):
    """What was found, and whether labels of recent traffic are the remedy, which is said behind it then."""

    text: str
    needs_sample: bool


def listed(parts: Sequence[str]) -> str:
    """Return parts of a sentence as a list.

    >>> listed(["score", "q", "d"]), listed(["score"])
    ('score, q and d', 'score')
    """
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def ratio_text(count: int, total: int) -> str:
    """Return a share of a total, or a dash if the total is 0."""
    return share_text(count / total) if total else "-"


def group_names(edges: Sequence[float]) -> list[str]:
    """Return the names of the groups between some edges, with four digits or as many as tell the edges apart.

    >>> group_names([1.2, 1.5])
    ['under 1.2', '1.2 to 1.5', '1.5 and over']
    >>> group_names([0.99998, 1.0])
    ['under 0.99998', '0.99998 to 1', '1 and over']
    >>> group_names([])
    ['any']
    """
    if not edges:
        return ["any"]
    by_digits = ([f"{edge:.{digits}g}" for edge in edges] for digits in range(4, 18))
    cuts = next(cuts for cuts in by_digits if len(set(cuts)) == len(set(edges)))
    between = [f"{low} to {high}" for low, high in pairwise(cuts)]
    return [f"under {cuts[0]}", *between, f"{cuts[-1]} and over"]


def labels_text(labels: float) -> str:
    """Return a number of labels with two digits, because it is an estimate; "unknown" for infinity.

    >>> [labels_text(labels) for labels in (7.2, 9894.98, 214_491.0, float("inf"))]
    ['7', '9,900', '210,000', 'unknown']
    """
    return count_text(labels) if isfinite(labels) else "unknown"
