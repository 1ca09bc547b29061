"""Label Studio and Argilla over their REST interfaces, against recorded exchanges of the form that these document."""

import socket
from typing import Any

import pytest

from tests.files.test_review_formats import POINTS, annotation, task
from tests.labelling.replay import Replay, recorded, replaying
from venn_admit.errors import InvalidInputError, VennAdmitError
from venn_admit.labelling import label_studio, tool, web
from venn_admit.labelling.places import tool_at

DATASET = "f0a6c2d4-1c3b-4b7e-9a55-2f9b8f1f7d10"
LEGACY, KEY = "6d2f0b7c9a", "argilla.apikey"
PERSONAL = "eyJhbGciOiJIUzI1NiJ9.eyJ0b2tlbl90eXBlIjoicmVmcmVzaCJ9.c2ln"


@pytest.fixture(autouse=True)
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nothing sleeps; the result is filled with the seconds for which it would."""
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    return slept


def project(replay: Replay, token: str = LEGACY) -> tool.LabellingTool:
    return tool_at(f"{replay.url}/projects/12/data?tab=3", token)


def dataset(replay: Replay) -> tool.LabellingTool:
    return tool_at(f"{replay.url}/dataset/{DATASET}/annotation-mode", f"{KEY}\n")


def send(found: tool.LabellingTool) -> None:
    known = found.known()
    found.add([one for one in POINTS if one.id not in known])


def export(answer: Any, *, times: int = 1, **more: Any) -> list[dict[str, Any]]:
    """The exchange of a pull from Label Studio, with another answer."""
    (_, exchange) = recorded("label_studio_pull")
    return [{**exchange, "answer": {"status": 200, "body": answer, **more}}] * times


def test_points_go_to_label_studio() -> None:
    with replaying(recorded("label_studio_push")) as replay, project(replay) as studio:
        assert studio.known() == {"review-0", "review-9"}  # and a task of somebody else
        studio.add(POINTS)
        studio.add([])


def test_points_go_to_label_studio_with_a_personal_token(without_waiting: list[float]) -> None:
    with replaying(recorded("label_studio_push_with_a_personal_token")) as replay:
        address = f"{replay.url}/studio/projects/12"
        with tool_at(address, PERSONAL) as studio:
            assert studio.known() == set()
            studio.add(POINTS)
    assert without_waiting == [label_studio.IMPORT_WAITS[0]]


def test_labels_come_from_label_studio(without_waiting: list[float]) -> None:
    with replaying(recorded("label_studio_pull")) as replay, project(replay) as studio:
        found = [(one.reviewer, one.labels) for one in studio.labels()]
    assert found == [("Label Studio 8", {"review-1": "negative"}), ("anna@example.com", {"review-1": "positive"})]
    assert without_waiting == [web.WAITS[0]]


def test_points_go_to_argilla_with_what_the_dataset_takes() -> None:
    with replaying(recorded("argilla_push")) as replay, dataset(replay) as argilla:
        assert argilla.known() == {"review-0", "review-9"}  # and a record of somebody else
        argilla.add(POINTS)


def test_labels_come_from_argilla_without_drafts() -> None:
    with replaying(recorded("argilla_pull")) as replay, dataset(replay) as argilla:
        found = [(one.reviewer, one.labels) for one in argilla.labels()]
    assert found == [
        (None, {"review-2": "negative"}),  # of a user who was deleted
        ("Argilla 8aaf57d2-cb8e-4673-a7ce-2f684b60adf5", {"review-1": "negative"}),
        ("Argilla 06f7d4c0-e048-43d2-ab3f-06f147616ac6", {"review-1": "positive"}),
    ]


def test_points_are_sent_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "BATCH", 1)
    (*_, whole) = recorded("label_studio_push")
    batches = [
        {
            "request": {**whole["request"], "body": [one]},
            "answer": {"status": 201, "body": {**whole["answer"]["body"], "task_count": 1}},
        }
        for one in whole["request"]["body"]
    ]
    with replaying(batches) as replay, project(replay) as studio:
        studio.add(POINTS)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, {"detail": "Invalid token."}, "status 401: .*Invalid token.*; the token is not accepted; give one"),
        (403, {"detail": "You do not have permission"}, "status 403.*give the token of somebody who manages"),
        (404, "<html>", "status 404; it is not there, or"),
        (400, {"validation_errors": [LEGACY]}, r"status 400: .*\*\*\*"),
        (302, "", "a redirect to 'https://elsewhere.example/login', which is not followed, since the token"),
        (200, "<html>", "expected JSON, got something else; give the address"),
        (200, {"tasks": []}, "export: expected a list"),
        (
            200,
            [task("a", {**annotation("x", 1, ""), "result": []})],
            "export: task with id 1: annotation 0: expected one choice by a control named .*, got none; make the",
        ),
    ],
)
def test_a_refusal_says_what_to_do_and_shows_no_token(status: int, body: Any, said: str) -> None:
    location = {"Location": f"https://elsewhere.example/login?next={LEGACY}"}
    with (
        replaying(export(body, status=status, headers=location)) as replay,
        project(replay) as studio,
        pytest.raises(InvalidInputError, match=said) as refused,
    ):
        studio.labels()
    assert LEGACY not in str(refused.value)
    assert f"{replay.url}/" in str(refused.value)


def test_what_reads_is_asked_again_as_often_as_is_said(without_waiting: list[float]) -> None:
    times = len(web.WAITS) + 1
    with (
        replaying(export({"detail": "busy"}, times=times, status=502, headers={"Retry-After": "5"})) as replay,
        project(replay) as studio,
        pytest.raises(VennAdmitError, match=r"status 502: .*busy.*; try again later"),
    ):
        studio.labels()
    assert without_waiting == [max(one, 5.0) for one in web.WAITS]
    without_waiting.clear()
    with (
        replaying(export(None, times=times, dropped=True)) as replay,
        project(replay) as studio,
        pytest.raises(VennAdmitError, match="expected an answer, got RemoteProtocolError"),
    ):
        studio.labels()
    assert without_waiting == list(web.WAITS)


@pytest.mark.parametrize("answer", [{"dropped": True}, {"status": 504, "body": "", "headers": {"Retry-After": "1"}}])
def test_points_whose_answer_is_lost_are_not_sent_twice(answer: dict[str, Any], without_waiting: list[float]) -> None:
    (*_, last) = recorded("label_studio_push")
    with (
        replaying([{**last, "answer": answer}]) as replay,
        project(replay) as studio,
        pytest.raises(VennAdmitError, match=r"POST .*/api/projects/12/import: expected an answer"),
    ):
        studio.add(POINTS)
    assert without_waiting == []


def test_a_tool_that_cannot_be_reached_is_tried_again(without_waiting: list[float]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/projects/1"
    with (
        tool_at(address, LEGACY) as studio,
        pytest.raises(VennAdmitError, match=r"got ConnectError: .*; correct"),
    ):
        studio.add(POINTS)
    assert without_waiting == list(web.WAITS)


@pytest.mark.parametrize(
    ("recording", "place", "body", "said"),
    [
        ("label_studio_push", 0, {"tasks": [], "total": 1}, "tasks: expected 1 items, got others"),
        ("label_studio_push", 0, {"tasks": [{"id": 1}] * 2, "total": 2}, "tasks: expected 2 items, got others"),
        ("label_studio_push", 0, {"tasks": [{"id": 1}], "total": 10**12}, "tasks: expected at most 1,000,000 items"),
        ("label_studio_push", 0, {"results": []}, "tasks: tasks: expected a list, got None"),
        ("label_studio_push", 2, {"task_count": 1}, "import: expected 2 tasks, got 1"),
        ("label_studio_push", 2, [], "import: task_count: expected a whole number"),
        ("argilla_push", 2, {"items": [{"title": "text"}]}, "fields: name: expected text"),
        ("argilla_push", 3, {"allow_extra_metadata": "no"}, "allow_extra_metadata: expected true or false, got 'no'"),
        ("argilla_push", 6, {"items": []}, "records: expected 2 of them, got 0"),
    ],
)
def test_an_answer_of_another_form_is_refused(recording: str, place: int, body: Any, said: str) -> None:
    exchanges = recorded(recording)[: place + 1]
    exchanges[place]["answer"]["body"] = body
    with replaying(exchanges) as replay:
        opened = project(replay) if recording == "label_studio_push" else dataset(replay)
        with opened as found, pytest.raises(InvalidInputError, match=said):
            send(found)


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        ("failed", 'No "text"', "import 7: expected that it completes, got 'No \"text\"'"),
        ("failed", "x" * 1000, r"got 'x{299}\.\.\.$"),
        ("created", None, "got 'created'"),
    ],
)
def test_an_import_that_fails_or_never_ends_is_said(
    status: str, error: str | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_studio, "IMPORT_WAITS", (0.0,))
    exchanges = recorded("label_studio_push_with_a_personal_token")[:4]
    exchanges[3]["answer"]["body"] |= {"status": status, "error": error}
    with (
        replaying(exchanges) as replay,
        tool_at(f"{replay.url}/studio/projects/12", PERSONAL) as studio,
        pytest.raises(VennAdmitError, match=said),
    ):
        send(studio)


def test_a_token_that_is_refused_again_is_not_renewed_for_ever() -> None:
    renewed, listed, *_ = recorded("label_studio_push_with_a_personal_token")
    listed["answer"] = {"status": 401, "body": {"detail": "Given token not valid"}}
    with (
        replaying([renewed, listed]) as replay,
        tool_at(f"{replay.url}/studio/projects/12", PERSONAL) as studio,
        pytest.raises(InvalidInputError, match="status 401"),
    ):
        studio.known()


@pytest.mark.parametrize(
    ("access", "said"),
    [
        ("eyJ.access", r"status 400: .*Bearer \*\*\*"),
        ("\xe9", "access: expected printable ASCII"),
        ("a\nb", "access: "),
    ],
)
def test_what_a_personal_token_is_exchanged_for_is_not_shown(access: str, said: str) -> None:
    renewed, listed, *_ = recorded("label_studio_push_with_a_personal_token")
    renewed["answer"]["body"] = {"access": access}
    listed["request"]["headers"] = {"Authorization": f"Bearer {access}"}
    listed["answer"] = {"status": 400, "body": {"received": f"Bearer {access}"}}
    with (
        replaying([renewed, listed][: 1 + access.isprintable() * access.isascii()]) as replay,
        tool_at(f"{replay.url}/studio/projects/12", PERSONAL) as studio,
        pytest.raises(InvalidInputError, match=said) as refused,
    ):
        studio.known()
    assert access not in str(refused.value)


def test_too_long_an_answer_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "MOST_BYTES", 10)
    with (
        replaying(export(["0123456789"])) as replay,
        project(replay) as studio,
        pytest.raises(InvalidInputError, match="expected at most 10 bytes, got more; export the labels to files"),
    ):
        studio.labels()


@pytest.mark.parametrize(
    ("address", "token", "said"),
    [
        ("https://host/projects/0", LEGACY, "address: expected https://host/projects/12 of Label Studio or"),
        ("https://host/dataset/12", LEGACY, "got 'https://host/dataset/12'; correct it"),
        ("ftp://host/projects/1", LEGACY, "got 'ftp://host/projects/1'"),
        ("https:///projects/1", LEGACY, "address: expected"),
        ("https://host:port/projects/1", LEGACY, "address: expected"),
        ("https://studio..host/projects/1", LEGACY, "address: expected"),
        ("https://host/projects/1/\ud800", LEGACY, "address: expected"),
        ("https://me:hunter2@host/projects/1", LEGACY, "address: expected one without a user and a password"),
        ("https://host/projects/1", "a\nb", "token: expected the text that the tool shows"),
        ("https://host/projects/1", " ", "token: expected the text that the tool shows"),
    ],
)
def test_another_address_or_token_is_refused(address: str, token: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said) as refused:
        tool_at(address, token)
    assert "hunter2" not in str(refused.value)
