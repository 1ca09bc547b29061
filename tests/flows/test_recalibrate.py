"""Recalibration by requests: gathered, served once, and what comes meanwhile by the next."""

import threading
from collections.abc import Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from celery import Celery
from sqlalchemy import Row

from service import broker
from service.core.bands import band_radius
from service.core.calibrator_settings import make_settings
from service.core.types import Split
from service.flows.calibrate import calibrate
from service.flows.chunks import ChunkRunner
from service.flows.export import Export
from service.flows.jobs import cancel
from service.flows.label import Labelled, label
from service.flows.recalibrate import Outcome, Step, recalibrate_due, recalibrate_step, retry_and_list
from service.flows.replay import replay
from service.store import calibrations, classifiers
from service.store.array_cache import ArrayCache
from service.store.calibrations import SnapshotPoints
from service.store.engine import connect, transaction
from tests.running import Bench, ChunkLimits, Golden

EDGE = Golden("edge")
QUIET, WAIT = 30.0, 300.0
REQUEST = "SELECT * FROM recalibration_request"


@pytest.fixture
def app(edge: Bench) -> Iterator[Celery]:
    """What messages are sent by; nobody takes them."""
    url = broker.broker_url(None, edge.engine.url.render_as_string(hide_password=False))
    app = broker.make_app(url, queue="q", lease_seconds=60)
    broker.prepare(app)
    yield app
    app.close()


@pytest.fixture
def due(edge: Bench, app: Celery) -> Callable[..., list[Step]]:
    """One look at what is due, as beat has workers take."""

    def look(*, keep: int | None = None) -> list[Step]:
        return recalibrate_due(edge.engine, app, chunk_rows=100, quiet_seconds=QUIET, wait_seconds=WAIT, keep=keep)

    return look


def give(bench: Bench, shift: int = 1, rows: range = range(3), part: str = "vp") -> Labelled:
    """Other labels for some calibrating exemplars, as a file that arrives."""
    path = bench.folder / "labels.csv"
    lines = [f"{part}-{row},{(int(EDGE[f'{part}_y'][row]) + shift) % 3}" for row in rows]
    path.write_text("\n".join(["external_id,label", *lines]) + "\n")
    return label(bench.engine, "edge", path, selection="random", retract=False)


def more(bench: Bench, name: str = "more", split: str = "vp") -> int:
    """New held-out exemplars, of which nothing is known; how many."""
    exemplars = EDGE.exemplars("score")
    exemplars["id"] = np.array([f"{name}-{known}" for known in exemplars["id"]])
    return bench.ingest("edge", bench.write(f"{name}.npz", exemplars), split).new


def age(bench: Bench, seconds: float, column: str = "first_requested_at, last_requested_at") -> None:
    """Let the requests be from so long ago."""
    changes = ", ".join(f"{name} = {name} - make_interval(secs => {seconds})" for name in column.split(", "))
    with transaction(bench.engine) as connection:
        connection.exec_driver_sql(f"UPDATE recalibration_request SET {changes}")


def snapshots(bench: Bench) -> list[tuple[Any, ...]]:
    """Every snapshot: its calibrator, number, state and reason."""
    query = "SELECT calibrator_id, number, state, reason FROM calibration ORDER BY id"
    return [tuple(row) for row in bench.rows(query)]


def only_request(bench: Bench) -> Row[Any]:
    (found,) = bench.rows(REQUEST)
    return found


def outcomes(steps: list[Step]) -> list[Outcome]:
    return [step.outcome for step in steps]


def points(bench: Bench, number: int) -> dict[str, list[Any]]:
    """Both splits of a snapshot of the first calibrator."""
    with connect(bench.engine) as connection:
        classifier = classifiers.by_name(connection, "edge")
        key = bench.value("SELECT id FROM calibration WHERE calibrator_id = 1 AND number = :number", number=number)
        calibration = calibrations.by_id(connection, classifier, key)
        return {
            split: listed(calibrations.read_points(connection, calibration, split)) for split in (Split.MC, Split.VP)
        }


def listed(found: SnapshotPoints) -> list[Any]:
    of_points = [getattr(found.points, name) for name in ("label", "predicted", "match_count", "distance", "score")]
    return [column.tolist() for column in (found.exemplar_ids, found.singleton, *of_points)]


@contextmanager
def during_snapshots(event: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Something happens once, when a snapshot has taken its view of the data."""
    events = [event]

    def interrupted(*arguments: Any) -> Any:
        while events:
            events.pop()()
        return band_radius(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr("service.flows.calibrate.band_radius", interrupted)
        yield
    assert not events


class TestRequests:
    def test_labels_of_what_calibrates_ask_for_one(self, edge: Bench) -> None:
        assert give(edge).recalibrations == 1
        first = only_request(edge)
        assert (first.calibrator_id, first.reason, first.job_id, first.error) == (1, "labels", None, None)
        assert first.first_requested_at == first.last_requested_at
        assert give(edge, shift=2).recalibrations == 1
        second = only_request(edge)
        assert second.first_requested_at == first.first_requested_at
        assert second.last_requested_at > first.last_requested_at
        assert second.reason == "labels"

    def test_what_changes_no_snapshot_asks_for_none(self, edge: Bench) -> None:
        assert give(edge, shift=0).recalibrations == 0
        edge.score("edge", edge.folder / "score.npz")
        path = edge.folder / "labels.csv"
        path.write_text(f"external_id,label\nscore-0,{(int(EDGE['score_y'][0]) + 1) % 3}\n")
        assert label(edge.engine, "edge", path, selection="selected", retract=False).corrected == 1
        more(edge, "fit", split="knn")
        assert edge.rows(REQUEST) == []

    def test_new_data_ask_for_one_and_reasons_are_gathered(self, edge: Bench) -> None:
        more(edge)
        assert only_request(edge).reason == "held-out data"
        more(edge, "support", split="train")
        give(edge)
        more(edge, "again")
        assert only_request(edge).reason == "held-out data, training data, labels"

    def test_none_before_the_first_calibration_and_none_of_another_classifier(self, edge: Bench) -> None:
        EDGE.prepare(edge, "other")
        assert edge.rows(REQUEST) == []
        edge.calibrate("other", **EDGE.settings)
        give(edge)
        assert only_request(edge).calibrator_id == 1

    def test_a_file_that_is_refused_asks_for_none(self, edge: Bench) -> None:
        path = edge.folder / "labels.csv"
        path.write_text("external_id,label\nvp-0,1\nvp-1,1\nnobody,1\n")
        with pytest.raises(Exception, match="nobody"):
            label(edge.engine, "edge", path, selection="random", retract=False)
        assert edge.rows(REQUEST) == []


class TestDebounce:
    def test_a_request_waits_until_no_other_came_for_a_while(self, edge: Bench, due: Callable[..., list[Step]]) -> None:
        give(edge)
        assert due() == []
        age(edge, QUIET - 5)
        give(edge, shift=2)
        age(edge, QUIET - 5)
        assert due() == []
        age(edge, 6)
        (step,) = due()
        assert step.outcome == Outcome.RECALIBRATED
        assert edge.rows(REQUEST) == []
        assert snapshots(edge) == [(1, 1, "retired", "test"), (1, 2, "current", "labels")]
        assert due() == []

    def test_but_no_longer_than_so_long_after_the_first(self, edge: Bench, due: Callable[..., list[Step]]) -> None:
        give(edge)
        age(edge, WAIT - 5, "first_requested_at")
        assert due() == []
        age(edge, 6, "first_requested_at")
        assert outcomes(due()) == [Outcome.RECALIBRATED]

    def test_many_labels_are_one_snapshot_that_writes_what_changed(
        self, edge: Bench, due: Callable[..., list[Step]], logged: list[MutableMapping[str, Any]]
    ) -> None:
        """Sets of vp do not look at the labels of vp, so a label there is a row."""
        for row in range(12):
            give(edge, rows=range(row, row + 1))
        age(edge, QUIET)
        (step,) = due()
        assert step.calibrated is not None
        assert (step.calibrated.changed.closed, step.calibrated.changed.opened) == (12, 12)
        assert edge.value("SELECT count(*) FROM calibration_point WHERE valid_from = 2") == 12
        assert edge.value("SELECT count(*) FROM calibration_point") == 1012
        (entry,) = [entry for entry in logged if entry["event"] == "recalibrated"]
        assert (entry["classifier"], entry["reason"], entry["rows_opened"]) == ("edge", "labels", 12)

    def test_it_is_what_a_calibration_from_scratch_gives(self, edge: Bench, due: Callable[..., list[Step]]) -> None:
        give(edge, part="mc", rows=range(40))
        age(edge, QUIET)
        due()
        kept = edge.export("edge", Export.CALIBRATION)
        with transaction(edge.engine) as connection:
            connection.exec_driver_sql("DELETE FROM calibration_point")
        edge.calibrate("edge", **EDGE.settings)
        assert edge.export("edge", Export.CALIBRATION) == kept

    def test_an_explicit_calibration_serves_it(self, edge: Bench) -> None:
        give(edge)
        edge.calibrate("edge", **(EDGE.settings | {"kappa": 5}))
        assert only_request(edge).calibrator_id == 1
        edge.calibrate("edge", **EDGE.settings)
        assert edge.rows(REQUEST) == []


class TestNewPoints:
    def test_are_searched_by_a_job_and_no_others(self, edge: Bench, due: Callable[..., list[Step]]) -> None:
        count = more(edge)
        age(edge, QUIET)
        (started,) = due()
        assert started.outcome == Outcome.STARTED
        assert started.job_id is not None
        assert only_request(edge).job_id == started.job_id
        assert edge.value("SELECT row_count FROM job WHERE id = :id", id=started.job_id) == count
        # It was told to the workers at once.
        assert edge.value("SELECT count(*) FROM message WHERE queue = 'q'") == 2
        assert due() == []
        edge.run(started.job_id)
        (made,) = due()
        assert made.calibrated is not None
        assert (made.calibrated.changed.closed, made.calibrated.changed.opened) == (0, count)
        assert edge.rows(REQUEST) == []

    def test_that_arrive_while_the_job_runs_are_searched_by_another(
        self, edge: Bench, due: Callable[..., list[Step]]
    ) -> None:
        more(edge)
        age(edge, QUIET)
        (started,) = due()
        assert started.job_id is not None
        more(edge, "late")
        edge.run(started.job_id)
        assert outcomes(due()) == [Outcome.OUTDATED]
        assert only_request(edge).job_id is None
        assert due() == [], "not quiet yet"
        age(edge, QUIET)
        (again,) = due()
        assert again.job_id is not None
        edge.run(again.job_id)
        assert outcomes(due()) == [Outcome.RECALIBRATED]
        assert edge.rows(REQUEST) == []

    def test_labels_that_arrive_while_the_job_runs_are_in_the_snapshot(
        self, edge: Bench, due: Callable[..., list[Step]]
    ) -> None:
        count = more(edge)
        age(edge, QUIET)
        (started,) = due()
        assert started.job_id is not None
        give(edge)
        edge.run(started.job_id)
        (made,) = due()
        assert made.calibrated is not None
        assert made.calibrated.changed.opened == count + 3
        assert edge.rows(REQUEST) == []


class TestMeanwhile:
    def test_a_request_during_a_recalibration_is_served_by_the_next(
        self, edge: Bench, due: Callable[..., list[Step]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        give(edge)
        age(edge, WAIT)
        with during_snapshots(lambda: give(edge, rows=range(10, 12)), monkeypatch):
            (first,) = due()
        assert first.calibrated is not None
        assert first.calibrated.changed.opened == 3
        kept = only_request(edge)
        assert kept.first_requested_at == kept.last_requested_at
        assert due() == [], "it is debounced as any other"
        age(edge, QUIET)
        (second,) = due()
        assert second.calibrated is not None
        assert second.calibrated.changed.opened == 2
        assert edge.rows(REQUEST) == []

    def test_one_not_committed_yet_is_not_taken_for_served(
        self, edge: Bench, due: Callable[..., list[Step]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its labels came before the snapshot's view, and became visible after it."""
        give(edge)
        age(edge, QUIET)
        asked, committed = threading.Event(), threading.Event()

        def late() -> None:
            with transaction(edge.engine) as connection:
                connection.exec_driver_sql("UPDATE exemplar SET label = 0 WHERE external_id = 'vp-300'")
                connection.exec_driver_sql(
                    "UPDATE recalibration_request SET last_requested_at = last_requested_at + interval '1 microsecond'"
                )
                asked.set()
                assert committed.wait(30)

        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(late)
            assert asked.wait(30)
            with during_snapshots(committed.set, monkeypatch):
                assert outcomes(due()) == [Outcome.RECALIBRATED]
            other.result()
        assert only_request(edge).job_id is None
        age(edge, QUIET)
        assert outcomes(due()) == [Outcome.RECALIBRATED]

    def test_several_looks_at_once_make_one_snapshot(self, edge: Bench, due: Callable[..., list[Step]]) -> None:
        give(edge)
        age(edge, QUIET)
        begun = threading.Barrier(2)

        def look() -> list[Step]:
            begun.wait()
            return due()

        with ThreadPoolExecutor(2) as pool:
            found = [step for steps in pool.map(lambda _: look(), range(2)) for step in steps]
        assert outcomes(found) == [Outcome.RECALIBRATED]
        assert len(snapshots(edge)) == 2

    def test_a_calibrator_somebody_is_at_is_left_to_them(self, edge: Bench, due: Callable[..., list[Step]]) -> None:
        give(edge)
        age(edge, QUIET)
        with transaction(edge.engine) as connection:
            classifier = classifiers.by_name(connection, "edge")
            calibrations.lock_calibrator(connection, classifier, make_settings(3, 5, **EDGE.settings))
            assert due() == []
        assert outcomes(due()) == [Outcome.RECALIBRATED]

    def test_readers_never_see_half_of_a_snapshot(self, edge: Bench) -> None:
        """Snapshot n has n points less in vp, and n's class for the rest of the first hundred; nothing in between."""
        moving = [row.id for row in edge.rows("SELECT id FROM exemplar WHERE split = 'vp' ORDER BY id LIMIT 100")]
        last, seen = 8, set[int]()

        def read() -> None:
            while last not in seen:
                with connect(edge.engine) as connection:
                    current = calibrations.latest(connection, classifiers.by_name(connection, "edge"))
                    mc = calibrations.read_points(connection, current, Split.MC)
                    vp = calibrations.read_points(connection, current, Split.VP)
                assert (len(mc.exemplar_ids), len(vp.exemplar_ids)) == (current.mc_count, current.vp_count)
                if current.number > 1:
                    labels = vp.points.label[np.isin(vp.exemplar_ids, moving)].tolist()
                    assert labels == [current.number % 3] * (101 - current.number)
                seen.add(current.number)

        with ThreadPoolExecutor(1) as pool:
            reader = pool.submit(read)
            for number in range(2, last + 1):
                with transaction(edge.engine) as connection:
                    connection.exec_driver_sql(
                        f"UPDATE exemplar SET label = {number % 3} WHERE id BETWEEN {moving[0]} AND {moving[-1]}"
                    )
                    connection.exec_driver_sql(f"UPDATE exemplar SET split = 'scored' WHERE id = {moving[number]}")
                calibrate(edge.engine, "edge", lambda _: make_settings(3, 5, **EDGE.settings), reason="test", keep=1)
            reader.result(60)


class TestSettings:
    def test_each_calibrator_is_kept_current_and_the_one_in_use_stays_so(
        self, edge: Bench, due: Callable[..., list[Step]]
    ) -> None:
        other = edge.calibrate("edge", **(EDGE.settings | {"kappa": 5})).calibrator_id
        used = edge.calibrate("edge", **EDGE.settings).calibrator_id
        assert give(edge).recalibrations == 2
        age(edge, QUIET)
        assert sorted(step.request.calibrator_id for step in due()) == [used, other]
        with connect(edge.engine) as connection:
            latest = calibrations.latest(connection, classifiers.by_name(connection, "edge"))
        assert (latest.calibrator_id, latest.number) == (used, 3)
        give(edge, shift=2)
        age(edge, QUIET)
        with transaction(edge.engine) as connection:  # in the other order
            connection.exec_driver_sql(
                f"UPDATE recalibration_request SET first_requested_at = first_requested_at - interval '1 s'"
                f" WHERE calibrator_id = {used}"
            )
        assert [step.request.calibrator_id for step in due()] == [used, other]
        with connect(edge.engine) as connection:
            assert calibrations.latest(connection, classifiers.by_name(connection, "edge")).calibrator_id == used


class TestFailures:
    def fail_job(self, bench: Bench, job_id: int, folder: Path) -> None:
        (folder / "file").touch()
        broken = ChunkRunner(bench.engine, ArrayCache(folder / "file"), ChunkLimits(max_attempts=1), worker="broken")
        for ordinal in range(2):
            broken.run(job_id, ordinal)

    def test_a_failed_job_lets_the_request_rest_until_the_next(
        self, edge: Bench, due: Callable[..., list[Step]], tmp_path: Path
    ) -> None:
        more(edge)
        age(edge, QUIET)
        (started,) = due()
        assert started.job_id is not None
        self.fail_job(edge, started.job_id, tmp_path)
        (failed,) = due()
        assert failed.error is not None
        assert failed.error.startswith(f"job {started.job_id} failed: DatabaseError: the cache folder")
        assert only_request(edge).error == failed.error
        assert due() == []
        assert edge.value("SELECT count(*) FROM job") == started.job_id

        give(edge)
        assert (only_request(edge).error, only_request(edge).job_id) == (None, None)
        age(edge, QUIET)
        (again,) = due()
        assert again.job_id is not None
        edge.run(again.job_id)
        assert outcomes(due()) == [Outcome.RECALIBRATED]

    def test_a_cancelled_job_too(self, edge: Bench, due: Callable[..., list[Step]]) -> None:
        more(edge)
        age(edge, QUIET)
        (started,) = due()
        assert started.job_id is not None
        cancel(edge.engine, started.job_id)
        assert [step.error for step in due()] == [f"job {started.job_id} cancelled"]

    def test_data_that_cannot_calibrate_leave_the_snapshot_and_a_person_may_retry(
        self, edge: Bench, due: Callable[..., list[Step]]
    ) -> None:
        give(edge)
        age(edge, QUIET)
        with transaction(edge.engine) as connection:
            connection.exec_driver_sql("UPDATE exemplar SET split = 'knn' WHERE split = 'mc'")
        (failed,) = due()
        assert failed.error is not None
        assert "split mc of 'edge' holds no labelled exemplar" in failed.error
        assert due() == []
        assert snapshots(edge) == [(1, 1, "current", "test")]
        with transaction(edge.engine) as connection:
            connection.exec_driver_sql("UPDATE exemplar SET split = 'mc' WHERE starts_with(external_id, 'mc-')")
        (request,) = retry_and_list(edge.engine, "edge")
        step = recalibrate_step(
            edge.engine, request, chunk_rows=100, quiet_seconds=0, wait_seconds=0, keep=None, wait=True
        )
        assert step is not None
        assert step.outcome == Outcome.RECALIBRATED

    def test_one_that_goes_wrong_does_not_stop_the_others(
        self, edge: Bench, due: Callable[..., list[Step]], logged: list[MutableMapping[str, Any]]
    ) -> None:
        other = edge.calibrate("edge", **(EDGE.settings | {"kappa": 5})).calibrator_id
        give(edge)
        age(edge, QUIET)
        with transaction(edge.engine) as connection:
            connection.exec_driver_sql("ALTER TABLE calibration ADD CHECK (calibrator_id <> 1 OR number < 2)")
        assert [step.request.calibrator_id for step in due()] == [other]
        assert [entry["calibrator"] for entry in logged if entry["event"] == "recalibration went wrong"] == [1]
        assert only_request(edge).calibrator_id == 1
        assert edge.value("SELECT count(*) FROM calibration_point WHERE calibrator_id = 1 AND valid_from = 2") == 0


class TestRetention:
    def recalibrate(self, bench: Bench, due: Callable[..., list[Step]], times: int, keep: int | None) -> None:
        for _ in range(times):
            number = bench.value("SELECT max(number) FROM calibration")
            give(bench, shift=1 + number % 2, rows=range(number, 20))
            age(bench, QUIET)
            assert outcomes(due(keep=keep)) == [Outcome.RECALIBRATED]

    def numbers(self, bench: Bench) -> list[int]:
        return [row.number for row in bench.rows("SELECT number FROM calibration ORDER BY number")]

    def test_the_last_are_kept_and_all_that_decisions_refer_to(
        self, edge: Bench, due: Callable[..., list[Step]]
    ) -> None:
        self.recalibrate(edge, due, 1, None)
        scored = edge.score("edge", edge.folder / "score.npz")
        self.recalibrate(edge, due, 4, None)
        assert self.numbers(edge) == [1, 2, 3, 4, 5, 6]
        kept = {number: points(edge, number) for number in (2, 6)}
        exported = edge.export("edge", Export.CALIBRATION, calibration_id=scored.request.calibration_id)
        rows = edge.value("SELECT count(*) FROM calibration_point")

        self.recalibrate(edge, due, 1, 2)
        assert self.numbers(edge) == [2, 6, 7]
        assert {number: points(edge, number) for number in (2, 6)} == kept
        assert edge.export("edge", Export.CALIBRATION, calibration_id=scored.request.calibration_id) == exported
        assert edge.value("SELECT count(*) FROM calibration_point") < rows
        held = "EXISTS (SELECT FROM unnest(ARRAY[2, 6, 7]) AS n WHERE n >= valid_from AND n < coalesce(valid_until, 8))"
        assert edge.value(f"SELECT count(*) FROM calibration_point WHERE NOT {held}") == 0
        assert replay(edge.engine, edge.cache, edge.value("SELECT min(id) FROM decision")).differing == ()

    def test_a_job_that_has_not_decided_yet_keeps_its_snapshot(
        self, edge: Bench, due: Callable[..., list[Step]]
    ) -> None:
        job_id = edge.request_score("edge", edge.folder / "score.npz").job_id
        self.recalibrate(edge, due, 2, 1)
        assert self.numbers(edge) == [1, 3]
        edge.run(job_id)

    def test_one_that_somebody_reads_is_kept_until_the_next_time(
        self, edge: Bench, due: Callable[..., list[Step]]
    ) -> None:
        with connect(edge.engine) as connection:
            calibrations.by_id(connection, classifiers.by_name(connection, "edge"), 1)
            self.recalibrate(edge, due, 1, 1)
            assert self.numbers(edge) == [1, 2]
        self.recalibrate(edge, due, 1, 1)
        assert self.numbers(edge) == [3]

    def test_all_are_kept_where_nothing_is_said(self, edge: Bench) -> None:
        for _ in range(3):
            edge.calibrate("edge", **EDGE.settings)
        assert self.numbers(edge) == [1, 2, 3, 4]

    def test_other_settings_are_left(self, edge: Bench) -> None:
        edge.calibrate("edge", **(EDGE.settings | {"kappa": 5}))
        for _ in range(2):
            calibrate(edge.engine, "edge", lambda _: make_settings(3, 5, **EDGE.settings), reason="test", keep=1)
        assert snapshots(edge) == [(2, 1, "current", "test"), (1, 3, "current", "test")]
