"""Labels of drawn points advance a certificate that stands, each by the probability with which its point was drawn."""

from collections.abc import Sequence
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

from tests.flows.calibration.test_standing import (
    LABELS,
    ONCE,
    STANDING,
    advance,
    begin,
    calibrator,
    certificate,
    count,
    everything,
    give,
)
from tests.flows.decisions.test_venn_abers import RELIABILITY
from tests.flows.logits import ALPHA, CLASSES, NAME, calibrated, exemplars, make, with_vectors
from tests.flows.recalibration import Computing
from tests.running import Arrays, Bench
from tests.templates import CopyOf, Fill, Filled
from venn_admit.cli.advice import command
from venn_admit.core.audits import drawn as drawn_at
from venn_admit.core.types import KnnParameters
from venn_admit.errors import ConflictError
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.calibration.generations import create_generation
from venn_admit.flows.calibration.recalibrate import recalibrate
from venn_admit.flows.data.audits import set_audits, show_audits
from venn_admit.flows.data.label import label
from venn_admit.flows.decisions.replay import replay
from venn_admit.flows.reports.monitor import update_monitor
from venn_admit.flows.reports.report import report
from venn_admit.methods.venn_abers.make import MadeByAbers
from venn_admit.report.calibration.payload import calibration_payload
from venn_admit.report.calibration.wording import sections
from venn_admit.store.calibrations import chains
from venn_admit.store.database.engine import connect
from venn_admit_client.records.data import Labelling

RATE, KEY = 0.3, bytes([7]) * 16
LATER = exemplars("later", 1000, seed=6)
TRUTH = dict(zip(LATER["id"].tolist(), LATER["y"].tolist(), strict=True))


def certifying(bench: Bench, name: str = NAME) -> None:
    """A chain that certifies something."""
    begin(bench, name)
    give(bench, 0, 400, name)
    advance(bench, name)


@cache
def audited(alone: bool, rejected: float) -> Fill:
    """What has points decided on while audits are drawn; alone: whether no point is part of a document."""
    return partial(draw, rejected=rejected, columns=("id", "f") if alone else ("id", "doc", "f"))


def draw(bench: Bench, name: str = NAME, *, rejected: float, columns: Sequence[str]) -> None:
    """Decide on points while audits are drawn."""
    set_audits(bench.engine, name, rate=RATE, rejected=rejected)
    with bench.engine.begin() as connection:  # so that two classifiers draw alike
        connection.exec_driver_sql("UPDATE venn_admit.audit_rule SET key = %s", (KEY,))
    bench.score(name, bench.write("later.npz", {one: LATER[one] for one in columns}), weighted=None)


def drawn(bench: Bench, name: str = NAME) -> dict[str, tuple[float, str]]:
    """The weight and the document of each drawn point."""
    query = "SELECT * FROM report.audit_draw_v1 WHERE classifier = :name AND is_drawn ORDER BY external_id"
    rows = bench.rows(query, name=name)
    return {row.external_id: (row.least_probability / row.probability, row.document_id) for row in rows}


def review(bench: Bench, ids: list[str], name: str = NAME, **changed: int) -> Labelling:
    path: Path = bench.folder / "reviewed.csv"
    labels = {one: TRUTH[one] for one in ids} | {one.replace("_", "-"): value for one, value in changed.items()}
    path.write_text("\n".join(["external_id,label", *(f"{one},{value}" for one, value in labels.items())]) + "\n")
    return label(bench.engine, name, LabelFile(path), selection="review", retract=False)


def labels_that_count(bench: Bench) -> int:
    shown = show_audits(bench.engine, NAME)
    found = shown.admitted_reviewed + shown.rejected_reviewed
    query = "SELECT count(*) FROM report.audit_draw_v1 WHERE classifier = :name AND is_reviewed"
    assert bench.value(query, name=NAME) == found, "the view says the same"
    return found


def rows_of(ids: set[str]) -> Arrays:
    """Rows of these points, without documents."""
    rows = np.isin(LATER["id"], sorted(ids))
    return {one: LATER[one][rows] for one in ("id", "f", "y")}


class Audited(Protocol):
    """A chain that certifies something, and points as `audited` leaves them, for the test alone."""

    def __call__(self, *, alone: bool = False, rejected: float = 1.0) -> Bench: ...


@pytest.fixture
def with_audits(copy_of: CopyOf, filled: Filled) -> Audited:
    def copied(*, alone: bool = False, rejected: float = 1.0) -> Bench:
        return copy_of(filled(audited(alone, rejected), filled(certifying)))

    return copied


@pytest.fixture
def reviewed(with_audits: Audited) -> Bench:
    return with_audits()


def test_labels_of_drawn_points_count_by_their_probability_and_others_stay_selected(reviewed: Bench) -> None:
    before, evidence, points = certificate(reviewed), count(reviewed, "standing_evidence"), drawn(reviewed)
    done = review(reviewed, list(TRUTH))
    assert (done.reviewed, done.not_drawn, done.calibrating) == (len(points), 1000 - len(points), {})
    assert done.recalibrations_due == 1
    assert done.kept_for_evaluation == 1000 - len(points)
    random = reviewed.value("SELECT external_id FROM exemplar WHERE split = 'vp' ORDER BY id LIMIT 1")
    (reviewed.folder / "random.csv").write_text(f"external_id,label\n{random},0\n")
    again = label(reviewed.engine, NAME, LabelFile(reviewed.folder / "random.csv"), selection="review", retract=False)
    assert (again.not_drawn, again.selected_and_calibrating) == (0, 1)
    (made,) = advance(reviewed)
    assert count(reviewed, "standing_evidence") == evidence + len(points)
    stored = reviewed.rows(
        "SELECT external_id, coalesce(weight, 1) AS weight FROM standing_evidence JOIN exemplar ON id = exemplar_id "
        "WHERE external_id LIKE 'later-%'"
    )
    assert {row.external_id: row.weight for row in stored} == {one: weight for one, (weight, _) in points.items()}
    assert {row.weight for row in stored} == {RATE, 1.0}
    after = certificate(reviewed)
    assert after.documents == before.documents + len({document for _, document in points.values()})
    ledger = reviewed.rows(
        "SELECT selection, count(*) AS labels FROM label_event JOIN exemplar ON exemplar_id = "
        "exemplar.id WHERE external_id LIKE 'later-%' GROUP BY 1 ORDER BY 1"
    )
    assert [tuple(row) for row in ledger] == [("review", len(points)), ("selected", 1000 - len(points))]
    assert labels_that_count(reviewed) == len(points)
    assert review(reviewed, list(points)).unchanged == len(points)
    assert not advance(reviewed) or certificate(reviewed) == after
    decision = reviewed.value("SELECT max(id) FROM decision")
    assert replay(reviewed.workspace(), decision).differing == ()
    assert made == reviewed.value("SELECT calibration_id FROM calibration_in_use_v1")


def test_the_drawn_points_of_a_document_are_labelled_together(reviewed: Bench) -> None:
    points = drawn(reviewed)
    documents = [document for _, document in points.values()]
    first = next(one for one, (_, document) in points.items() if documents.count(document) == 2)
    with pytest.raises(
        ConflictError, match=r"of document 'later-\d+' was drawn too and has no label; a document counts"
    ):
        review(reviewed, [first])
    both = [one for one, (_, document) in points.items() if document == points[first][1]]
    other = next(one for one in both if one != first)
    path = reviewed.folder / "mixed.csv"
    path.write_text(f"external_id,label,selection\n{first},{TRUTH[first]},review\n{other},{TRUTH[other]},selected\n")
    with pytest.raises(ConflictError, match=f"exemplar '{other}' of document"):
        label(reviewed.engine, NAME, LabelFile(path), selection="review", retract=False)
    assert review(reviewed, both).reviewed == 2
    assert labels_that_count(reviewed) == 2
    path.write_text(f"external_id,label\n{first},\n")
    label(reviewed.engine, NAME, LabelFile(path), selection="review", retract=True)
    assert labels_that_count(reviewed) == 1
    review(reviewed, [first])
    assert labels_that_count(reviewed) == 1, "the chain does not count it again"
    alone = next(one for one, (_, document) in points.items() if documents.count(document) == 1)
    path.write_text(f"external_id,label\n{alone},{TRUTH[alone]}\n")
    label(reviewed.engine, NAME, LabelFile(path), selection="random", retract=False)
    assert labels_that_count(reviewed) == 2
    assert review(reviewed, [], **{first.replace("-", "_"): (TRUTH[first] + 1) % CLASSES}).corrected == 1


def test_drawn_points_that_the_smallest_rate_would_have_drawn_calibrate_if_they_stand_alone(
    with_audits: Audited,
) -> None:
    bench = with_audits(alone=True)
    sampled = set(np.array(list(TRUTH))[drawn_at(KEY, [one.encode() for one in TRUTH], np.full(len(TRUTH), RATE))])
    points = drawn(bench)
    assert sampled < set(points), "and rejected points beside them"
    done = review(bench, list(TRUTH))
    assert (done.reviewed, sum(done.calibrating.values())) == (len(points), len(sampled))
    query = "SELECT external_id FROM exemplar WHERE external_id LIKE 'later-%' AND split <> 'scored'"
    assert {row.external_id for row in bench.rows(query)} == sampled
    weights = {weight for one, (weight, _) in points.items() if one in sampled}
    assert weights == {RATE, 1.0}, "some of them were rejected"
    before = count(bench, "standing_evidence")
    advance(bench)
    assert count(bench, "standing_evidence") == before + len(points), "for the chain all of them count"

    made = report(bench.workspace(), NAME, calibration_id=None)
    stored = next(one for one in sections(made, command) if one.title == "What is stored")
    assert any(part.endswith("with probability 0.3 to 1.") for part in stored.parts if isinstance(part, str))
    (rule,) = calibration_payload(made, command)["stored"]["labels"]["review"]["rules"]
    assert rule == {
        "rule": show_audits(bench.engine, NAME).rule,
        "least_probability": RATE,
        "largest_probability": 1.0,
        "exemplars": len(points),
        "calibrating": len(sampled),
    }
    create_generation(bench.engine, NAME)
    other = next(one for one in points if one not in sampled)
    with pytest.raises(ConflictError, match="its label was selected in"):
        bench.ingest(f"{NAME}@2", bench.write("again.npz", rows_of({*sampled, other})), "held-out")
    bench.ingest(f"{NAME}@2", bench.write("again.npz", rows_of(sampled)), "held-out")
    query = "SELECT count(*) FROM label_event WHERE first_arrived_at IS NOT NULL AND selection = 'random'"
    assert bench.value(query) == len(sampled), "in another generation too they are a random sample"


@pytest.mark.parametrize("rejected", [1.0, 0.5])
def test_a_chain_that_begins_after_audits_takes_what_calibrates_as_a_sample_at_one_rate(
    bench: Bench, rejected: float
) -> None:
    """Whatever the draws were: the smallest rate has chosen among drawn points, and random labels are random.

    If it weighed rejected points by the rates once more, thresholds of which far less than 1 - alpha is right would be
    certified: points below the present threshold are where most errors are.
    """
    make(bench)
    bench.ingest(NAME, bench.write("held-out.npz", exemplars("held-out", 800, seed=1)), "held-out")
    calibrated(bench, certify="predicted", score="network")
    draw(bench, rejected=rejected, columns=("id", "f"))
    points = drawn(bench)
    review(bench, list(points)[::2])
    path = bench.folder / "random.csv"
    path.write_text("\n".join(["external_id,label", *(f"{one},{TRUTH[one]}" for one in list(TRUTH)[::3])]) + "\n")
    label(bench.engine, NAME, LabelFile(path), selection="random", retract=False)
    once = calibrated(bench, certify="predicted", score="network").made
    assert isinstance(once, MadeByAbers)
    assert once.certificate is not None
    calibrated(bench, **STANDING)
    began = certificate(bench)
    assert (began.documents, began.points) == (once.certificate.documents, once.certificate.points)
    stored = bench.rows("SELECT weight, is_drawn FROM standing_evidence LEFT JOIN audit_draw USING (exemplar_id)")
    assert {row.is_drawn for row in stored} == {None, True, False}
    assert {row.weight for row in stored} == {None}, "each counts as one"
    with connect(bench.engine) as connection:
        assert chains.newest(connection, calibrator(bench, NAME)).chain.at_start == began.documents
    left = list(points)[1::2]
    review(bench, left)
    advance(bench)
    query = "SELECT external_id, coalesce(weight, 1) AS weight FROM standing_evidence JOIN exemplar ON id = exemplar_id"
    weights = {row.external_id: row.weight for row in bench.rows(query)}
    waited = {one for one in left if one not in list(TRUTH)[::3]}
    assert {one: weights[one] for one in waited} == {one: points[one][0] for one in waited}, "what comes later weighs"


@pytest.mark.parametrize("rejected", [1.0, 0.5])
def test_random_labels_of_points_that_were_not_drawn_count_if_any_point_might_have_been_left(
    with_audits: Audited, rejected: float
) -> None:
    """And weigh the smallest probability of that, divided by their own."""
    bench = with_audits(alone=True, rejected=rejected)
    rows = bench.rows("SELECT external_id, probability, is_drawn FROM report.audit_draw_v1 ORDER BY external_id")
    left = {row.external_id: row.probability for row in rows if not row.is_drawn}
    path = bench.folder / "random.csv"
    path.write_text("\n".join(["external_id,label", *(f"{one},{TRUTH[one]}" for one in left)]) + "\n")
    label(bench.engine, NAME, LabelFile(path), selection="random", retract=False)
    advance(bench)
    stored = bench.rows(
        "SELECT external_id, coalesce(weight, 1) AS weight FROM standing_evidence JOIN exemplar ON id = exemplar_id "
        "WHERE external_id LIKE 'later-%'"
    )
    expected = {one: (1 - rejected) / (1 - probability) for one, probability in left.items() if rejected < 1}
    assert {row.external_id: row.weight for row in stored} == expected
    assert set(expected.values()) == ({5 / 7, 1.0} if rejected < 1 else set())
    decision = bench.value("SELECT max(id) FROM decision")
    assert replay(bench.workspace(), decision).differing == ()


def test_a_label_counts_in_each_generation_that_drew_the_point(with_audits: Audited) -> None:
    """Or else those that the one before rejects would be missing in the next one, which are where errors are."""
    bench = with_audits(alone=True)
    create_generation(bench.engine, NAME)
    other = f"{NAME}@2"
    bench.ingest(other, bench.write("held-out.npz", exemplars("held-out", 800, seed=1)), "held-out")
    calibrated(bench, other, **STANDING)
    draw(bench, other, rejected=0.5, columns=("id", "f"))
    of_first, of_second = drawn(bench), drawn(bench, other)
    names = np.array(list(of_first))
    sampled = set(names[drawn_at(KEY, [one.encode() for one in of_first], np.full(len(names), RATE))])
    both = [one for one in of_first if one in of_second]
    assert sampled < set(both)
    assert len(both) < len(of_first)
    done = review(bench, list(of_first))
    assert done.in_other_generations == len(of_first)
    query = (
        "SELECT selection, count(*) AS labels FROM label_event JOIN exemplar ON exemplar_id = exemplar.id "
        "JOIN classifier ON classifier_id = classifier.id WHERE name = :name AND external_id LIKE 'later-%' "
        "GROUP BY selection ORDER BY selection"
    )
    found = [tuple(row) for row in bench.rows(query, name=other)]
    assert found == [
        ("random", len(sampled)),
        ("review", len(both) - len(sampled)),
        ("selected", len(of_first) - len(both)),
    ], "what the smallest rate draws is a random sample for any generation"
    before = certificate(bench, other).points
    advance(bench, other)
    assert certificate(bench, other).points == before + len(both)


@pytest.mark.parametrize("rejected", [1.0, 0.5])
def test_each_generation_draws_by_itself_so_that_what_comes_again_weighs_as_any_other_point(
    with_audits: Audited, rejected: float
) -> None:
    """What was drawn before has labels, which the next policy may follow from, and some of it calibrates.

    The same draws would take none of the rest that is admitted, and too many of those that are rejected.
    """
    bench = with_audits(alone=True, rejected=rejected)
    of_first = drawn(bench)
    review(bench, list(of_first))
    create_generation(bench.engine, NAME)
    other = f"{NAME}@2"
    (key,) = bench.rows("SELECT key FROM audit_rule ORDER BY id DESC LIMIT 1")
    assert bytes(key.key) != KEY
    bench.ingest(other, bench.write("held-out.npz", exemplars("held-out", 800, seed=1)), "held-out")
    calibrated(bench, other, **STANDING)
    bench.score(other, bench.write("later.npz", {one: LATER[one] for one in ("id", "f")}), weighted=None)
    query = "SELECT * FROM report.audit_draw_v1 WHERE classifier = :name"
    again = bench.rows(query, name=other)
    assert len(of_first) < len(again) + RATE * len(TRUTH) < len(TRUTH) + len(of_first)
    for is_admitted in (True, False):
        points = [row for row in again if row.is_admitted is is_admitted]
        least = np.array([row.least_probability for row in points])
        weights = least * [row.is_drawn / row.probability for row in points]
        error = np.sqrt(np.sum(least**2 * [1 / row.probability - 1 for row in points])) / len(points)
        assert abs(np.mean(weights - least)) <= 3 * error, is_admitted
    set_audits(bench.engine, other, rate=RATE)
    keys = bench.rows("SELECT classifier_id, count(DISTINCT key) AS keys FROM audit_rule GROUP BY classifier_id")
    assert [row.keys for row in keys] == [1, 1], "it stays that of the generation"


COPIES = 60


def score_copies(bench: Bench) -> None:
    """A chain, and copies of one point that were decided on while audits are drawn."""
    bench.create(NAME, dimension=2, class_count=CLASSES, neighbour_count=3)
    for split, number, seed in (("train", 40, 5), ("mc", 400, 1), ("vp", 400, 2)):
        bench.ingest(NAME, with_vectors(bench, exemplars(split, number, seed), seed=seed), split)
    bench.adopt(NAME, KnnParameters(np.zeros(CLASSES), np.ones(CLASSES), 1.0), 1.0)
    bench.calibrate_abers(NAME, standing=True, certify=("predicted",), score="network", alpha=ALPHA)
    set_audits(bench.engine, NAME, rate=0.3, rejected=0.6)
    one = {column: np.repeat(LATER[column][:1], COPIES, axis=0) for column in ("id", "f")}
    one["id"] = np.array([f"copy-{row}" for row in range(COPIES)])
    one["r"] = np.ones((COPIES, 2), dtype=np.float32)
    bench.score(NAME, bench.write("copies.npz", one), weighted=None)


@pytest.mark.parametrize(("first", "then"), list(product(["drawn", "left"], repeat=2)))
def test_copies_are_drawn_apart_and_the_first_that_is_labelled_counts_for_the_chain(
    copy_of: CopyOf, filled: Filled, first: str, then: str
) -> None:
    """In whichever advance another one comes, also once its label was taken back; a monitor counts each."""
    bench = copy_of(filled(score_copies))

    def give(key: str, number: object, *, retract: bool = False) -> int:
        """How many points count for the chain once a point has a random label, or no longer."""
        path = bench.folder / "labels.csv"
        path.write_text(f"external_id,label\n{key},{number}\n")
        label(bench.engine, NAME, LabelFile(path), selection="random", retract=retract)
        served = recalibrate(bench.workspace(), NAME, shell=Computing(bench))
        assert all(step is None or step.error is None for _, step in served)
        return certificate(bench).points

    copies = {
        row.external_id: "drawn" if row.is_drawn else "left"
        for row in bench.rows("SELECT external_id, is_drawn FROM report.audit_draw_v1 ORDER BY created_at, external_id")
    }
    assert 0 < sum(kind == "drawn" for kind in copies.values()) < COPIES
    update_monitor(bench.engine, NAME)
    points = certificate(bench).points
    of_first, of_then = ([key for key, of in copies.items() if of == kind] for kind in (first, then))
    for documents, key in enumerate((of_first[0], of_then[1], of_first[2]), 1):
        assert give(key, LATER["y"][0]) == points + 1
        assert update_monitor(bench.engine, NAME).documents == documents
    assert give(of_first[0], "", retract=True) == points
    assert give(of_then[3], LATER["y"][0]) == points


def test_reviewed_points_that_were_decided_on_before_a_fit_count_after_it(bench: Bench) -> None:
    """Nothing but the chain asks for the score of such a point under the new parameters."""
    bench.create(NAME, dimension=2, class_count=CLASSES, neighbour_count=3)
    for split, number, seed in (("train", 40, 5), ("mc", 400, 1), ("vp", 400, 2)):
        bench.ingest(NAME, with_vectors(bench, exemplars(split, number, seed), seed=seed), split)
    settings: dict[str, Any] = {"standing": True, "certify": ("predicted",), "score": "reliability", "alpha": ALPHA}
    bench.adopt(NAME, KnnParameters(np.zeros(CLASSES), np.ones(CLASSES), 1.0), 1.0, RELIABILITY)
    bench.calibrate_abers(NAME, **settings)
    set_audits(bench.engine, NAME, rate=RATE, rejected=1.0)
    rows = {column: values for column, values in LATER.items() if column in ("id", "f")}
    bench.score(NAME, with_vectors(bench, rows, seed=6), weighted=None)
    bench.adopt(NAME, KnnParameters(np.zeros(CLASSES), np.ones(CLASSES), 2.0), 1.0, RELIABILITY)
    bench.calibrate_abers(NAME, **settings)
    points = drawn(bench)
    review(bench, list(points))
    began = certificate(bench)
    (step,) = [step for _, step in recalibrate(bench.workspace(), NAME, shell=Computing(bench)) if step is not None]
    assert step.error is None
    found = certificate(bench)
    assert found.points == began.points + len(points)
    assert not bench.rows("SELECT * FROM recalibration_request"), "nothing waits"


@pytest.mark.parametrize("parts", [4])
def test_by_parts_reviews_are_what_they_are_at_once_to_the_last_bit(reviewed: Bench, parts: int) -> None:
    """With labels that are corrected after they counted, and random ones in between."""
    bench = reviewed
    certifying(bench, ONCE)
    draw(bench, ONCE, rejected=1.0, columns=("id", "doc", "f"))
    for name in (NAME, ONCE):
        points = drawn(bench, name)
        documents = sorted({document for _, document in points.values()})
        for part in range(parts):
            chosen = set(documents[part::parts])
            review(bench, [one for one, (_, document) in points.items() if document in chosen], name)
            if name == NAME:
                advance(bench)
            wrong = next(one for one, (_, document) in points.items() if document in chosen)
            review(bench, [], name, **{wrong.replace("-", "_"): (TRUTH[wrong] + 1) % CLASSES})
            give(bench, part, part + 1, name, **{f"row{part}": (LABELS[f"new-{part}"] + 1) % CLASSES})
        advance(bench, name)
    assert everything(bench) == everything(bench, ONCE)
