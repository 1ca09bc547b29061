"""What a report in text is made of."""

from dataclasses import dataclass

from venn_admit.service.report.evaluation.wording import share_text


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of text. columns: headings, a line break between their lines; the first is of row names.

    last_is_total: whether the last row sums up those above.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    last_is_total: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a report: what it shows, in order, and below it what its words mean."""

    title: str
    parts: tuple[str | TextTable, ...]
    notes: tuple[str, ...] = ()


def ratio_text(count: int, total: int) -> str:
    """A share of a total; a dash if that is 0."""
    return share_text(count / total) if total else "-"
