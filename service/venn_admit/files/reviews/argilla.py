"""Argilla: records as `records.from_json` of its library takes them, and the labels in what `records.to_json` writes.

https://docs.argilla.io/latest/reference/argilla/records/records describes both. Records have no suggestions, which it
would show as what to confirm.
"""

from collections.abc import Iterator
from typing import Any

from venn_admit.core.groups import attribute_text
from venn_admit.errors import InvalidInputError
from venn_admit.files.reviews.given import GivenLabels, OneLabel, by_reviewer, listed, member, shown_name
from venn_admit_client.records.reviews import ReviewPoint

QUESTION = "label"
"""What the question must be called, unless it is the only one."""


def exported_record(point: ReviewPoint) -> dict[str, Any]:
    """Return a point as a record: its attributes are the fields, and what else is known is metadata."""
    texts = {name: attribute_text(one) for name, one in point.attributes.items()}
    metadata: dict[str, Any] = {"why": point.why}
    if point.due is not None:
        metadata["due"] = point.due
    if point.possible is not None:
        metadata["possible"] = list(point.possible)
    return {
        "id": point.id,
        "fields": texts or {"external_id": point.id},
        "metadata": metadata,
        "suggestions": {},
        "responses": {},
        "vectors": {},
    }


def labels_in(place: str, exported: object) -> list[GivenLabels]:
    """Return the labels of an export: the value of each response to the question. Drafts are not told apart there.

    Raises:
        InvalidInputError: It is no such export, or a record answers several questions; the message names the record.
    """
    records = listed(place, exported)
    return by_reviewer(
        one
        for number, each in enumerate(records)
        for one in _of_record(f"{place}: record {shown_name(each, 'id', number)}", each)
    )


def _of_record(where: str, each: object) -> Iterator[OneLabel]:
    external_id = member(where, each, "id", str)
    responses = member(where, each, "responses", dict)
    if not responses:
        return
    for answer in listed(f"{where}: responses", asked(where, responses)):
        value = member(f"{where}: responses", answer, "value", str)
        user = answer.get("user_id") if isinstance(answer, dict) else None
        yield OneLabel(None if user is None else f"Argilla {user}", external_id, value, "")


def asked(where: str, answers: dict[str, object]) -> object:
    """Return what was answered to the question, among answers by the names of questions.

    Raises InvalidInputError if none has its name and there is not one alone.
    """
    if QUESTION not in answers and len(answers) != 1:
        found = ", ".join(map(ascii, answers)) or "none"
        raise InvalidInputError(f"{where}: responses: expected a question named {QUESTION!r}, got {found}")
    return answers.get(QUESTION, next(iter(answers.values())))
