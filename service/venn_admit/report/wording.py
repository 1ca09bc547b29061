"""Words that every shell uses, also for what is shown without a report."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from venn_admit.core.evidence import VIEW, Field, Kind, own_fields

MOST_FULL_MATCHES = 0.5
"""If a larger share of a split has q = K, it is said what that means."""


def waiting_text(waiting: int) -> str:
    """Return what is said of training exemplars that wait.

    >>> waiting_text(1)
    '1 training exemplar waits for jobs that are running, for ten minutes at most.'
    """
    they_wait = "1 training exemplar waits" if waiting == 1 else f"{waiting:,} training exemplars wait"
    return f"{they_wait} for jobs that are running, for ten minutes at most."


def copies_text(copies: int) -> str:
    """Return what is said of held-out exemplars of documents with the vectors and logits of another.

    >>> copies_text(2)
    '2 held-out exemplars are copies by vector and logits: copies share a split, and count as one document.'
    """
    they_are = "1 held-out exemplar is a copy" if copies == 1 else f"{copies:,} held-out exemplars are copies"
    return f"{they_are} by vector and logits: copies share a split, and count as one document."


def copies_apart_text(copies: int) -> str:
    """Return what is said of copies in different splits.

    >>> copies_apart_text(4)
    '4 of them, stored by an earlier version, lie in different splits; a new generation would put them together.'
    """
    stored = f"{copies:,} of them, stored by an earlier version,"
    return f"{stored} lie in different splits; a new generation would put them together."


def training_copies_text(copies: int) -> str:
    """Return what is said of exemplars of which copies train, while they are held out, or the other way round.

    >>> training_copies_text(1)
    '1 exemplar is held out and trains, by its vector and logits: what it says of the traffic is too good.'
    """
    they_are = "1 exemplar is" if copies == 1 else f"{copies:,} exemplars are"
    it_says, trains = ("it says", "trains") if copies == 1 else ("they say", "train")
    its = "its" if copies == 1 else "their"
    return f"{they_are} held out and {trains}, by {its} vector and logits: what {it_says} of the traffic is too good."


def class_table(
    stored: Mapping[str, Any],
    class_names: Sequence[str],
    category: Sequence[int] | None,
    number: Callable[[float], str],
) -> tuple[list[str], list[tuple[str, ...]]] | None:
    """Return what a decision says of each class, as heads and rows for people; None if its method says nothing.

    category: points of each label in the category; None if that is unknown. number: how numbers are written.
    """
    fields = [field for field in own_fields(stored) if field.kind.is_per_class]
    if not fields:
        return None
    fields += [field for field in VIEW if field.kind.is_per_class]
    rows = []
    for place, name in enumerate(class_names):
        cells = [_class_cell(field, stored[field.name][place], number) for field in fields]
        rows.append((name, *cells, "unknown" if category is None else f"{category[place]:,}"))
    return ["class", *(field.words for field in fields), "in category"], rows


def _class_cell(field: Field, value: Any, number: Callable[[float], str]) -> str:
    if field.kind is Kind.BITS:
        return "yes" if value == "1" else "no"
    return f"{value:,}" if field.kind is Kind.INTEGERS else number(value)


def time_text(time: datetime) -> str:
    """Return a time to the minute.

    >>> time_text(datetime(2026, 3, 1, 9, 30, tzinfo=UTC))
    '2026-03-01 09:30 UTC'
    """
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def full_matches_text(share: float, split: str) -> str:
    """Return for which share of a split q is K, and what that means if it is most of it.

    >>> full_matches_text(0.31, "knn")
    'q is K for 31% of split knn.'
    """
    said = f"q is K for {share:.0%} of split {split}"
    if share <= MOST_FULL_MATCHES:
        return f"{said}."
    return (
        f"{said}, between which it does not tell: bands of q pool right and wrong predictions there. A larger K may "
        "tell more; the network's score, by which Venn-Abers ranks, does not depend on q."
    )
