"""Retired settings: no longer kept current, and everything made under them stays."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from tests.flows.recalibration import EDGE, REQUEST, WAIT, Due, age, give, more, only_request, outcomes, snapshots
from tests.running import Bench
from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.errors import ConflictError, NotFoundError
from venn_admit.flows.calibration.recalibrate import RecalibrationOutcome, retry_and_list
from venn_admit.flows.data.settings import retire
from venn_admit.flows.decisions.replay import replay
from venn_admit.store.calibrations import calibrators
from venn_admit.store.calibrations.calibrators import Calibrator
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars import classifiers

TRIED, IN_USE = 1, 2
WAITING = """
SELECT count(*)
FROM pg_locks
INNER JOIN pg_database ON pg_locks.database = pg_database.oid
WHERE pg_database.datname = current_database() AND locktype = 'advisory' AND NOT granted
"""


@pytest.fixture
def tried(edge: Bench) -> Bench:
    """The classifier `edge`, calibrated under a second setting, which is in use from then on."""
    edge.calibrate("edge", **EDGE.settings | {"delta": 2.0})
    return edge


def settings(bench: Bench) -> dict[int, Calibrator]:
    with connect(bench.engine) as connection:
        return {
            found.id: found for found in calibrators.of_classifier(connection, classifiers.by_name(connection, "edge"))
        }


def test_settings_are_known_by_number_and_the_one_in_use_comes_first(tried: Bench) -> None:
    give(tried)
    found = settings(tried)
    assert list(found) == [IN_USE, TRIED]
    assert [(one.is_in_use, one.retired_at, one.due_for) for one in found.values()] == [
        (True, None, "labels"),
        (False, None, "labels"),
    ]
    deltas = [one.settings.delta for one in found.values() if isinstance(one.settings, CalibratorSettings)]
    assert deltas == [2.0, EDGE.settings["delta"]]
    assert found[TRIED].calibration_id < found[IN_USE].calibration_id


def test_what_arrives_asks_for_it_no_longer(tried: Bench, due: Due) -> None:
    assert retire(tried.engine, "edge", TRIED).setting(TRIED).retired_at is not None
    assert give(tried).recalibrations_due == 1
    more(tried)
    assert only_request(tried).calibrator_id == IN_USE
    age(tried, WAIT)
    assert outcomes(due()) == [RecalibrationOutcome.STARTED]


def test_what_it_waited_for_is_dropped(tried: Bench, due: Due) -> None:
    give(tried)
    assert len(tried.rows(REQUEST)) == 2
    assert retire(tried.engine, "edge", TRIED).setting(TRIED).due_for is None
    assert only_request(tried).calibrator_id == IN_USE
    assert [request.calibrator_id for request in retry_and_list(tried.engine, "edge")] == [IN_USE]
    age(tried, WAIT)
    assert [step.request.calibrator_id for step in due()] == [IN_USE]
    assert [(calibrator, number) for calibrator, number, *_ in snapshots(tried)] == [(1, 1), (2, 1), (2, 2)]


def test_what_is_asked_for_meanwhile_is_not_served(tried: Bench, due: Due) -> None:
    """A request whose transaction began before the setting was retired and ended afterwards."""
    with connect(tried.engine) as asking:
        query = text("INSERT INTO recalibration_request VALUES (:calibrator, now(), now(), 'labels', NULL, NULL)")
        asking.execute(query, {"calibrator": TRIED})
        retire(tried.engine, "edge", TRIED)
        asking.commit()
    age(tried, WAIT)
    assert due() == []
    assert retry_and_list(tried.engine, "edge") == []
    assert settings(tried)[TRIED].due_for is None
    tried.calibrate("edge", **EDGE.settings)
    assert tried.rows(REQUEST) == []


def test_one_that_is_being_calibrated_is_not_retired(tried: Bench) -> None:
    """A calibration under it finishes first, and it is in use then."""
    with ThreadPoolExecutor(1) as pool:
        with transaction(tried.engine) as calibrating:
            classifier = classifiers.by_name(calibrating, "edge")
            asked = calibrators.by_id(calibrating, classifier, TRIED).settings
            calibrators.lock(calibrating, classifier, asked)
            retiring = pool.submit(retire, tried.engine, "edge", TRIED)
            while not (retiring.done() or tried.value(WAITING)):
                time.sleep(0.01)
            calibrators.choose(calibrating, TRIED)
        with pytest.raises(ConflictError, match="setting 1 of 'edge' is in use"):
            retiring.result()
    assert settings(tried)[TRIED].retired_at is None


def test_calibrating_again_brings_it_back(tried: Bench) -> None:
    retire(tried.engine, "edge", TRIED)
    since = retire(tried.engine, "edge", TRIED).setting(TRIED).retired_at
    assert settings(tried)[TRIED].retired_at == since, "the second time changes nothing"
    tried.calibrate("edge", **EDGE.settings)
    found = settings(tried)
    assert (found[TRIED].retired_at, found[TRIED].is_in_use) == (None, True)
    assert give(tried).recalibrations_due == 2


def test_what_was_made_under_it_stays(tried: Bench) -> None:
    before = snapshots(tried)
    first, _ = (row.id for row in tried.rows("SELECT id FROM calibration ORDER BY id"))
    scores = tried.score("edge", tried.folder / "score.npz", calibration_id=first)
    retire(tried.engine, "edge", TRIED)
    assert snapshots(tried) == before
    assert tried.score("edge", tried.folder / "score.npz", calibration_id=first).table.equals(scores.table)
    decision = tried.value("SELECT min(id) FROM decision")
    assert replay(tried.workspace(), decision).differing == ()


def test_refusals(tried: Bench) -> None:
    with pytest.raises(ConflictError, match=r"setting 2 of 'edge' is in use.*a calibration of another setting in use"):
        retire(tried.engine, "edge", IN_USE)
    with pytest.raises(NotFoundError, match="'edge' has no setting 3; known: 1, 2"):
        retire(tried.engine, "edge", 3)
    EDGE.prepare(tried, "other")
    with pytest.raises(NotFoundError, match="'other' has no setting 1; known: none yet; calibrate it first"):
        retire(tried.engine, "other", TRIED)
    assert [one.retired_at for one in settings(tried).values()] == [None, None]
