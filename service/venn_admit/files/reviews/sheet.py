"""Points as a sheet, CSV: people fill in the column `label`."""

import csv
import io
from collections.abc import Iterator, Sequence

from venn_admit.core.groups import attribute_text
from venn_admit.core.names import check_stored_id
from venn_admit.errors import InvalidInputError
from venn_admit.files.reviews.given import GivenLabels, OneLabel, by_reviewer
from venn_admit_client.records.reviews import ReviewPoint

_COLUMNS = ("external_id", "label", "reviewer", "due", "why", "possible", "document_id")
_READ, _NEEDED = _COLUMNS[:3], set(_COLUMNS[:2])
_ATTRIBUTE = "attribute."
# Spreadsheets save a semicolon where the decimal point is a comma, and what is copied from them has tabs.
_SEPARATORS = ",;\t"


def written(points: Sequence[ReviewPoint], reviewer: str) -> str:
    """Return points as CSV, with an empty column `label`, and their attributes in columns `attribute.NAME`.

    reviewer: who holds them, and gives the labels unless somebody writes another name.
    """
    names = list(dict.fromkeys(name for point in points for name in point.attributes))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_COLUMNS, *(f"{_ATTRIBUTE}{name}" for name in names)])
    for point in points:
        possible = "" if point.possible is None else " | ".join(point.possible)
        own = (point.id, "", reviewer, point.due or "", point.why, possible, point.document or "")
        writer.writerow([*own, *(_cell(point.attributes.get(name)) for name in names)])
    return text.getvalue()


def _cell(value: object) -> str:
    return "" if value is None else attribute_text(value)


def labels_in(place: str, text: str) -> list[GivenLabels]:
    """Return the labels of a sheet, as `written` makes it; rows without one are left out.

    Raises:
        InvalidInputError: A column is missing or there twice, a row has more values than columns, a quote is not
            closed, or an id is missing or given twice; the message names the row, from 0.
    """
    try:
        return by_reviewer(_rows(place, text))
    except csv.Error as error:
        raise InvalidInputError(f"{place}: expected CSV, got {error}; a double quote may be missing") from error


def _rows(place: str, text: str) -> Iterator[OneLabel]:
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # of the process: the module has no other
    # Without strict, a quote that is not closed would swallow the rows below it.
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=_separator(text), strict=True)
    names = rows.fieldnames or ()
    if not set(names) >= _NEEDED or any(names.count(one) > 1 for one in _READ):
        raise InvalidInputError(
            f"{place}: columns: expected external_id, label and optionally reviewer, each once, got "
            f"{', '.join(map(repr, names)) or 'none'}"
        )
    seen = set[tuple[str, str | None]]()
    for number, row in enumerate(rows):
        beyond = row.get(None, ())  # the values to the right of the last column
        if any(beyond):
            raise InvalidInputError(
                f"{place}: row {number}: expected {len(names)} values, got {len(names) + len(beyond)}; put a text that "
                "holds the separator in double quotes"
            )
        label = row["label"] or ""
        if not label.strip():
            continue
        where, external_id = f"{place}: row {number}, external_id", row["external_id"] or ""
        try:
            check_stored_id(external_id)
        except ValueError as error:
            raise InvalidInputError(f"{where}: expected {error.args[0]}, got {error.args[1]}") from None
        reviewer = (row.get("reviewer") or "").strip() or None
        if (external_id, reviewer) in seen:
            raise InvalidInputError(f"{where}: expected every id once, got {external_id!r} twice")
        seen.add((external_id, reviewer))
        yield OneLabel(reviewer, external_id, label, "")


def _separator(text: str) -> str:
    """What separates the columns of a sheet: that which divides its first line into those that are needed."""
    lines = text.splitlines()[:1]
    return next((one for one in _SEPARATORS if set(next(csv.reader(lines, delimiter=one), [])) >= _NEEDED), ",")
