"""Labels that are entered in place, and keys that are made and revoked."""

import csv
import re
from html import unescape

from sqlalchemy import text

from tests.cli import samples
from tests.web.visitor import OWN, Visitor
from venn_admit.flows.keys.keys import Caller, Refusal, authenticate
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import connect

LABELS = f"{OWN}/labels"


def waiting(page: str) -> list[str]:
    """The exemplars that wait for a label on a page."""
    return re.findall(r'<input type="hidden" name="external_id" value="([^"]+)"', page)


def events(own: Visitor, external_id: str) -> list[tuple[int | None, str, str]]:
    """What the ledger has of an exemplar, and the split that it is in."""
    with connect(own.runtime.engine) as connection:
        rows = connection.execute(
            text(
                "SELECT event.label, event.selection, exemplar.split FROM label_event AS event "
                "JOIN exemplar ON exemplar.id = event.exemplar_id WHERE exemplar.external_id = :id ORDER BY event.id"
            ),
            {"id": external_id},
        )
        return [(row.label, row.selection, row.split) for row in rows]


def test_a_label_is_entered_in_place_and_counts_as_random(own: Visitor) -> None:
    own.sign_in(Scope.WRITE)
    page = own.open(LABELS)
    first, second, *_ = waiting(page)
    assert f"{samples.SCORED_ROWS} points of recent traffic do not calibrate yet" in page
    assert "the newest 10,000 points that were decided on, or all if they are fewer" in " ".join(page.split())
    assert "&lt;i&gt;point&lt;/i&gt;" in page
    assert re.search(r'<a href="https://images\.example/\d+\.png" rel="noreferrer', page)
    assert "<img" not in page
    answer = own.send(LABELS, external_id=first, label="1")
    assert answer.status_code == 303
    after = own.open(answer.headers["location"])
    assert f"The label of {first} was recorded" in after
    assert waiting(after)[0] == second
    with connect(own.runtime.engine) as connection:
        stored = connection.execute(
            text(
                "SELECT event.label, event.selection, event.source FROM label_event AS event "
                "JOIN exemplar ON exemplar.id = event.exemplar_id WHERE exemplar.external_id = :id"
            ),
            {"id": first},
        ).one()
    assert stored == (1, "random", "page")


def test_what_is_no_label_is_refused(own: Visitor) -> None:
    own.sign_in(Scope.WRITE)
    (first, *_) = waiting(own.open(LABELS))
    for fields, status in (
        ({"external_id": first, "label": "3"}, 422),
        ({"external_id": first, "label": "red"}, 422),
        ({"external_id": first}, 422),
        ({"external_id": "nobody", "label": "1"}, 404),
        ({"external_id": "", "label": "1"}, 422),
        ({"external_id": first, "label": "1", "selection": "any"}, 422),
        # The list to return to would not be found, after the label was recorded.
        ({"external_id": first, "label": "1", "predicted": "zz"}, 422),
        ({"external_id": first, "label": "1", "least_q": "3", "greatest_q": "2"}, 422),
    ):
        assert own.send(LABELS, **fields).status_code == status, fields
    assert first in waiting(own.open(LABELS))


def test_a_point_that_was_chosen_does_not_calibrate_and_stays_in_the_random_sample(own: Visitor) -> None:
    own.sign_in(Scope.WRITE)
    random = waiting(own.open(LABELS))
    chosen = f"{LABELS}?least_q=0&greatest_q=1"
    page = own.open(chosen)
    assert "do not calibrate" in page
    first, *others = waiting(page)
    answer = own.send(LABELS, external_id=first, label="1", selection="selected", least_q="0", greatest_q="1")
    after = own.open(answer.headers["location"])
    assert waiting(after)[: len(others)] == others
    assert events(own, first) == [(1, "selected", "scored")]
    page = own.open(LABELS)
    assert waiting(page) == random
    known = {row["external_id"]: row["label"] for row in listed(own)}
    assert {name: label for name, label in known.items() if label} == {first: samples.CLASS_NAMES[1]}
    assert own.send(LABELS, external_id=first, label="1").status_code == 303
    assert first not in waiting(own.open(LABELS))
    assert events(own, first)[-1][1] == "random"


def test_places_hold_the_points_with_their_q_and_their_prediction(shared: Visitor) -> None:
    shared.sign_in(Scope.READ)
    found = 0
    for q in range(6):
        for predicted in range(3):
            page = shared.open(f"{LABELS}?least_q={q}&greatest_q={q}&predicted={predicted}")
            found += page.count('class="name"')
    assert 0 < found <= samples.SCORED_ROWS
    assert "No point of recent traffic there" in shared.open(f"{LABELS}?predicted=99")
    for wrong in ("least_q=2", "least_q=2&greatest_q=1", "least_q=-1&greatest_q=1"):
        assert shared.client.get(f"{LABELS}?{wrong}").status_code == 422, wrong


def test_what_labels_unlock_is_listed_with_the_fewest_labels_first(shared: Visitor) -> None:
    shared.sign_in(Scope.READ)
    page = shared.open(f"{LABELS}/budget")
    assert "What labels unlock" in page
    labels = [float(found.replace(",", "")) for found in re.findall(r"<td>([\d,]+) random labels</td>", page)]
    assert labels == sorted(labels)
    places = re.findall(r'href="([^"]+least_q=[^"]+)"', page)
    assert len(places) >= len(labels) > 0
    for place in places:
        shared.open(unescape(place))


def test_a_label_is_taken_back_after_what_that_changes_was_said(own: Visitor) -> None:
    own.sign_in(Scope.WRITE)
    (first, *_) = waiting(own.open(LABELS))
    recorded = own.open(own.send(LABELS, external_id=first, label="2").headers["location"])
    known = f"{LABELS}/known?external_id={first}"
    assert recorded.count(f'href="{known}"') == 2
    page = own.open(known)
    assert "What taking it back changes" in page
    (event,) = events(own, first)
    assert f"split {event[2]}" in page
    says = {"knn": "until they are fitted again"}.get(event[2], "will be calibrated again without it")
    assert says in page
    answer = own.send(f"{LABELS}/known", external_id=first)
    after = own.open(answer.headers["location"])
    assert f"The label of {first} was taken back" in after
    assert waiting(after)[0] == first
    assert events(own, first)[-1][0] is None
    assert "without one" in own.client.get(known).text


def test_a_label_that_is_not_there_is_told(shared: Visitor) -> None:
    shared.sign_in(Scope.READ)
    for name, status in (("nobody", 404), ("scored-1", 422)):
        answer = shared.client.get(f"{LABELS}/known?external_id={name}")
        assert answer.status_code == status
        assert 'role="alert"' in answer.text
    page = shared.open(f"{LABELS}/known?external_id=train-1")
    assert "trains the KNN" in page
    assert "Take it back" not in page
    assert shared.send(f"{LABELS}/known", external_id="train-1").status_code == 403


def listed(visitor: Visitor) -> list[dict[str, str]]:
    """The rows of the list as a file."""
    return list(csv.DictReader(visitor.client.get(f"{LABELS}/unlabelled.csv").text.splitlines()))


def test_a_reader_sees_the_list_and_no_form(shared: Visitor) -> None:
    shared.sign_in(Scope.READ)
    page = shared.open(LABELS)
    assert "scored-" in page
    assert "<select" not in page
    assert f'hx-get="{LABELS}/budget"' in page
    assert "lack" in shared.open(f"{LABELS}/budget")


def test_the_downloaded_list_is_in_the_order_of_the_page(shared: Visitor) -> None:
    shared.sign_in(Scope.WRITE)
    answer = shared.client.get(f"{LABELS}/unlabelled.csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = listed(shared)
    assert {row["selection"] for row in rows} == {"random"}
    assert len(rows) == samples.SCORED_ROWS
    on_page = waiting(shared.open(LABELS))
    assert [row["external_id"] for row in rows[: len(on_page)]] == on_page
    assert {row["label"] for row in rows} == {""}


def test_a_key_is_shown_once_and_refused_once_revoked(own: Visitor) -> None:
    own.sign_in(Scope.ADMIN)
    answer = own.send("/keys", name="the <b>importer</b>", scope="write", classifier=samples.NAME, days="30")
    assert answer.status_code == 201
    found = re.search(r"va_(\d+)_[0-9a-f]{64}", answer.text)
    assert found is not None
    engine = own.runtime.engine
    caller = authenticate(engine, found[0])
    assert isinstance(caller, Caller)
    assert (caller.scope, caller.classifier) == (Scope.WRITE, samples.NAME)
    page = own.open("/keys")
    assert found[0] not in page
    assert "the &lt;b&gt;importer&lt;/b&gt;" in page
    assert own.send(f"/keys/{found[1]}/revoke").headers["location"] == "/keys"
    assert authenticate(engine, found[0]) is Refusal.REVOKED
    assert own.send("/keys/999999/revoke").status_code == 404


def test_what_is_no_key_is_told_beside_the_form(shared: Visitor) -> None:
    shared.sign_in(Scope.ADMIN)
    for fields, why in (
        ({"name": "", "scope": "read"}, "name: expected a value"),
        ({"name": "x", "scope": "all"}, "expected read, score, write, admin"),
        ({"name": "x", "scope": "read", "days": "soon"}, "expected a number of days"),
        ({"name": "x", "scope": "read", "days": "99999"}, "expected 1 to"),
        ({"name": "x", "scope": "read", "classifier": "nobody"}, "nobody"),
    ):
        answer = shared.send("/keys", **fields)
        assert answer.status_code == 422
        assert why in answer.text
        assert "va_" not in answer.text


def test_what_is_stored_from_a_page_is_in_the_audit_ledger(own: Visitor) -> None:
    def noted() -> list[tuple[str, str | None, str | None, int | None]]:
        with connect(own.runtime.engine) as connection:
            rows = connection.execute(text("SELECT action, origin, target, status FROM audit_event ORDER BY id"))
            return [(row.action, row.origin, row.target, row.status) for row in rows]

    own.sign_in(key="va_1_" + 64 * "0")
    assert noted()[-1] == ("authenticate", "http", None, 401)
    own.sign_in(Scope.WRITE)
    before = len(noted())
    own.send(LABELS, external_id=waiting(own.open(LABELS))[0], label="1")
    assert noted()[before:] == [("post_label", "http", samples.NAME, 303)]
    own.sign_in(Scope.READ)
    assert own.send(LABELS, external_id="any", label="1").status_code == 403
    assert noted()[-1] == ("post_label", "http", samples.NAME, 403)
    own.sign_in(Scope.ADMIN)
    before = len(noted())
    made = re.search(r"va_(\d+)_", own.send("/keys", name="importer", scope="read").text)
    assert made is not None
    own.send(f"/keys/{made[1]}/revoke")
    key = f"key {made[1]}"
    assert noted()[before:] == [("create_key", "http", key, None), ("revoke_key", "http", key, None)]
