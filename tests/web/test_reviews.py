"""The page of reviewers: a point at a time, and what was predicted only after its label."""

import csv
import re
from typing import Any

from sqlalchemy import text

from tests.cli.samples import CLASS_NAMES, NAME
from tests.web.visitor import OWN, Visitor
from venn_admit.flows.reviews.claims import claim, holding, queue
from venn_admit.flows.reviews.labels import give
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import transaction

REVIEW = f"{OWN}/labels/review"
OTHER_PREDICTIONS = (
    "UPDATE exemplar SET network_predicted = (network_predicted + 1) % 3 WHERE split = 'scored'",
    "UPDATE decision SET predicted = (predicted + 1) % 3, decision = (decision + 1) % 3",
    "UPDATE admit_evidence SET admit_set = '010' WHERE admit_set IN ('100', '001')",
)


def change(visitor: Visitor, *statements: str) -> None:
    with transaction(visitor.runtime.engine) as connection:
        for statement in statements:
            connection.execute(text(statement))


def held(visitor: Visitor, reviewer: str = "for write") -> list[str]:
    return [one.id for one in holding(visitor.runtime.engine, NAME, reviewer).points]


def send(visitor: Visitor, **fields: Any) -> str:
    """Send a form, and return the page that follows."""
    answer = visitor.send(REVIEW, **fields)
    assert answer.status_code == 303, answer.text
    return visitor.open(answer.headers["location"])


def test_what_no_form_sends_is_refused(own: Visitor) -> None:
    own.sign_in(Scope.WRITE)
    send(own, action="claim")
    (first,) = held(own)
    for fields in (
        {"external_id": first, "label": "1" * 5000},
        {"action": "pass", "external_id": "\0"},
        {"external_id": "\0", "label": "1"},
        {"action": "filled", "sheet": "\0"},
    ):
        answer = own.send(REVIEW, **fields)
        assert answer.status_code == 422, fields
    assert held(own) == [first]


def test_a_reviewer_takes_points_one_after_the_other(own: Visitor) -> None:
    own.sign_in(Scope.WRITE)
    assert f'href="{REVIEW}"' in own.open(f"{OWN}/labels")
    assert "Take the next point" in own.open(REVIEW)
    assert held(own) == []  # looking claims nothing
    page = send(own, action="claim")
    (first,) = held(own)
    assert f"What is {first}?" in page
    assert [re.search(rf'accesskey="{place}"', page) is not None for place in (1, 2, 3, 4)] == [True, True, True, False]

    page = send(own, action="pass", external_id=first)
    (second,) = held(own)
    assert second != first
    assert f"What is {second}?" in page
    page = send(own, external_id=second, label="1")
    assert re.search(rf"You labelled .*{second}.*the label is <strong>green</strong>, the network says", page)
    (third,) = held(own)
    assert third not in {first, second}  # those come first that were not left to others
    assert queue(own.runtime.engine, NAME).reviewers[0].labelled == 1
    assert own.send(f"{REVIEW}/renewals").status_code == 204


def test_a_button_labels_its_class_where_names_are_numbers_of_others(own: Visitor) -> None:
    own.sign_in(Scope.WRITE)
    change(own, "UPDATE classifier SET class_names = '{1,2,3}'")
    send(own, action="claim")
    assert re.search("the label is <strong>2</strong>", send(own, external_id=held(own)[0], label="1"))


def test_reviewers_disagree_and_settle_it(own: Visitor) -> None:
    own.sign_in(Scope.WRITE)
    engine = own.runtime.engine
    (point,) = claim(engine, NAME, "anna").points
    give(engine, NAME, "anna", {point.id: "red"})
    page = send(own, action="claim", again="yes")
    assert f"What is {point.id}?" in page
    page = send(own, external_id=point.id, label="blue")
    assert "Another reviewer disagrees." in page
    assert "anna: red, for write: blue" in page
    page = own.open(f"{REVIEW}?settle={point.id}")
    assert f"Settle {point.id}" in page
    page = send(own, external_id=point.id, label="red", resolves="yes")
    assert "Reviewers disagree" not in page


def test_pages_before_the_label_do_not_depend_on_what_was_predicted(own: Visitor) -> None:
    own.sign_in(Scope.WRITE)
    send(own, action="claim")
    (first,) = held(own)
    change(own, "UPDATE review_point SET lease_until = '2100-01-01' WHERE reviewer IS NOT NULL")
    pages = [REVIEW, f"{REVIEW}?labelled={first}", f"{REVIEW}?labelled=train-1"]
    listed = [f"{OWN}/labels", f"{OWN}/labels/unlabelled.csv"]

    def shown() -> list[str]:
        lists = [own.client.get(path).text.partition("Points to label")[2] for path in listed[:1]]
        return [own.client.get(path).text for path in (*pages, listed[1])] + lists

    before = shown()
    assert before[0] == before[1] == before[2]
    change(own, *OTHER_PREDICTIONS)
    assert shown() == before


def test_a_sheet_is_taken_and_recorded(own: Visitor) -> None:
    own.sign_in(Scope.WRITE)
    answer = own.send(REVIEW, action="sheet")
    assert answer.headers["content-disposition"] == 'attachment; filename="review.csv"'
    first, *_ = list(csv.DictReader(answer.text.splitlines()))
    assert first["external_id"] in held(own)
    page = send(own, action="filled", sheet=f"external_id,label\n{first['external_id']},green\n")
    assert "1 label recorded." in page
    assert first["external_id"] not in held(own)
    refused = own.send(REVIEW, action="filled", sheet="external_id,label\nx,brown\n")
    assert refused.status_code == 422
    assert "expected a class number" in refused.text
    assert "external_id,label\nx,brown\n</textarea>" in refused.text, "what was pasted is not lost"
    refused = own.send(REVIEW, action="filled", sheet="external_id,label\nx,\n")
    assert refused.status_code == 422
    assert "expected at least one label, got none" in refused.text
    page = send(own, action="filled", sheet=f"external_id,label\n{first['external_id']},green\n")
    assert "These labels were recorded before." in page


def test_ids_keep_the_spaces_around_them(own: Visitor) -> None:
    own.sign_in(Scope.WRITE)
    send(own, action="claim")
    (first,) = held(own)
    change(own, f"UPDATE exemplar SET external_id = '  ' || external_id || ' ' WHERE external_id = '{first}'")
    send(own, action="pass", external_id=f"  {first} ")
    assert f"  {first} " not in held(own)
    assert re.search(rf"You labelled .*{first}", send(own, external_id=f"  {first} ", label="1"))
    known = own.send(f"{OWN}/labels/known", external_id=f"  {first} ")
    assert known.status_code == 303, known.text


def test_who_only_reads_takes_nothing(own: Visitor) -> None:
    own.sign_in(Scope.SCORE)
    page = own.open(REVIEW)
    assert "Take the next point" not in page
    assert own.send(REVIEW, action="claim").status_code == 403
    own.sign_in(Scope.WRITE)
    assert own.send(REVIEW, action="other").status_code == 422
    assert own.send(REVIEW, external_id="scored-1").status_code == 422
    assert own.send(REVIEW, external_id="nobody", label=CLASS_NAMES[0]).status_code == 404
