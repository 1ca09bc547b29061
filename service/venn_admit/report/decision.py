"""What a decision says of each class, in words that terminal and page share."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from venn_admit.core.evaluation.category import Bounds, category_shares
from venn_admit.core.evidence import VIEW, Field, Kind, own_fields
from venn_admit.report.evaluation.wording import interval_text
from venn_admit.report.wording import share_text


def class_table(
    stored: Mapping[str, Any],
    class_names: Sequence[str],
    category: Sequence[int] | None,
    number: Callable[[float], str],
    bounds: Bounds | None = None,
) -> tuple[list[str], list[tuple[str, ...]]] | None:
    """Return what a decision says of each class, as heads and rows for people; None if its method says nothing.

    category: points of each label in the category; None if they are unknown, or were not looked up. number: how numbers
    are written. bounds: as in `category_shares`.
    """
    fields = [field for field in own_fields(stored) if field.kind.is_per_class]
    if not fields:
        return None
    fields += [field for field in VIEW if field.kind.is_per_class]
    shares = category_shares(stored, category, bounds)
    rows = []
    for place, name in enumerate(class_names):
        cells = [_class_cell(field, stored[field.name][place], number) for field in fields]
        if category is not None:
            cells.append(f"{category[place]:,}")
        if shares is not None:
            cells += number(shares.lower[place]), number(shares.upper[place])
        rows.append((name, *cells))
    heads = [] if category is None else ["in category"]
    heads += [] if shares is None else ["lower probability", "upper probability"]
    return ["class", *(field.words for field in fields), *heads], rows


def category_fact(
    stored: Mapping[str, Any], category: Sequence[int] | None, bounds: Bounds | None
) -> list[tuple[str, str]]:
    """Return how much of the category is right, and how exactly a sample of its size tells; empty without a category.

    >>> category_fact({"category_size": 584, "upweight": 4.0, "predicted": 0}, [574, 10], None)
    [('right in the category', '.983, 95 % interval .969-.991')]
    """
    shares = category_shares(stored, category, bounds)
    if shares is None or shares.right is None:
        return []
    said = f"{share_text(shares.right)}, 95 % interval {interval_text(shares.interval)}"
    return [("right in the category", said)]


def _class_cell(field: Field, value: Any, number: Callable[[float], str]) -> str:
    if field.kind is Kind.BITS:
        return "yes" if value == "1" else "no"
    return f"{value:,}" if field.kind is Kind.INTEGERS else number(value)
