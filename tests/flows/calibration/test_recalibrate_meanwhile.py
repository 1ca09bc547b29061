"""Recalibration while others write, read and recalibrate, and how it fails."""

import threading
from collections.abc import Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.flows.recalibration import (
    EDGE,
    QUIET,
    REQUEST,
    WAIT,
    Due,
    age,
    give,
    more,
    only_request,
    outcomes,
    snapshots,
)
from tests.patience import PATIENCE_SECONDS
from tests.running import Bench, ChunkLimits, run_chunk, workspace
from venn_admit.core.calibrators.bands import band_radius
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.split_names import Split
from venn_admit.flows.calibration.calibrate import calibrate_on_stored
from venn_admit.flows.calibration.recalibrate import (
    RecalibrationOutcome,
    RecalibrationStep,
    recalibrate_step,
    retry_and_list,
)
from venn_admit.flows.computing import chunk_runner
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.jobs.control import cancel
from venn_admit.store.calibrations import calibrations, calibrators
from venn_admit.store.database.engine import consistent_view, transaction
from venn_admit.store.exemplars import classifiers
from venn_admit.store.search.array_cache import ArrayCache


@contextmanager
def during_snapshots(event: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Something happens once, when a snapshot has taken its view of the data."""
    events = [event]

    def interrupted(*arguments: Any) -> Any:
        while events:
            events.pop()()
        return band_radius(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr("venn_admit.methods.venn_admit.make.band_radius", interrupted)
        yield
    assert not events


class TestMeanwhile:
    def test_a_request_during_a_recalibration_is_served_by_the_next(
        self, edge: Bench, due: Due, monkeypatch: pytest.MonkeyPatch
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
        self, edge: Bench, due: Due, monkeypatch: pytest.MonkeyPatch
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
                assert committed.wait(PATIENCE_SECONDS)

        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(late)
            assert asked.wait(PATIENCE_SECONDS)
            with during_snapshots(committed.set, monkeypatch):
                assert outcomes(due()) == [RecalibrationOutcome.RECALIBRATED]
            other.result()
        assert only_request(edge).job_id is None
        age(edge, QUIET)
        assert outcomes(due()) == [RecalibrationOutcome.RECALIBRATED]

    def test_several_looks_at_once_make_one_snapshot(self, edge: Bench, due: Due) -> None:
        give(edge)
        age(edge, QUIET)
        begun = threading.Barrier(2)

        def look() -> list[RecalibrationStep]:
            begun.wait()
            return due()

        with ThreadPoolExecutor(2) as pool:
            found = [step for steps in pool.map(lambda _: look(), range(2)) for step in steps]
        assert outcomes(found) == [RecalibrationOutcome.RECALIBRATED]
        assert len(snapshots(edge)) == 2

    def test_a_calibrator_somebody_is_at_is_left_to_them(self, edge: Bench, due: Due) -> None:
        give(edge)
        age(edge, QUIET)
        with transaction(edge.engine) as connection:
            classifier = classifiers.by_name(connection, "edge")
            calibrators.lock(connection, classifier, make_settings(3, 5, **EDGE.settings))
            assert due() == []
        assert outcomes(due()) == [RecalibrationOutcome.RECALIBRATED]

    @pytest.mark.usefixtures("all_replace")
    def test_readers_never_see_half_of_a_snapshot(self, edge: Bench) -> None:
        """Snapshot n has n points less in vp, and n's class for the rest of the first hundred; nothing in between."""
        moving = [row.id for row in edge.rows("SELECT id FROM exemplar WHERE split = 'vp' ORDER BY id LIMIT 100")]
        last, seen = 8, set[int]()

        def read() -> None:
            while last not in seen:
                with consistent_view(edge.engine) as connection:
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
            known = find(edge.engine, "edge")
            for number in range(2, last + 1):
                with transaction(edge.engine) as connection:
                    connection.exec_driver_sql(
                        f"UPDATE exemplar SET label = {number % 3} WHERE id BETWEEN {moving[0]} AND {moving[-1]}"
                    )
                    connection.exec_driver_sql(f"UPDATE exemplar SET split = 'scored' WHERE id = {moving[number]}")
                calibrate_on_stored(
                    edge.workspace(keep_calibrations=1), known, make_settings(3, 5, **EDGE.settings), reason="test"
                )
            reader.result(PATIENCE_SECONDS)


class TestFailures:
    def fail_job(self, bench: Bench, job_id: int, folder: Path) -> None:
        (folder / "file").touch()
        broken = chunk_runner(
            workspace(bench.engine, ArrayCache(folder / "file")), ChunkLimits(max_attempts=1), worker="broken"
        )
        for ordinal in range(2):
            run_chunk(broken, job_id, ordinal)

    def test_a_failed_job_lets_the_request_rest_until_the_next(self, edge: Bench, due: Due, tmp_path: Path) -> None:
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
        assert outcomes(due()) == [RecalibrationOutcome.RECALIBRATED]

    def test_a_cancelled_job_too(self, edge: Bench, due: Due) -> None:
        more(edge)
        age(edge, QUIET)
        (started,) = due()
        assert started.job_id is not None
        cancel(edge.engine, started.job_id)
        assert [step.error for step in due()] == [f"job {started.job_id} was cancelled"]

    def test_what_was_requested_after_such_a_job_has_another(self, edge: Bench, due: Due) -> None:
        """It may be what made the job fail, so that another one succeeds."""
        more(edge)
        age(edge, QUIET)
        (started,) = due()
        assert started.job_id is not None
        give(edge)
        cancel(edge.engine, started.job_id)
        assert due() == [], "more may be requested"
        with transaction(edge.engine) as connection:
            connection.exec_driver_sql("UPDATE job SET created_at = created_at - interval '1 hour'")
        age(edge, QUIET)
        (again,) = due()
        assert (again.outcome, again.error) == (RecalibrationOutcome.STARTED, None)
        assert again.job_id is not None
        assert again.job_id > started.job_id
        edge.run(again.job_id)
        assert outcomes(due()) == [RecalibrationOutcome.RECALIBRATED]
        assert edge.rows(REQUEST) == []

    def test_data_that_cannot_calibrate_leave_the_snapshot_and_a_person_may_retry(self, edge: Bench, due: Due) -> None:
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
            edge.workspace(chunk_rows=100, keep_calibrations=None), request, quiet_seconds=0, wait_seconds=0, wait=True
        )
        assert step is not None
        assert step.outcome == RecalibrationOutcome.RECALIBRATED

    def test_one_that_goes_wrong_does_not_stop_the_others(
        self, edge: Bench, due: Due, logged: list[MutableMapping[str, Any]]
    ) -> None:
        other = edge.calibrate("edge", **(EDGE.settings | {"kappa": 5})).calibrator_id
        give(edge)
        age(edge, QUIET)
        with transaction(edge.engine) as connection:
            connection.exec_driver_sql("ALTER TABLE calibration ADD CHECK (calibrator_id <> 1 OR number < 2)")
        assert [step.request.calibrator_id for step in due()] == [other]
        assert [entry["calibrator"] for entry in logged if entry["event"] == "recalibration failed"] == [1]
        assert only_request(edge).calibrator_id == 1
        assert edge.value("SELECT count(*) FROM calibration_point WHERE calibrator_id = 1 AND valid_from = 2") == 0
