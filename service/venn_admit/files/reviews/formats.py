"""The formats in which points of the queue leave and their labels come back."""

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from venn_admit.errors import InvalidInputError
from venn_admit.files.inputs import check_is_file, reading
from venn_admit.files.output.atomic import check_output, replacing
from venn_admit.files.reviews import argilla, label_studio, sheet
from venn_admit.files.reviews.given import GivenLabels
from venn_admit.files.text_files import MOST_BYTES
from venn_admit_client.records.reviews import ReviewPoint


class ReviewFormat(StrEnum):
    """A format, by the name that shells have for it."""

    CSV = "csv"
    LABEL_STUDIO = "label-studio"
    ARGILLA = "argilla"

    @property
    def ending(self) -> str:
        """How files of it end."""
        return ".csv" if self is ReviewFormat.CSV else ".json"


def format_of(name: str | None, path: Path) -> ReviewFormat:
    """Return the format that is named, or for a .csv file that.

    Raises InvalidInputError at another name, and if none is given for another file.
    """
    if name is None and path.suffix.lower() == ReviewFormat.CSV.ending:
        return ReviewFormat.CSV
    if name not in list(ReviewFormat):
        got = "none, which serves .csv alone" if name is None else repr(name)
        raise InvalidInputError(f"format: expected {', '.join(ReviewFormat)}, got {got}")
    return ReviewFormat(name)


def check_reviews_output(path: Path, wanted: ReviewFormat) -> None:
    """Raise InvalidInputError unless points can be written there, as `check_output` says."""
    check_output(path, (wanted.ending,))


def write_points(path: Path, wanted: ReviewFormat, points: Sequence[ReviewPoint], reviewer: str) -> None:
    """Write points that a reviewer holds; the file appears once it is complete. Raises InvalidInputError."""
    match wanted:
        case ReviewFormat.CSV:
            text = sheet.written(points, reviewer)
        case ReviewFormat.LABEL_STUDIO:
            text = _json([label_studio.task(point) for point in points])
        case ReviewFormat.ARGILLA:
            text = _json([argilla.exported_record(point) for point in points])
    with replacing(path) as file:
        file.write(text.encode())


def read_labels_of_reviewers(path: Path, wanted: ReviewFormat) -> list[GivenLabels]:
    """Read the labels that came back, by reviewer, in the order of `by_reviewer`.

    Raises:
        InvalidInputError: The file cannot be read, is not of the format, or holds no label.
    """
    check_is_file(path)
    with reading(path, "file of labels", UnicodeDecodeError):
        if path.stat().st_size > MOST_BYTES:
            raise InvalidInputError(f"{path}: expected at most {MOST_BYTES:,} bytes; divide it")
        text = path.read_text("utf-8-sig")
    match wanted:
        case ReviewFormat.CSV:
            found = sheet.labels_in(str(path), text)
        case ReviewFormat.LABEL_STUDIO:
            found = label_studio.labels_in(str(path), _parsed(path, text))
        case ReviewFormat.ARGILLA:
            found = argilla.labels_in(str(path), _parsed(path, text))
    if not found:
        raise InvalidInputError(f"{path}: expected at least one label, got none")
    return found


def _json(objects: list[dict[str, object]]) -> str:
    return json.dumps(objects, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _parsed(path: Path, text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{path}: expected JSON, got {error}; export the labels again") from error
