"""The parts of a report in text."""

from dataclasses import dataclass

from venn_admit.service.report.evaluation.wording import share_text


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of text. columns: headings, whose lines are separated by line breaks; the first column holds row names.

    last_is_total: whether the last row sums up those above.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    last_is_total: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a report: what it shows, in order, and notes that explain it."""

    title: str
    parts: tuple[str | TextTable, ...]
    notes: tuple[str, ...] = ()


def ratio_text(count: int, total: int) -> str:
    """Return a share of a total, or a dash if the total is 0."""
    return share_text(count / total) if total else "-"
