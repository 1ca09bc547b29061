"""Points of the queue as files: what leaves, and what Label Studio and Argilla give back, as their guides have it."""

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from venn_admit.errors import InvalidInputError
from venn_admit.files.reviews import sheet
from venn_admit.files.reviews.formats import ReviewFormat, format_of, read_labels_of_reviewers, write_points
from venn_admit.files.reviews.given import OneLabel, by_reviewer
from venn_admit_client.records.reviews import ReviewPoint

POINTS = [
    ReviewPoint(
        id="review-1",
        document="d",
        attributes={"text": 'A "film",\nof two lines', "length": 7},
        reason="score below threshold",
        why="The score is below.",
        due="2026-12-01",
        possible=("negative", "positive"),
        precedents=(),
        lease_until=datetime(2026, 12, 1, tzinfo=UTC),
    ),
    ReviewPoint(
        id="review-2",
        document=None,
        attributes={},
        reason=None,
        why="It was drawn.",
        due=None,
        possible=None,
        precedents=(),
        lease_until=datetime(2026, 12, 1, tzinfo=UTC),
    ),
]


def test_a_sheet_may_hold_pictures() -> None:
    point = replace(POINTS[0], attributes={"image": "data:image/png;base64," + "iVBOR" * 60_000})
    text = sheet.written([point], "anna").replace("review-1,,", "review-1,negative,")
    (found,) = sheet.labels_in("sheet", text)
    assert found.labels == {"review-1": "negative"}


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_sheet_comes_back_from_any_spreadsheet(separator: str) -> None:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator)
    writer.writerows(
        [
            ("due", "external_id", "label", "attribute.a,b;c"),
            ("", "review-1;a,b", " positive", ""),
            ("", "review-2", " ", "two\nlines"),
        ]
    )
    (found,) = sheet.labels_in("sheet", text.getvalue())
    assert found.labels == {"review-1;a,b": " positive"}  # as the name of a class may be
    # Cells to the right of the sheet, if they are empty, and cells that are left out.
    (found,) = sheet.labels_in("sheet", "external_id,label,due\na,1,,,\nb,0\nc\n".replace(",", separator))
    assert found.labels == {"a": "1", "b": "0"}


def annotation(choice: str, by: object, at: str, *others: str, **more: Any) -> dict[str, Any]:
    """An annotation as https://labelstud.io/guide/export has it, of one choice or, which is refused, several."""
    return {
        "id": 1001,
        "completed_by": by,
        "result": [
            {
                "value": {"choices": [choice, *others]},
                "id": "Dx_aB91ISN",
                "from_name": "label",
                "to_name": "text",
                "type": "choices",
                "origin": "manual",
            }
        ],
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": at,
        "updated_at": at,
        "lead_time": 4.288,
        **more,
    }


def task(external_id: str, *annotations: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": 1,
        "annotations": list(annotations),
        "drafts": [],
        "predictions": [],
        "data": {"text": "A film.", "external_id": external_id},
        "meta": {},
        "created_at": "2026-11-26T20:00:00.000000Z",
        "project": 83,
    }


def saved(folder: Path, content: object, name: str = "labels.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_a_sheet_leaves_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    write_points(path, ReviewFormat.CSV, POINTS, "carla")
    rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8"), newline="")))
    assert rows[0]["attribute.text"] == 'A "film",\nof two lines'
    assert (rows[0]["attribute.length"], rows[0]["possible"]) == ("7", "negative | positive")
    assert [(row["label"], row["reviewer"]) for row in rows] == [("", "carla")] * 2
    with pytest.raises(InvalidInputError, match="at least one label"):
        read_labels_of_reviewers(path, ReviewFormat.CSV)
    filled = "external_id,label,reviewer\nreview-1,positive,\nreview-2, ,anna\nreview-2,negative,berta\n"
    found = read_labels_of_reviewers(saved(tmp_path, "\ufeff" + filled, "filled.csv"), ReviewFormat.CSV)
    assert [(one.reviewer, one.labels) for one in found] == [
        (None, {"review-1": "positive"}),
        ("berta", {"review-2": "negative"}),
    ]


def test_label_studio_takes_tasks_and_gives_annotations_back(tmp_path: Path) -> None:
    write_points(tmp_path / "tasks.json", ReviewFormat.LABEL_STUDIO, POINTS, "carla")
    first, second = json.loads((tmp_path / "tasks.json").read_text("utf-8"))
    assert first == {
        "data": {
            "text": 'A "film",\nof two lines',
            "length": 7,
            "external_id": "review-1",
            "why": "The score is below.",
            "due": "2026-12-01",
            "document_id": "d",
            "possible": "negative, positive",
        }
    }
    assert second == {"data": {"external_id": "review-2", "why": "It was drawn."}}
    user = {"id": 7, "email": "anna@example.com", "first_name": "", "last_name": ""}
    exported = [
        task(
            "review-1",
            annotation("positive", user, "2026-11-26T21:00:00Z"),
            annotation("negative", 8, "2026-11-26T20:00:00Z"),
            annotation("negative", 9, "2026-11-26T23:00:00Z", was_cancelled=True),
        ),
        task("review-2", annotation("negative", 8, "2026-11-26T20:30:00Z")),
        task("review-3"),
        # Tasks of somebody else, which nobody has labelled.
        {"data": {}, "annotations": [annotation("negative", 9, "", was_cancelled=True)]},
        {"data": {}, "annotations": []},
    ]
    found = read_labels_of_reviewers(saved(tmp_path, exported), ReviewFormat.LABEL_STUDIO)
    assert [(one.reviewer, one.labels) for one in found] == [
        ("Label Studio 8", {"review-1": "negative", "review-2": "negative"}),
        ("anna@example.com", {"review-1": "positive"}),  # the newest of a point comes last, and counts
    ]


def test_what_several_reviewers_gave_of_a_point_comes_in_the_order_in_which_they_gave_it() -> None:
    given = [
        OneLabel("anna", "one", "0", "1"),
        OneLabel("berta", "one", "1", "2"),
        OneLabel("anna", "two", "0", "3"),
        OneLabel("anna", "three", "1", "4"),
        OneLabel("berta", "three", "0", "5"),
        OneLabel("anna", "three", "2", "6"),
        OneLabel("anna", "two", "1", "7"),
    ]
    found = by_reviewer(given)
    # Of "one" berta's label counts, though anna labelled others later.
    assert [(one.reviewer, one.labels) for one in found] == [
        ("anna", {"one": "0", "two": "1"}),
        ("berta", {"three": "0"}),
        ("berta", {"one": "1"}),
        ("anna", {"three": "2"}),
    ]
    many = [OneLabel("anna", str(number), "0", "") for number in range(100_000)]
    assert len(by_reviewer(many)[0].labels) == len(many)


def test_argilla_takes_records_and_gives_responses_back(tmp_path: Path) -> None:
    write_points(tmp_path / "records.json", ReviewFormat.ARGILLA, POINTS, "carla")
    first, second = json.loads((tmp_path / "records.json").read_text("utf-8"))
    assert first == {
        "id": "review-1",
        "fields": {"text": 'A "film",\nof two lines', "length": "7"},
        "metadata": {"why": "The score is below.", "due": "2026-12-01", "possible": ["negative", "positive"]},
        "suggestions": {},
        "responses": {},
        "vectors": {},
    }
    assert second["fields"] == {"external_id": "review-2"}
    users = "06f7d4c0-e048-43d2-ab3f-06f147616ac6", "8aaf57d2-cb8e-4673-a7ce-2f684b60adf5"
    exported = [
        {
            **first,
            "responses": {"label": [{"value": "positive", "user_id": users[0]}]},
            "_server_id": "4f56e32b-9582-47de-a2b1-b230732bb07b",
        },
        {**second, "responses": {"label": [{"value": "negative", "user_id": one} for one in users]}},
        {**second, "id": "review-3"},
    ]
    found = read_labels_of_reviewers(saved(tmp_path, exported), ReviewFormat.ARGILLA)
    assert {one.reviewer: one.labels for one in found} == {
        f"Argilla {users[0]}": {"review-1": "positive", "review-2": "negative"},
        f"Argilla {users[1]}": {"review-2": "negative"},
    }


@pytest.mark.parametrize(
    ("wanted", "content", "said"),
    [
        ("csv", "id,label\n1,2\n", "columns: expected external_id, label"),
        ("csv", "external_id,label\na,1\na,2\n", "row 1, external_id: expected every id once"),
        ("csv", "external_id,label\n,1\n", "row 0, external_id: expected"),
        ("csv", "external_id,label,label\na,1,0\n", "each once, got 'external_id', 'label', 'label'"),
        ("csv", "external_id,label\na,1\nb,spam, or not\n", "row 1: expected 2 values, got 3; put"),
        ("csv", 'external_id,label\na,1\n"b,1\nc,1\n', "expected CSV, got unexpected end of data; a double quote"),
        ("label-studio", "{", "expected JSON"),
        ("label-studio", "{}", "expected a list"),
        (
            "label-studio",
            [{"data": {"text": "t"}, "annotations": [annotation("x", 1, "")]}],
            "task 0: data: external_id: expected text",
        ),
        (
            "label-studio",
            [task("a", {**annotation("x", 1, ""), "result": []})],
            "expected one choice by .*, got none",
        ),
        ("label-studio", [task("a", annotation("x", 1, "", "y"))], "expected one choice by .*, got 2; make the choice"),
        ("label-studio", [{"data": {"external_id": "a"}}], "task 0: annotations: expected a list"),
        ("argilla", [{"id": "a"}], "record with id 'a': responses: expected an object"),
        ("argilla", [{"id": "a", "responses": {"b": [], "c": []}}], "expected a question named 'label'"),
        ("argilla", [{"id": "a", "responses": {"b": [{"value": 1}]}}], "value: expected text, got 1"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, wanted: str, content: object, said: str) -> None:
    path = saved(tmp_path, content)
    with pytest.raises(InvalidInputError, match=said):
        read_labels_of_reviewers(path, ReviewFormat(wanted))


def test_the_format_follows_from_a_csv_file_alone() -> None:
    assert format_of(None, Path("points.CSV")) is ReviewFormat.CSV
    with pytest.raises(InvalidInputError, match="format: expected csv, label-studio, argilla, got none, "):
        format_of(None, Path("points.json"))
