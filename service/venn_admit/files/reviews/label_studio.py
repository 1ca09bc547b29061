"""Label Studio: tasks as its import takes them, and the labels in what it exports as JSON.

https://labelstud.io/guide/tasks and https://labelstud.io/guide/export describe both. Tasks have no `predictions`, which
it would show as what to confirm.
"""

from collections.abc import Iterator
from typing import Any

from venn_admit.errors import InvalidInputError
from venn_admit.files.reviews.given import GivenLabels, OneLabel, by_reviewer, listed, member, shown_name
from venn_admit_client.naming import type_text
from venn_admit_client.records.reviews import ReviewPoint

NAME = "label"
"""What the control tag of the choices must be called, unless it is the only one."""


def task(point: ReviewPoint) -> dict[str, Any]:
    """Return a point as a task: its attributes, and what is known of it, are the data."""
    known = {"external_id": point.id, "why": point.why}
    possible = None if point.possible is None else ", ".join(point.possible)
    more = {"due": point.due, "document_id": point.document, "possible": possible}
    return {"data": {**point.attributes, **known, **{name: value for name, value in more.items() if value is not None}}}


def labels_in(place: str, exported: object) -> list[GivenLabels]:
    """Return the labels of an export: of each annotation that was not skipped, the one choice.

    Raises:
        InvalidInputError: It is no such export, or an annotation has not one choice; the message names the task.
    """
    tasks = listed(place, exported)
    return by_reviewer(
        one
        for number, each in enumerate(tasks)
        for one in _of_task(f"{place}: task {shown_name(each, 'id', number)}", each)
    )


def _of_task(where: str, each: object) -> Iterator[OneLabel]:
    data = member(where, each, "data", dict)
    for number, annotation in enumerate(member(where, each, "annotations", list)):
        at = f"{where}: annotation {number}"
        if not isinstance(annotation, dict):
            raise InvalidInputError(f"{at}: expected an object, got {type_text(annotation)}")
        if annotation.get("was_cancelled"):
            continue
        results = [
            one
            for one in member(at, annotation, "result", list)
            if isinstance(one, dict) and one.get("type") == "choices"
        ]
        named = [one for one in results if one.get("from_name") == NAME] or results
        choices = [member(at, member(at, one, "value", dict), "choices", list) for one in named]
        chosen = [one for of_control in choices for one in of_control]
        if len(chosen) != 1:
            raise InvalidInputError(
                f"{at}: expected one choice by a control named {NAME!r}, got {len(chosen) or 'none'}; make the choice "
                "single and required, and correct the annotation"
            )
        (label,) = chosen
        external_id = member(f"{where}: data", data, "external_id", str)
        changed = str(annotation.get("updated_at") or annotation.get("created_at") or "")
        yield OneLabel(_reviewer(annotation.get("completed_by")), external_id, str(label), changed)


def _reviewer(completed_by: object) -> str | None:
    """Who annotated: the address of the user if the export has it, otherwise the number."""
    if isinstance(completed_by, dict):
        return str(completed_by.get("email") or f"Label Studio {completed_by.get('id')}")
    return None if completed_by is None else f"Label Studio {completed_by}"
