"""Points go to a tool for labelling and their labels come back, by the program and in Python; again, it is a no-op."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest

import venn_admit
from tests.cli.program import Program, check_refusal, versions
from tests.cli.samples import NAME
from tests.files.test_review_formats import annotation
from tests.labelling.replay import recorded, replaying
from venn_admit.files.reviews.label_studio import task
from venn_admit_client.records.reviews import ReviewPoint

TOKEN = "6d2f0b7c9a"
ANNA, BERTA = "anna@example.com", "berta@example.com"
LISTED, _, IMPORTED = recorded("label_studio_push")
EXPORTED = recorded("label_studio_pull")[-1]


def there(points: Sequence[ReviewPoint]) -> dict[str, Any]:
    """The exchange by which a project tells its tasks."""
    tasks = [{"id": number, **task(point)} for number, point in enumerate(points)]
    return {**LISTED, "answer": {"status": 200, "body": {"tasks": tasks, "total": len(tasks)}}}


def sent(points: Sequence[ReviewPoint]) -> dict[str, Any]:
    """The exchange by which a project takes tasks."""
    body = {**IMPORTED["answer"]["body"], "task_count": len(points)}
    return {
        "request": {**IMPORTED["request"], "body": [task(point) for point in points]},
        "answer": {"status": 201, "body": body},
    }


def labelled(points: Sequence[ReviewPoint], *given: tuple[str, str, str]) -> dict[str, Any]:
    """The exchange of a pull, with annotations by their labels, users and times, point by point."""
    tasks = [
        {**task(point), "annotations": [annotation(label, {"id": 7, "email": user}, at)]}
        for point, (label, user, at) in zip(points, given, strict=False)
    ]
    return {**EXPORTED, "answer": {"status": 200, "body": tasks}}


def test_points_are_pushed_and_labels_pulled_again_and_again(scored: Program) -> None:
    program = replace(scored, environment=scored.environment | {"VENN_ADMIT_REVIEW_TOKEN": TOKEN})
    with venn_admit.connect(scored.url, home=scored.home) as connection:
        classifier = connection.classifier(NAME)
        anna = classifier.reviewer("anna")
        points = anna.claim(4).points
        with replaying([there(points[:1]), sent(points[1:]), there(points), there(points)]) as replay:
            address = f"{replay.url}/projects/12/data"
            said = program("review", "push", NAME, address, "-n", 4, "--reviewer", "anna")
            assert said.stdout.startswith("3 points sent, 1 there already;"), said.stderr
            assert not said.stderr
            done = anna.push(address, token=TOKEN, count=4)
            assert (done.points, done.sent) == (4, 0)
            again = program("review", "push", NAME, address, "-n", 4, "--reviewer", "anna", "--json").result
            assert again == {"points": 4, "sent": 0, "waiting": done.waiting}
        assert (anna.held().points[0].lease_until - points[0].lease_until).days == 6

        given = (
            ("red", ANNA, "2026-11-26T20:00:00Z"),
            ("blue", BERTA, "2026-11-26T21:00:00Z"),
        )
        corrected = labelled(points, given[0], ("red", BERTA, "2026-11-27T21:00:00Z"))
        pulls = [labelled(points, *given), labelled(points, *given), labelled(points, *given), corrected, labelled([])]
        with replaying(pulls) as replay:
            address = f"{replay.url}/projects/12/data"
            outcome = program("review", "pull", NAME, address, "--json").result["reviewers"]
            assert [(one["reviewer"], one["new"]) for one in outcome] == [
                (ANNA, 1),
                (BERTA, 1),
            ]
            assert [one.id for one in anna.held().points] == [one.id for one in points[2:]]
            before = versions(scored.url)
            assert anna.pull(address, token=TOKEN) == ()
            assert program("review", "pull", NAME, address).stdout == "There are no new labels.\n"
            assert versions(scored.url) == before
            (one,) = anna.pull(address, token=TOKEN)
            assert (one.reviewer, one.corrected) == (BERTA, 1)
            assert anna.pull(address, token=TOKEN) == ()

        # What two say of a point is kept.
        with replaying([labelled(points[:1], ("blue", BERTA, "2026-11-27T21:00:00Z"))]) as replay:
            anna.pull(f"{replay.url}/projects/12/data", token=TOKEN)
        (disputed,) = classifier.disagreements()
        assert (disputed.id, disputed.label) == (points[0].id, "blue")
        assert [one.reviewer for one in disputed.labels] == [ANNA, BERTA]


def test_nothing_is_claimed_or_recorded_if_the_tool_refuses(scored: Program) -> None:
    refusal = {"status": 401, "body": {"detail": "Invalid token."}}
    with (
        venn_admit.connect(scored.url, home=scored.home) as connection,
        replaying([{**LISTED, "answer": refusal}, {**EXPORTED, "answer": refusal}]) as replay,
    ):
        reviewer = connection.classifier(NAME).reviewer("anna")
        before = versions(scored.url)
        for asked in (reviewer.push, reviewer.pull):
            with pytest.raises(venn_admit.InvalidInputError, match="the token is not accepted"):
                asked(f"{replay.url}/projects/12", token=TOKEN)
        with pytest.raises(venn_admit.InvalidInputError, match="token: expected one, here or in VENN_ADMIT_REVIEW"):
            reviewer.pull(f"{replay.url}/projects/12")
        assert versions(scored.url) == before


@pytest.mark.parametrize(
    ("external_id", "label", "said"),
    [
        ("a\0b", "red", r"label of 'a\\x00b': expected text without NUL characters"),
        ("\ud800", "red", r"label of '\\ud800': expected text that UTF-8 can encode"),
        ("a", "r" * 10_000, "got 'r{199}$"),
    ],
)
def test_labels_that_cannot_be_stored_are_refused(scored: Program, external_id: str, label: str, said: str) -> None:
    tasks = [{"data": {"external_id": external_id}, "annotations": [annotation(label, {"email": ANNA}, "")]}]
    with (
        venn_admit.connect(scored.url, home=scored.home) as connection,
        replaying([{**EXPORTED, "answer": {"status": 200, "body": tasks}}]) as replay,
        pytest.raises(venn_admit.InvalidInputError, match=said),
    ):
        connection.classifier(NAME).reviewer("anna").pull(f"{replay.url}/projects/12", token=TOKEN)


def test_a_token_is_asked_for_on_a_terminal_alone(scored: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("review", "pull", NAME)
    check_refusal(scored(*command, "https://host/projects/1"), 2, "expected one in VENN_ADMIT_REVIEW_TOKEN, got none")
    monkeypatch.setattr(sys, "stdin", Terminal())
    prompts: list[dict[str, bool]] = []

    def prompt(_: str, **how: bool) -> str:
        prompts.append(how)
        return TOKEN

    monkeypatch.setattr("typer.prompt", prompt)
    with replaying([labelled([])]) as replay:
        outcome = scored(*command, f"{replay.url}/projects/12")
    assert (outcome.code, prompts) == (0, [{"hide_input": True, "err": True}])
    assert TOKEN not in outcome.stdout + outcome.stderr


class Terminal(StringIO):
    """A standard input that a person types into."""

    def isatty(self) -> bool:
        return True
