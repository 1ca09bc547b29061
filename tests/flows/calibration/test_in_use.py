"""Which calibration is in use: one that admits far less is stored and does not replace it; `use` has the last word."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Row

from tests.flows.recalibration import EDGE, QUIET, REQUEST, Computing, Due, age, give
from tests.running import Bench
from venn_admit.core.calibrators.settings import MethodSettings, make_settings, make_venn_abers_settings
from venn_admit.errors import NotFoundError, NotReadyError, OutdatedError
from venn_admit.flows.calibration.calibrate import Calibrated, calibrate_on_stored
from venn_admit.flows.calibration.in_use import judged, use
from venn_admit.flows.calibration.recalibrate import recalibrate, retry_and_list
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.settings import retire
from venn_admit.flows.decisions.replay import replay
from venn_admit.flows.decisions.score_one import GivenPoint, PointScorer
from venn_admit.flows.removal.forget import forget
from venn_admit.flows.reports.check import check_database
from venn_admit.flows.reports.report import report
from venn_admit.methods.venn_admit import method
from venn_admit.report.calibration.common.history import history_section
from venn_admit.report.calibration.sections import TextTable
from venn_admit.report.calibration.wording import heading
from venn_admit.results import withheld_in
from venn_admit.store.calibrations import calibrations, calibrators, chains
from venn_admit.store.calibrations.calibration_points import rows_of
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars import classifiers

STATES = "SELECT id, state FROM calibration ORDER BY id"
IN_USE = "SELECT calibration_id FROM calibration_in_use_v1"
USES = "SELECT calibration_id, origin, reason FROM calibration_use ORDER BY id"
WITHHELD = """
SELECT calibration_id, in_use_id, in_use_id AS in_use, points, share, share_in_use
FROM withheld_calibration
ORDER BY calibration_id
"""
OTHER_SETTINGS = "SELECT previous, other_settings FROM snapshot_change_v1 WHERE calibration = :calibration"
KAPPA_FOR_NOTHING = EDGE.settings | {"kappa": 10_000}
WAITING = """
SELECT count(*)
FROM pg_locks
INNER JOIN pg_database ON pg_locks.database = pg_database.oid
WHERE pg_database.datname = current_database() AND locktype = 'advisory' AND NOT granted
"""


def made(bench: Bench, settings: MethodSettings, *, dry_run: bool = False) -> Calibrated:
    return calibrate_on_stored(
        bench.workspace(), find(bench.engine, "edge"), settings, reason="asked for", dry_run=dry_run
    )


def rejecting() -> MethodSettings:
    """Settings under which every band is too small, so that nothing is admitted."""
    return make_settings(3, 5, **KAPPA_FOR_NOTHING)


def uncertified(**other: Any) -> MethodSettings:
    return make_venn_abers_settings(3, 5, score="network", alpha=Decimal("0.001"), certify=("predicted",), **other)


def stricter() -> MethodSettings:
    """Settings that admit something, and less than half of what those in use do."""
    thresholds = (Decimal("0.6"), Decimal("0.999"), Decimal("0.999"))
    return make_venn_abers_settings(3, 5, score="network", alpha=Decimal("0.4"), thresholds=thresholds)


def states(bench: Bench) -> dict[int, str]:
    return {row.id: row.state for row in bench.rows(STATES)}


def contents(bench: Bench) -> dict[str, int]:
    tables = ("calibration", "calibrator", "calibration_point", "certificate", "certificate_look", "calibration_use")
    return {table: bench.value(f"SELECT count(*) FROM {table}") for table in tables}


def withheld(bench: Bench) -> list[Row[object]]:
    return bench.rows(WITHHELD)


@pytest.fixture
def abers(edge: Bench) -> Bench:
    """The classifier `edge`, decided by Venn-Abers, calibration 2, which admits some."""
    edge.calibrate_abers("edge", score="network", alpha=Decimal("0.4"))
    return edge


def test_a_report_says_which_calibration_is_in_use(abers: Bench) -> None:
    def said(calibration: int) -> str:
        found = report(abers.workspace(), "edge", calibration_id=calibration)
        (history,) = history_section(found).parts
        assert isinstance(history, TextTable)
        return f"{heading(found).rpartition(', of ')[0]} | {'; '.join(row[0] for row in history.rows)}"

    assert said(2) == "edge: calibration 2, in use | 2, in use; 1, kept current"
    assert said(1) == "edge: calibration 1, kept current while 2 is in use | 1, kept current"
    retire(abers.engine, "edge", 1)
    assert said(1) == "edge: calibration 1, retired | 1, retired"


class TestFarLess:
    def test_a_certificate_that_certifies_nothing_does_not_replace_one_that_admits(self, abers: Bench) -> None:
        done = made(abers, uncertified())
        assert done.is_certified is False
        assert done.withheld is not None
        assert (done.withheld.before, done.withheld.strength.share) == (2, 0.0)
        assert done.withheld.strength.share_in_use > 0
        assert states(abers) == {1: "current", 2: "current", 3: "withheld"}
        assert abers.value(IN_USE) == 2
        (found,) = withheld(abers)
        assert (found.calibration_id, found.in_use_id, found.share) == (3, 2, 0.0)

    def test_the_points_are_those_that_both_judge(self, abers: Bench) -> None:
        """Venn-Abers without a certificate judges mc, and Venn-ADMIT vp: each is measured on its own."""
        done = made(abers, uncertified())
        assert done.withheld is not None
        assert done.withheld.strength.points == abers.value("SELECT mc_count FROM calibration WHERE id = 2")
        with connect(abers.engine) as connection:
            share = connection.exec_driver_sql(
                "SELECT avg(is_admitted::int) FROM judged_point_v1 WHERE calibration = 2"
            ).scalar_one()
        assert done.withheld.strength.share_in_use == pytest.approx(float(share))

    def test_the_first_is_put_in_use_whatever_it_admits(self, edge: Bench) -> None:
        """There is nothing to fall back on, and what is rejected brings the labels that are lacking."""
        EDGE.prepare(edge, "again")
        done = edge.calibrate_abers("again", score="network", alpha=Decimal("0.001"), certify=("predicted",))
        assert (done.is_certified, done.withheld) == (False, None)
        assert states(edge)[done.calibration_id] == "current"

    def test_where_nothing_is_admitted_another_that_admits_nothing_follows(self, edge: Bench) -> None:
        use(edge.engine, "edge", made(edge, rejecting()).calibration_id)
        assert made(edge, uncertified()).withheld is None

    @pytest.mark.parametrize("dry_run", [False, True])
    def test_a_stricter_setting_is_in_use_as_it_was_asked_for(self, abers: Bench, *, dry_run: bool) -> None:
        done = made(abers, stricter(), dry_run=dry_run)
        assert done.withheld is None
        assert done.far_less is not None
        assert (done.far_less.before, done.far_less.is_withheld) == (2, False)
        assert 0 < done.far_less.strength.share < 0.5 * done.far_less.strength.share_in_use
        assert abers.value(IN_USE) == (2 if dry_run else done.calibration_id)
        assert withheld(abers) == []

    def test_the_setting_in_use_does_not_become_far_weaker_by_itself_or_by_hand(self, abers: Bench) -> None:
        give(abers, 1, rows=range(400), part="mc")
        done = made(abers, make_venn_abers_settings(3, 5, score="network", alpha=Decimal("0.4")))
        assert done.withheld is not None
        assert abers.value(IN_USE) == 2

    def test_a_setting_that_was_never_in_use_is_listed_and_not_kept_current(self, abers: Bench) -> None:
        done = made(abers, uncertified())
        with connect(abers.engine) as connection:
            found = calibrators.of_classifier(connection, classifiers.by_name(connection, "edge"))
        assert [(one.id, one.is_in_use, one.has_current) for one in found] == [
            (2, True, True),
            (1, False, True),
            (done.calibrator_id, False, False),
        ]
        assert give(abers).recalibrations_due == 2

    def test_a_dry_run_stores_nothing(self, abers: Bench) -> None:
        before = contents(abers)
        done = made(abers, uncertified(), dry_run=True)
        assert (done.is_stored, done.is_certified, done.withheld is None) == (False, False, False)
        assert (contents(abers), abers.value(IN_USE)) == (before, 2)


def weaker(bench: Bench, due: Due, shift: int = 1) -> int:
    """Labels arrive that leave nearly nothing right; the calibration that follows."""
    give(bench, shift, rows=range(400), part="mc")
    age(bench, QUIET)
    (found,) = [step.calibrated for step in due() if step.calibrated is not None and step.request.calibrator_id == 2]
    assert found.withheld is not None
    return found.calibration_id


class TestRecalibration:
    def test_it_never_puts_a_weaker_one_in_use(self, abers: Bench, due: Due, logged: list[dict[str, object]]) -> None:
        scored = abers.score("edge", abers.folder / "score.npz", weighted=False)
        new = weaker(abers, due)
        assert states(abers)[2] == "current"
        assert states(abers)[new] == "withheld"
        assert abers.value(IN_USE) == 2
        assert new in [entry["calibration"] for entry in logged if "far less" in str(entry["event"])]
        again = abers.score("edge", abers.folder / "score.npz", weighted=False)
        assert again.table.column("decision").equals(scored.table.column("decision"))
        assert not abers.rows("SELECT FROM recalibration_request WHERE calibrator_id = 2")

    def test_the_rows_that_decide_are_those_of_the_one_in_use(self, abers: Bench, due: Due) -> None:
        scored = abers.score("edge", abers.folder / "score.npz", weighted=False)
        weaker(abers, due)
        points = EDGE.exemplars("score")
        found = PointScorer(abers.workspace()).score_each(
            "edge",
            [GivenPoint(r, f) for r, f in zip(points["r"].astype("f4"), points["f"].astype("f4"), strict=True)],
            weighted=False,
        )
        assert {one.calibration_id for one in found} == {2}
        assert [one.fields["lower"] for one in found] == scored.table.column("lower").to_pylist()
        assert not [one for one in check_database(abers.workspace()) if one.found]

    def test_of_those_that_were_not_put_in_use_one_is_kept(self, abers: Bench, due: Due) -> None:
        first = weaker(abers, due)
        second = weaker(abers, due, shift=2)
        assert first not in states(abers)
        of_setting = abers.rows("SELECT id FROM calibration WHERE calibrator_id = 2 AND state = 'withheld'")
        assert [row.id for row in of_setting] == [second]

    def test_one_that_is_as_good_follows(self, abers: Bench, due: Due) -> None:
        weaker(abers, due)
        give(abers, 0, rows=range(400), part="mc")
        age(abers, QUIET)
        (found,) = [
            step.calibrated for step in due() if step.calibrated is not None and step.request.calibrator_id == 2
        ]
        assert (found.withheld, abers.value(IN_USE)) == (None, found.calibration_id)
        assert abers.rows(USES)[-1] == (found.calibration_id, "schedule", "labels")

    def test_of_a_setting_that_is_not_in_use_it_is_held_against_the_one_before_it(self, abers: Bench, due: Due) -> None:
        use(abers.engine, "edge", 1)
        new = weaker(abers, due)
        (found,) = [withheld_in(row) for row in withheld(abers) if row.calibration_id == new]
        assert abers.value("SELECT calibrator_id FROM calibration WHERE id = :id", id=abers.value(IN_USE)) == 1
        assert "and calibration 2, which it would have replaced, " in str(found)


class TestUse:
    def test_another_is_in_use_at_once_and_the_history_says_who_and_why(self, abers: Bench) -> None:
        new = made(abers, uncertified()).calibration_id
        done = use(abers.engine, "edge", new, reason="to see what it rejects")
        assert (done.before, done.is_changed, abers.value(IN_USE)) == (2, True, new)
        assert use(abers.engine, "edge", 2).before == new
        assert not use(abers.engine, "edge", 2).is_changed
        assert abers.rows(USES) == [
            (1, "command line", "test"),
            (2, "command line", "test"),
            (new, "command line", "to see what it rejects"),
            (2, "command line", "put in use by its number"),
        ]

    def test_an_old_one_decides_again_as_it_did(self, edge: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        """Bands counted by SQL are those of the old snapshot, though newer ones were made of the same setting."""
        monkeypatch.setattr(method, "POINTS_BY_SQL", 1000)
        points = [GivenPoint(vector, None) for vector in EDGE.exemplars("score")["r"].astype("f4")]
        scorer = PointScorer(edge.workspace())
        first = scorer.score_each("edge", points, weighted=False)
        give(edge, rows=range(200))
        newer = edge.calibrate("edge", **EDGE.settings).calibration_id
        second = scorer.score_each("edge", points, weighted=False)
        assert [one.fields for one in second] != [one.fields for one in first]
        for number, expected in ((1, first), (newer, second), (1, first)):
            use(edge.engine, "edge", number)
            found = scorer.score_each("edge", points, weighted=False)
            assert {one.calibration_id for one in found} == {number}
            assert [one.fields for one in found] == [one.fields for one in expected]
        assert states(edge) == {1: "current", newer: "retired"}
        assert not [one for one in check_database(edge.workspace()) if one.found]

    def test_what_was_decided_by_any_of_them_replays(self, edge: Bench) -> None:
        edge.score("edge", edge.folder / "score.npz", weighted=False)
        give(edge, rows=range(200))
        edge.calibrate("edge", **EDGE.settings)
        edge.score("edge", edge.folder / "score.npz", weighted=False)
        use(edge.engine, "edge", 1)
        edge.calibrate("edge", **EDGE.settings)
        for row in edge.rows("SELECT DISTINCT ON (calibration_id) id FROM decision ORDER BY calibration_id, id"):
            assert replay(edge.workspace(), row.id).differing == ()

    def test_whoever_asks_for_a_recalibration_brings_an_old_one_up_to_date(self, edge: Bench) -> None:
        """Nothing else does before labels come, since those who put an old one in use want to decide by it."""
        give(edge)
        newer = edge.calibrate("edge", **EDGE.settings).calibration_id
        assert retry_and_list(edge.engine, "edge") == []
        use(edge.engine, "edge", 1)
        assert edge.rows(REQUEST) == []
        assert report(edge.workspace(), "edge", calibration_id=None).changes.total == 3
        ((request, step),) = recalibrate(edge.workspace(), "edge", shell=Computing(edge))
        assert (request.reason, step is not None and step.calibrated is not None) == ("labels", True)
        assert states(edge) == {1: "retired", newer: "retired", newer + 1: "current"}
        assert retry_and_list(edge.engine, "edge") == []

    def test_the_one_in_use_is_never_pruned(self, edge: Bench) -> None:
        for _ in range(3):
            edge.calibrate("edge", **EDGE.settings)
        use(edge.engine, "edge", 2)
        with transaction(edge.engine) as connection:
            calibrations.delete_old(connection, 1, keep=1)
        assert states(edge) == {2: "current", 4: "retired"}

    def test_a_number_of_nothing_is_refused(self, edge: Bench) -> None:
        with pytest.raises(NotFoundError, match="classifier 'edge' has no calibration 99"):
            use(edge.engine, "edge", 99)

    def test_one_that_lost_points_is_refused(self, edge: Bench) -> None:
        edge.calibrate("edge", **EDGE.settings)
        forget(edge.workspace(), "edge", ["vp-0"])
        with pytest.raises(OutdatedError, match="has since been forgotten"):
            use(edge.engine, "edge", 1)

    def test_it_waits_for_a_calibration_under_the_same_setting(self, edge: Bench) -> None:
        edge.calibrate("edge", **EDGE.settings)
        with ThreadPoolExecutor(1) as pool:
            with transaction(edge.engine) as calibrating:
                classifier = classifiers.by_name(calibrating, "edge")
                calibrators.lock(calibrating, classifier, make_settings(3, 5, **EDGE.settings))
                using = pool.submit(use, edge.engine, "edge", 1)
                while not edge.value(WAITING):
                    assert not using.done()
                    time.sleep(0.01)
            assert using.result().is_changed

    def test_whoever_decides_meanwhile_decides_by_one_of_them(self, edge: Bench) -> None:
        points = [GivenPoint(vector, None) for vector in EDGE.exemplars("score")["r"][:5].astype("f4")]
        scorer, known = PointScorer(edge.workspace()), {}
        give(edge, rows=range(200))
        newer = edge.calibrate("edge", **EDGE.settings).calibration_id
        for number in (1, newer):
            use(edge.engine, "edge", number)
            known[number] = [one.fields for one in scorer.score_each("edge", points, weighted=False)]
        stop = threading.Event()

        def decide() -> set[int]:
            seen = set[int]()
            while not (stop.is_set() and seen == set(known)):
                found = PointScorer(edge.workspace()).score_each("edge", points, weighted=False)
                (number,) = {one.calibration_id for one in found}
                assert [one.fields for one in found] == known[number]
                seen.add(number)
            return seen

        with ThreadPoolExecutor(1) as pool:
            deciding = pool.submit(decide)
            for number in [1, newer] * 5:
                use(edge.engine, "edge", number)
            stop.set()
            while not deciding.done():
                for number in known:
                    use(edge.engine, "edge", number)
            assert deciding.result() == set(known)


@pytest.mark.parametrize(
    ("changed", "other"),
    [
        ("loss", {"loss": [list(map(Decimal, row)) for row in ((0, 1, 2), (1, 0, 1), (1, 1, 0))]}),
        ("standing", {"standing": True}),
        ("class shares", {"class_shares": [Decimal("0.3"), Decimal("0.3"), Decimal("0.4")]}),
    ],
)
def test_the_history_names_what_was_asked_for_otherwise(abers: Bench, changed: str, other: dict[str, Any]) -> None:
    before, after = made(abers, uncertified()), made(abers, uncertified(**other))
    assert abers.rows(OTHER_SETTINGS, calibration=after.calibration_id) == [(before.calibration_id, [changed])]


def test_a_certificate_is_counted_once_however_often_it_is_made(abers: Bench) -> None:
    for _ in range(2):
        use(abers.engine, "edge", made(abers, uncertified()).calibration_id)
    looks = "SELECT looks, joint_confidence::float FROM report.certificate_look_v2 ORDER BY looks"
    assert [tuple(row) for row in abers.rows(looks)] == [(1, pytest.approx(0.95))]
    give(abers, rows=range(5))
    made(abers, uncertified())
    assert [tuple(row) for row in abers.rows(looks)] == [(1, pytest.approx(0.95)), (2, pytest.approx(0.9))]


@pytest.mark.parametrize("promise", [{"certify": ("predicted",)}, {"promise": "average"}, {"promise": "pointwise"}])
def test_what_is_admitted_of_the_rows_at_hand_is_what_the_view_says(abers: Bench, promise: dict[str, Any]) -> None:
    settings = make_venn_abers_settings(3, 5, score="network", alpha=Decimal("0.4"), **promise)
    calibrated = made(abers, settings)
    with connect(abers.engine) as connection:
        classifier = classifiers.by_name(connection, "edge")
        calibration = calibrations.by_id(connection, classifier, calibrated.calibration_id)
        rows = rows_of(connection, calibrated.calibrator_id, classifier.class_count)
        by_rows, by_view = (judged(connection, classifier, calibration, one) for one in (rows, None))
    known = dict(zip(by_view.exemplar_ids.tolist(), by_view.admitted.tolist(), strict=True))
    assert dict(zip(by_rows.exemplar_ids.tolist(), by_rows.admitted.tolist(), strict=True)) == known
    assert set(known.values()) == {False, True}


def of_family(alpha: str, confidence: str) -> MethodSettings:
    return make_venn_abers_settings(
        3,
        5,
        score="network",
        certify=("predicted",),
        family=True,
        alpha=Decimal(alpha),
        confidence=Decimal(confidence),
    )


def test_certificates_of_a_family_that_are_made_at_the_same_time_count_each_other(abers: Bench) -> None:
    with ThreadPoolExecutor(2) as pool:
        with transaction(abers.engine) as beginning:
            chains.lock(beginning, classifiers.by_name(beginning, "edge"))
            making = [pool.submit(made, abers, of_family(alpha, "0.9")) for alpha in ("0.2", "0.25")]
            while abers.value(WAITING) < 2:
                assert not any(one.done() for one in making)
                time.sleep(0.01)
        for one in making:
            one.result()
    levels = abers.rows("SELECT 1 - confidence AS level FROM report.certificate_look_v2 ORDER BY level DESC")
    assert [float(row.level) for row in levels] == [pytest.approx(1 / 20), pytest.approx(1 / 60, abs=1e-6)]


def test_forgetting_makes_certificates_of_a_family_again_in_turn(abers: Bench) -> None:
    made(abers, of_family("0.2", "0.9"))
    with ThreadPoolExecutor(1) as pool:
        with transaction(abers.engine) as beginning:
            chains.lock(beginning, classifiers.by_name(beginning, "edge"))
            forgetting = pool.submit(forget, abers.workspace(), "edge", ["mc-4"])
            while not abers.value(WAITING):
                assert not forgetting.done()
                time.sleep(0.01)
        forgetting.result()
    levels = abers.rows("SELECT 1 - confidence AS level FROM report.certificate_look_v2 ORDER BY level DESC")
    assert [float(row.level) for row in levels] == [pytest.approx(1 / 20), pytest.approx(1 / 60, abs=1e-6)]


def test_certificates_of_a_family_share_its_confidence(abers: Bench) -> None:
    """With one before that was made by itself; once nothing is left, another is refused."""
    made(abers, uncertified())
    shares = [Decimal(1) / 60, Decimal(1) / 120]  # a third of what .05 leaves of .1, and a quarter of what that leaves
    for alpha, share in zip(("0.2", "0.25"), shares, strict=True):
        done = made(abers, of_family(alpha, "0.9"))
        level = abers.value(
            "SELECT 1 - confidence FROM report.certificate_look_v2 WHERE calibration = :calibration",
            calibration=done.calibration_id,
        )
        assert share - Decimal("1e-6") <= level <= share
    assert abers.value("SELECT min(joint_confidence) FROM report.certificate_look_v2") >= Decimal("0.9")
    with pytest.raises(NotReadyError, match=r"the 3 certificates .* have 0\.0749\d* of 1 - confidence, and 0\.05 may"):
        made(abers, of_family("0.2", "0.95"))
