"""The queue for reviewers: who gets which point, in which order, and what becomes of labels that differ."""

import math
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Connection, text

from tests.patience import PATIENCE_SECONDS, wait_until
from tests.running import EXAMPLES, Bench
from tests.templates import CopyOf, Filled
from venn_admit.errors import InvalidInputError, NotFoundError
from venn_admit.files.label_sources import LabelFile
from venn_admit.files.reviews.given import GivenLabels
from venn_admit.flows.calibration.generations import create_generation
from venn_admit.flows.data.audits import set_audits
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.label import label
from venn_admit.flows.removal.delete import delete
from venn_admit.flows.removal.forget import forget
from venn_admit.flows.reviews import exchange
from venn_admit.flows.reviews.claims import claim, holding, queue, release, renew
from venn_admit.flows.reviews.exchange import record
from venn_admit.flows.reviews.labels import disagreements, give, outcome
from venn_admit.flows.reviews.tools import pull, push
from venn_admit.labelling.tool import LabellingTool
from venn_admit.store.database.engine import transaction
from venn_admit.store.exemplars import classifiers, generations
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.reviews import reviews
from venn_admit_client.records.reviews import Reviewed, ReviewPoint

NAME = "reviews"
REJECTED = """
SELECT exemplar.external_id, decision.lower
FROM decision
INNER JOIN exemplar ON decision.exemplar_id = exemplar.id
WHERE decision.decision IS NULL
"""
EXPIRE = "UPDATE review_point SET lease_until = now() - interval '1 second' WHERE lease_until IS NOT NULL"
UNFILL = "UPDATE review_queue SET filled_at = now() - interval '1 day'"


@pytest.fixture(scope="module")
def scored_template(filled: Filled, few_reviews_template: str) -> str:
    return filled(score_tweets, few_reviews_template)


@pytest.fixture
def scored(copy_of: CopyOf, scored_template: str) -> Bench:
    """120 tweets that were scored, without labels, beside the calibrated reviews."""
    return copy_of(scored_template)


def score_tweets(bench: Bench) -> None:
    with np.load(EXAMPLES / "ood.npz") as ood:
        tweets = {name: ood[name][:120] for name in ("r", "f")}
    ids = np.array([f"tweet-{row}" for row in range(120)])
    bench.score(NAME, bench.write("tweets.npz", tweets | {"id": ids, "y": np.full(120, -1)}))


def change(bench: Bench, statement: str) -> None:
    with transaction(bench.engine) as connection:
        connection.execute(text(statement))


def labels_in(bench: Bench, rows: str) -> Path:
    path = bench.folder / "labels.csv"
    path.write_text(f"external_id,label\n{rows}\n")
    return path


def test_reviewers_at_once_never_get_the_same_point(scored: Bench) -> None:
    """Six of them, who claim and label all that was rejected, a few at a time."""
    rejected = {row.external_id for row in scored.rows(REJECTED)}
    assert len(rejected) > 50

    def work(reviewer: str) -> list[str]:
        done: list[str] = []
        while points := [one.id for one in claim(scored.engine, NAME, reviewer, count=3).points]:
            give(scored.engine, NAME, reviewer, dict.fromkeys(points, "class 1"))
            done += points
        return done

    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(work, [f"reviewer {number}" for number in range(6)]))
    assert sorted(one for of_reviewer in found for one in of_reviewer) == sorted(rejected)
    assert sum(map(bool, found)) > 1
    standing = queue(scored.engine, NAME)
    assert (standing.waiting, standing.claimed, standing.disagreements) == (0, 0, 0)
    assert sum(one.labelled for one in standing.reviewers) == len(rejected)
    # They were chosen by a rule: nothing calibrates, and the ledger says who gave them.
    assert scored.rows("SELECT DISTINCT selection FROM label_event WHERE source LIKE 'reviewer %'") == [("selected",)]
    assert scored.value("SELECT count(*) FROM exemplar WHERE external_id LIKE 'tweet%' AND split <> 'scored'") == 0


def test_what_another_claim_puts_into_the_queue_is_there(scored: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two find nothing that waits, and the second fills the queue when the first has done so."""
    point = claim(scored.engine, NAME, "anna", count=1000).points[0].id
    change(
        scored,
        "DELETE FROM review_point USING exemplar WHERE exemplar.id = review_point.exemplar_id"
        f" AND external_id = '{point}'",
    )
    filling = reviews.fill

    def fill(connection: Connection, classifier: Classifier, *, unless_within: float) -> bool:
        if unless_within == 1.0:
            with transaction(scored.engine) as other:
                assert filling(other, classifier, unless_within=0.0)
        return filling(connection, classifier, unless_within=unless_within)

    monkeypatch.setattr(reviews, "fill", fill)
    assert [one.id for one in claim(scored.engine, NAME, "berta").points] == [point]


def test_the_queue_is_filled_while_others_claim(scored: Bench) -> None:
    """Which would wait for its end: a point that was decided on again stays for them, and the next is taken out."""
    claim(scored.engine, NAME, "anna")
    release(scored.engine, NAME, "anna")
    change(scored, "UPDATE review_point SET decision_id = 0")  # before the newest decision
    with transaction(scored.engine) as connection, transaction(scored.engine) as filling:
        classifier = classifiers.by_name(connection, NAME)
        assert reviews.claim(connection, classifier, "anna", count=2, lease_seconds=60, again=False) == 2
        filling.execute(text("SET LOCAL lock_timeout = '1s'"))
        assert reviews.fill(filling, classifier, unless_within=0.0)
        filling.commit()
    found = scored.rows("SELECT reviewer FROM review_point WHERE decision_id = 0")
    assert [row.reviewer for row in found] == ["anna", "anna"]


def test_a_claim_ends_with_its_lease(scored: Bench) -> None:
    held = claim(scored.engine, NAME, "anna", count=2, lease_seconds=60)
    ids = [one.id for one in held.points]
    assert [one.id for one in claim(scored.engine, NAME, "anna", count=2).points] == ids  # its own, renewed
    assert not {one.id for one in claim(scored.engine, NAME, "berta", count=5).points} & set(ids)
    assert renew(scored.engine, NAME, "anna", ids[:1]) == 1
    assert release(scored.engine, NAME, "berta") == 5
    # What is held for long, as in a sheet, stays held when a page that is open renews it for a little.
    long = claim(scored.engine, NAME, "cora", lease_seconds=86_400).points[0].lease_until
    assert renew(scored.engine, NAME, "cora", lease_seconds=60) == 1
    assert claim(scored.engine, NAME, "cora").points[0].lease_until == long
    release(scored.engine, NAME, "cora")
    change(scored, EXPIRE)
    assert (renew(scored.engine, NAME, "anna"), holding(scored.engine, NAME, "anna").points) == (0, ())
    assert [one.id for one in claim(scored.engine, NAME, "berta", count=2).points] == ids
    # The late label is kept, ends the claim of the other, and is a second opinion once that one labels the point too.
    give(scored.engine, NAME, "anna", {ids[0]: "class 0"})
    assert [one.id for one in holding(scored.engine, NAME, "berta").points] == ids[1:]
    assert disagreements(scored.engine, NAME) == []
    assert give(scored.engine, NAME, "berta", {ids[0]: "class 1"}).points[0].disagrees


def test_who_waits_for_a_point_holds_none_after_it(scored: Bench) -> None:
    """Each of two that held what the other waits for would be a deadlock."""
    claim(scored.engine, NAME, "berta", count=3)
    of_berta = "FROM review_point INNER JOIN exemplar ON exemplar.id = exemplar_id WHERE reviewer = 'berta' ORDER BY id"
    first, *others = scored.rows(f"SELECT id, external_id {of_berta}")
    give(scored.engine, NAME, "berta", {first.external_id: "class 1"})
    release(scored.engine, NAME, "berta")
    claim(scored.engine, NAME, "anna", count=2)
    claim(scored.engine, NAME, "anna", again=True)  # so that the first point is the last in the table
    keys = [one.id for one in others]
    # The first point has this label already, so that nothing but its claim changes.
    labels = {one.external_id: "class 1" for one in (*others, first)}
    for asked in (renew, release, partial(give, labels=labels)):
        with ThreadPoolExecutor(1) as pool:
            with transaction(scored.engine) as connection:
                lock = text("SELECT FROM review_point WHERE exemplar_id = ANY(:keys) FOR UPDATE NOWAIT")
                connection.execute(lock, {"keys": [first.id]})
                done = pool.submit(asked, scored.engine, NAME, "anna")
                wait_until(lambda: scored.value("SELECT count(*) FROM pg_locks WHERE NOT granted"), "it waits")
                connection.execute(lock, {"keys": keys})
            done.result(PATIENCE_SECONDS)
        claim(scored.engine, NAME, "anna", count=2)


def test_the_queue_begins_with_what_is_due_and_what_is_nearly_admitted(scored: Bench) -> None:
    lower = {row.external_id: row.lower for row in scored.rows(REJECTED)}
    last = min(lower, key=lambda one: lower[one] or 0.0)
    others = (one for one in sorted(lower) if one != last)
    dues = {last: "2026-12-01", next(others): "2026-11-30T12:00", next(others): "soon", next(others): "2026-13-45"}
    for external_id, due in dues.items():
        change(
            scored,
            f"UPDATE exemplar SET attributes = jsonb_build_object('due', '{due}') WHERE external_id = '{external_id}'",
        )
    points = claim(scored.engine, NAME, "anna", count=1000).points
    assert sorted(one.id for one in points) == sorted(lower)
    assert [one.due for one in points[:3]] == ["2026-11-30", "2026-12-01", None]
    assert points[1].id == last
    # Near duplicates are those with the same nearest exemplar; a group stands where the best of it does.
    near = {
        row.external_id: row.near_id
        for row in scored.rows(
            "SELECT external_id, near_id FROM review_point INNER JOIN exemplar ON exemplar.id = exemplar_id"
        )
    }
    undated = [one.id for one in points if one.due is None]
    groups = list(dict.fromkeys(near[one] for one in undated))
    assert [near[one] for one in undated] == [group for group in groups for one in undated if near[one] == group]
    best = [max(lower[one] or 0.0 for one in undated if near[one] == group) for group in groups]
    assert best == sorted(best, reverse=True)
    assert len(groups) < len(undated)
    # What is known of a point gives no single class away.
    assert all(one.possible is None or len(one.possible) > 1 for one in points)
    assert {len({near.label for near in one.precedents}) for one in points} <= {0, 2}


def test_points_that_are_claimed_one_at_a_time_come_in_the_same_order(scored: Bench) -> None:
    """Near duplicates follow the first of them once that is labelled, too."""
    expected = [one.id for one in claim(scored.engine, NAME, "anna", count=20).points]
    release(scored.engine, NAME, "anna")
    found = []
    for _ in expected:
        (point,) = claim(scored.engine, NAME, "anna").points
        found.append(point.id)
        give(scored.engine, NAME, "anna", {point.id: "class 1"})
        change(scored, UNFILL)
    assert found == expected


def test_a_near_duplicate_that_comes_later_takes_the_others_along(scored: Bench) -> None:
    points = [one.id for one in claim(scored.engine, NAME, "anna", count=1000).points]
    release(scored.engine, NAME, "anna")
    first, last = (f"(SELECT id FROM exemplar WHERE external_id = '{points[place]}')" for place in (0, -1))
    near = f"(SELECT near_id FROM review_point WHERE exemplar_id = {last})"
    change(scored, f"UPDATE neighbours SET neighbour_ids[1] = {near} WHERE exemplar_id = {first}")
    change(scored, f"DELETE FROM review_point WHERE exemplar_id = {first}")
    change(scored, UNFILL)
    found = [one.id for one in claim(scored.engine, NAME, "anna", count=1000).points]
    known = "SELECT external_id FROM review_point INNER JOIN exemplar ON exemplar.id = exemplar_id"
    alike = {row.external_id for row in scored.rows(f"{known} WHERE near_id = {near}")}
    assert found[0] == points[0]
    assert set(found[: len(alike)]) == alike >= {points[0], points[-1]}
    rest = [one for one in points if one not in alike]
    assert found[len(alike) :] == rest


def test_classes_that_are_possible_by_venn_abers_are_those_that_conformal_prediction_leaves(scored: Bench) -> None:
    scored.calibrate_abers(NAME, alpha=Decimal("0.1"), score="network")
    points = claim(scored.engine, NAME, "anna", count=1000).points
    query = "SELECT external_id, network_logits, label FROM exemplar WHERE split = ANY(:splits)"
    held_out = scored.rows(query, splits=["mc", "vp"])
    logits = {row.external_id: row.network_logits for row in scored.rows(query, splits=["scored"])}

    def wrong(f: list[float], label: int) -> float:
        return 1 - float(np.exp(f[label]) / np.exp(f).sum())

    scores = [sorted(wrong(row.network_logits, label) for row in held_out if row.label == label) for label in (0, 1)]
    least = [own[math.ceil((len(own) + 1) * 0.9 - 1e-9) - 1] for own in scores]
    both = {one.id for one in points if one.possible is not None}
    assert both == {one.id for one in points if all(wrong(logits[one.id], label) <= least[label] for label in (0, 1))}
    assert 0 < len(both) < len(points)


def test_what_is_labelled_or_decided_otherwise_waits_no_longer(scored: Bench) -> None:
    waiting = {one.id for one in claim(scored.engine, NAME, "anna", count=1000).points}
    release(scored.engine, NAME, "anna")
    one, other = sorted(waiting)[:2]
    label(scored.engine, NAME, LabelFile(labels_in(scored, f"{one},0")), selection="selected", retract=False)
    found = claim(scored.engine, NAME, "anna", count=1000).points
    assert {point.id for point in found} == waiting - {one}
    label(scored.engine, NAME, LabelFile(labels_in(scored, f"{one},")), selection="selected", retract=True)
    release(scored.engine, NAME, "anna")
    # A decision that admits it, by another calibration.
    scored.calibrate(NAME, kappa=50)
    change(
        scored,
        "INSERT INTO decision (calibration_id, exemplar_id, weighted, require_full_match, support_version, predicted, "
        "match_count, distance, logits, lower, decision) SELECT 2, exemplar_id, weighted, require_full_match, "
        "support_version, predicted, match_count, distance, logits, lower, predicted FROM decision "
        f"INNER JOIN exemplar ON exemplar.id = exemplar_id WHERE external_id = '{other}'",
    )
    change(scored, UNFILL)
    assert {point.id for point in claim(scored.engine, NAME, "anna", count=1000).points} == waiting - {other}


def test_labels_that_differ_are_kept_until_one_resolves_them(scored: Bench) -> None:
    (point,) = claim(scored.engine, NAME, "anna").points
    done = give(scored.engine, NAME, "anna", {point.id: 0})
    assert (done.new, done.points[0].label, done.points[0].disagrees) == (1, "class 0", False)
    assert claim(scored.engine, NAME, "anna", again=True).points == ()  # a second opinion is somebody else's
    (other,) = claim(scored.engine, NAME, "berta").points  # which takes no place of a second opinion
    assert {one.id for one in claim(scored.engine, NAME, "berta", again=True).points} == {other.id, point.id}
    assert give(scored.engine, NAME, "berta", {point.id: "class 1"}).corrected == 1
    assert claim(scored.engine, NAME, "cora", again=True).points == ()
    (found,) = disagreements(scored.engine, NAME)
    assert (found.id, found.label) == (point.id, "class 1")
    assert [(one.reviewer, one.label) for one in found.labels] == [("anna", "class 0"), ("berta", "class 1")]
    assert queue(scored.engine, NAME).disagreements == 1
    give(scored.engine, NAME, "cora", {point.id: "class 0"})
    assert len(disagreements(scored.engine, NAME)[0].labels) == 3
    resolved = give(scored.engine, NAME, "cora", {point.id: "class 1"}, resolves=True)
    assert not resolved.points[0].disagrees
    assert disagreements(scored.engine, NAME) == []
    assert scored.value("SELECT count(*) FROM review_label") == 4  # nothing is lost


def test_what_was_corrected_or_taken_back_elsewhere_is_in_no_dispute_and_comes_back(scored: Bench) -> None:
    (point,) = claim(scored.engine, NAME, "anna").points
    for reviewer, given in (("anna", "class 0"), ("berta", "class 1")):
        give(scored.engine, NAME, reviewer, {point.id: given})

    def imported() -> int:
        labels = [GivenLabels("berta", {point.id: "class 1"})]
        return sum(one.rows for one in record(scored.engine, NAME, "sheet.csv", labels, reviewer="berta"))

    assert imported() == 0
    label(scored.engine, NAME, LabelFile(labels_in(scored, f"{point.id},")), selection="selected", retract=True)
    assert (disagreements(scored.engine, NAME), queue(scored.engine, NAME).disagreements) == ([], 0)
    assert imported() == 1
    label(scored.engine, NAME, LabelFile(labels_in(scored, f"{point.id},0")), selection="selected", retract=False)
    assert imported() == 1
    assert scored.value("SELECT label FROM exemplar WHERE external_id = :id", id=point.id) == 1
    assert imported() == 0


def test_who_leaves_points_to_others_gets_every_other_one_first(scored: Bench) -> None:
    waiting = len(claim(scored.engine, NAME, "anna", count=1000).points)
    release(scored.engine, NAME, "anna")
    seen = []
    for _ in range(2 * waiting):
        (point,) = claim(scored.engine, NAME, "anna").points
        seen.append(point.id)
        assert release(scored.engine, NAME, "anna", [point.id], to_others=True) == 1
    assert len(set(seen[:waiting])) == waiting
    assert seen[waiting:] == seen[:waiting]
    assert [one.id for one in claim(scored.engine, NAME, "berta").points] == seen[:1]


SELECTIONS = """
SELECT DISTINCT ON (external_id) external_id, selection
FROM label_event INNER JOIN exemplar ON exemplar.id = exemplar_id
WHERE external_id = ANY(:ids) ORDER BY external_id, label_event.id DESC
"""


DRAWN = """
SELECT external_id, md5(exemplar_id::text)
FROM audit_draw INNER JOIN exemplar ON exemplar.id = exemplar_id
WHERE is_drawn
"""


def score_by_a_rule(bench: Bench) -> None:
    set_audits(bench.engine, NAME, rate=0.5, rejected=0.5)
    score_tweets(bench)


@pytest.fixture(scope="module")
def audited_template(filled: Filled, few_reviews_template: str) -> str:
    return filled(score_by_a_rule, few_reviews_template)


@pytest.fixture
def audited(copy_of: CopyOf, audited_template: str) -> Bench:
    """As `scored`, while a rule draws half of the points."""
    return copy_of(audited_template)


def test_drawn_points_come_in_an_order_that_says_nothing_of_them_and_count(audited: Bench) -> None:
    change(audited, "UPDATE decision SET decision = predicted, reason = NULL WHERE exemplar_id % 3 = 0")
    drawn = {row.external_id: row.md5 for row in audited.rows(DRAWN)}
    rejected = {row.external_id for row in audited.rows(REJECTED)}
    assert drawn.keys() - rejected
    assert rejected - drawn.keys()
    points = [one.id for one in claim(audited.engine, NAME, "anna", count=1000).points]
    assert points[: len(drawn)] == sorted(drawn, key=lambda one: drawn[one])
    assert set(points) == drawn.keys() | rejected
    release(audited.engine, NAME, "anna")
    assert [claim(audited.engine, NAME, name).points[0].id for name in ("anna", "berta")] == points[:2]

    given = [*points[:3], points[-1]]
    give(audited.engine, NAME, "anna", dict.fromkeys(given, 1))
    selections = {row.external_id: row.selection for row in audited.rows(SELECTIONS, ids=given)}
    assert [selections[one] for one in given] == ["review", "review", "review", "selected"]


def test_a_complaint_about_a_drawn_point_leaves_it_to_reviewers(audited: Bench) -> None:
    """What people complain about are errors: without their labels, what was drawn would look better than it is."""
    drawn = sorted(row.external_id for row in audited.rows(DRAWN))

    def complain(ids: list[str]) -> None:
        path = labels_in(audited, "\n".join(f"{one},0" for one in ids))
        label(audited.engine, NAME, LabelFile(path), selection="selected", retract=False)

    def offered() -> set[str]:
        change(audited, UNFILL)
        return {one.id for one in claim(audited.engine, NAME, "anna", count=1000).points}.intersection(drawn)

    complain(drawn[::2])
    assert offered() == set(drawn)
    complain(drawn[1::2])
    assert offered() == set(drawn)
    give(audited.engine, NAME, "anna", dict.fromkeys(drawn, 0))
    assert offered() == set()
    count = "SELECT count(DISTINCT exemplar_id) FROM standing_label_v2 WHERE label IS NOT NULL AND weight IS NOT NULL"
    assert audited.value(count) == len(drawn)


def test_what_somebody_chose_to_label_before_has_a_draw(few_reviews: Bench) -> None:
    score_tweets(few_reviews)
    rows = "\n".join(f"tweet-{row},0" for row in range(0, 120, 3))
    label(few_reviews.engine, NAME, LabelFile(labels_in(few_reviews, rows)), selection="selected", retract=False)
    set_audits(few_reviews.engine, NAME, rate=0.5, rejected=0.5)
    few_reviews.calibrate(NAME, kappa=90)
    score_tweets(few_reviews)
    assert few_reviews.value("SELECT count(*) FROM audit_draw") == 120


def test_a_document_counts_when_the_last_of_its_drawn_points_is_labelled(audited: Bench) -> None:
    ids = [one.id for one in claim(audited.engine, NAME, "anna", count=3).points]
    change(audited, f"UPDATE exemplar SET document_id = 'one' WHERE external_id IN {tuple(ids)!r}")
    for number, labels in enumerate(({ids[0]: 0}, {ids[1]: 1}, {ids[2]: 1})):
        done = give(audited.engine, NAME, "anna", labels)
        assert (done.rows, done.new) == (1, 1)
        counting = {row.selection for row in audited.rows(SELECTIONS, ids=ids)}
        assert counting == ({"review"} if number == 2 else {"selected"})
    assert audited.value("SELECT count(*) FROM review_label") == 3
    again = give(audited.engine, NAME, "berta", {ids[0]: 1})
    assert (again.rows, again.corrected, again.unchanged) == (1, 1, 0), "what counts already is not given again"


def test_reviewers_who_label_the_last_points_of_a_document_at_once_make_it_count(audited: Bench) -> None:
    ids = [one.id for one in claim(audited.engine, NAME, "anna", count=2).points]
    change(audited, f"UPDATE exemplar SET document_id = 'one' WHERE external_id IN {tuple(ids)!r}")
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with ThreadPoolExecutor(1) as threads:
        others: list[Future[Reviewed]] = []

        def meanwhile(*_: object) -> None:
            others.append(threads.submit(give, audited.engine, NAME, "berta", {ids[1]: 1}))
            wait_until(lambda: audited.value(waiting), "the other waits for a lock")

        give(audited.engine, NAME, "anna", {ids[0]: 0}, on_stored=meanwhile)
        assert others[0].result().new == 1
    assert {row.selection for row in audited.rows(SELECTIONS, ids=ids)} == {"review"}


def test_reviews_are_forgotten_and_deleted_with_their_points(scored: Bench) -> None:
    first, second = claim(scored.engine, NAME, "anna", count=2).points
    give(scored.engine, NAME, "anna", {first.id: 0, second.id: 1})
    removed = forget(scored.workspace(), NAME, [first.id], []).rows
    assert (removed["review_point"], removed["review_label"]) == (1, 1)
    would, done = (delete(scored.workspace(), NAME, dry_run=dry_run).rows for dry_run in (True, False))
    assert would == {table: rows for table, rows in done.items() if table not in ("admit_evidence", "abers_evidence")}
    assert would["review_label"] == 1
    for table in ("review_queue", "review_point", "review_label"):
        assert scored.value(f"SELECT count(*) FROM {table}") == 0


def test_what_is_refused(scored: Bench) -> None:
    for refused in ({"count": 0}, {"count": 1001}, {"lease_seconds": 9.0}, {"lease_seconds": float("nan")}):
        with pytest.raises(InvalidInputError, match="expected"):
            claim(scored.engine, NAME, "anna", **refused)
    with pytest.raises(InvalidInputError, match="reviewer: expected 1 to 100 printable"):
        claim(scored.engine, NAME, " ")
    with pytest.raises(InvalidInputError, match="expected a class number"):
        give(scored.engine, NAME, "anna", {"tweet-0": "class 2"})
    with pytest.raises(NotFoundError, match="no exemplar 'nothing'"):
        give(scored.engine, NAME, "anna", {"nothing": 1})
    for one, expected in (("\ud800", "text that UTF-8 can encode"), ("\0", "text without NUL"), ("", "1 to 1,000")):
        with pytest.raises(InvalidInputError, match=f"ids: expected {expected}"):
            give(scored.engine, NAME, "anna", {one: 1})
        for asked in (renew, release):
            with pytest.raises(InvalidInputError, match=f"ids: expected {expected}"):
                asked(scored.engine, NAME, "anna", [one])
    with pytest.raises(InvalidInputError, match="labels: expected text that UTF-8 can encode"):
        give(scored.engine, NAME, "anna", {"tweet-0": "\ud800"})
    with pytest.raises(NotFoundError, match=r"^sheet\.csv: classifier 'reviews' has no exemplar 'nothing'; if it was"):
        record(
            scored.engine,
            NAME,
            "sheet.csv",
            [GivenLabels("anna", {"tweet-0": "1"}), GivenLabels("berta", {"tweet-1": "1", "nothing": "1"})],
            reviewer="anna",
        )
    assert scored.value("SELECT count(*) FROM review_label") == 0


def test_labels_of_files_are_names_before_they_are_numbers(scored: Bench) -> None:
    change(scored, """UPDATE classifier SET class_names = '{1," two"}'""")
    given = GivenLabels("anna", {"tweet-1": "1", "tweet-2": "0", "tweet-3": " two"})
    record(scored.engine, NAME, "sheet.csv", [given], reviewer="anna")
    found = scored.rows(
        "SELECT external_id, given.label FROM review_label AS given INNER JOIN exemplar ON exemplar.id = exemplar_id"
    )
    assert {row.external_id: row.label for row in found} == {"tweet-1": 0, "tweet-2": 0, "tweet-3": 1}


def test_labels_that_come_back_again_after_a_switch_are_known(scored: Bench) -> None:
    given = [GivenLabels("anna", {"tweet-1": "1", "tweet-2": "1"}), GivenLabels("berta", {"tweet-1": "0"})]
    record(scored.engine, NAME, "sheet.csv", given, reviewer="anna")
    made = create_generation(scored.engine, NAME)
    for name in (NAME, f"{NAME}@2"):
        assert record(scored.engine, name, "sheet.csv", given, reviewer="anna") == []
    with transaction(scored.engine) as connection:  # as a switch does, which asks for a calibration
        generations.make_current(connection, classifiers.by_name(connection, NAME), made)
    assert record(scored.engine, NAME, "sheet.csv", given, reviewer="anna") == []
    given = [GivenLabels("anna", {"tweet-1": "1", "tweet-2": "0"}), given[1]]
    (done,) = record(scored.engine, NAME, "sheet.csv", given, reviewer="anna")
    assert (done.reviewer, done.rows, done.corrected) == ("anna", 1, 1)


def test_an_unchanged_label_that_a_tool_has_a_newer_time_of_does_not_count_again(scored: Bench) -> None:
    anna, berta = GivenLabels("anna", {"tweet-1": "1"}), GivenLabels("berta", {"tweet-1": "0"})
    record(scored.engine, NAME, "tasks.json", [anna, berta], reviewer="carla")
    assert record(scored.engine, NAME, "tasks.json", [berta, anna], reviewer="carla") == []
    assert scored.value("SELECT label FROM exemplar WHERE external_id = 'tweet-1'") == 0
    give(scored.engine, NAME, "anna", {"tweet-1": "1"})
    assert scored.value("SELECT label FROM exemplar WHERE external_id = 'tweet-1'") == 1
    assert record(scored.engine, NAME, "tasks.json", [anna, berta], reviewer="carla") == []


def test_what_was_predicted_comes_from_the_generation_that_has_the_point(scored: Bench) -> None:
    """Only the one from before the switch has the tweets, and decided on them."""
    before = give(scored.engine, NAME, "anna", {"tweet-1": 1, "tweet-2": 1})
    made = create_generation(scored.engine, NAME)
    with transaction(scored.engine) as connection:  # as a switch does, which asks for a calibration
        generations.make_current(connection, classifiers.by_name(connection, NAME), made)
    again = give(scored.engine, NAME, "anna", {"tweet-1": 1, "tweet-2": 1})
    assert [one.id for one in again.points] == ["tweet-1", "tweet-2"]
    assert again.points == before.points
    assert all(one.decision is not None for one in again.points)
    (other,) = give(scored.engine, NAME, "berta", {"tweet-1": 0}).points
    assert (other, other.disagrees) == (outcome(scored.engine, NAME, "berta", "tweet-1"), True)


class Shelf(LabellingTool):
    """A tool in memory, which takes its time to add points."""

    def __init__(self, given: Sequence[GivenLabels] = ()) -> None:
        self.place = "a shelf"
        self.points: list[str] = []
        self.given = list(given)

    def known(self) -> set[str]:
        return set(self.points)

    def _add(self, points: Sequence[ReviewPoint]) -> None:
        time.sleep(0.2)
        self.points += [point.id for point in points]

    def labels(self) -> list[GivenLabels]:
        return self.given


def test_two_who_push_at_once_send_each_point_once(scored: Bench) -> None:
    shelf = Shelf()
    with ThreadPoolExecutor(2) as pool:
        pushed = list(pool.map(lambda _: push(scored.engine, NAME, "anna", shelf, count=3), range(2)))
    assert len(shelf.points) == len(set(shelf.points)) == 3
    assert sorted(one.sent for one in pushed) == [0, 3]


def test_a_push_waits_for_one_of_another_generation(scored: Bench) -> None:
    create_generation(scored.engine, NAME)
    with ThreadPoolExecutor(1) as pool:
        with reviews.pushing(scored.engine, find(scored.engine, NAME)):
            pushed = pool.submit(push, scored.engine, f"{NAME}@2", "anna", Shelf(), count=3)
            with pytest.raises(TimeoutError):
                pushed.result(0.5)
        assert pushed.result(PATIENCE_SECONDS).sent == 0


def test_two_who_pull_at_once_record_each_label_once(scored: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second begins before the first records anything, and anna corrects a label meanwhile."""
    shelf = Shelf([GivenLabels("anna", {"tweet-1": "1", "tweet-2": "1"}), GivenLabels("berta", {"tweet-1": "0"})])
    begun: list[Future[list[Reviewed]]] = []

    def give_late(*arguments: Any, **more: Any) -> Reviewed:
        if not begun:
            shelf.given = [GivenLabels("anna", {"tweet-1": "1", "tweet-2": "0"}), shelf.given[1]]
            begun.append(pool.submit(pull, scored.engine, NAME, shelf, reviewer="carla"))
            with suppress(TimeoutError):
                begun[0].result(1)
        return give(*arguments, **more)

    monkeypatch.setattr(exchange, "give", give_late)
    with ThreadPoolExecutor(1) as pool:
        assert len(pull(scored.engine, NAME, shelf, reviewer="carla")) == 2
        (second,) = begun[0].result(PATIENCE_SECONDS)
    assert (second.reviewer, second.rows, second.corrected) == ("anna", 1, 1)
    assert scored.value("SELECT count(*) FROM review_label") == 4
    assert scored.value("SELECT count(*) FROM label_event WHERE source LIKE 'reviewer %'") == 4
