"""Recalibration by requests: gathered, and each calibrator served once it is due."""

from collections.abc import MutableMapping
from typing import Any

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
from tests.running import Bench
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.calibration.recalibrate import RecalibrationOutcome
from venn_admit.flows.data.export import Export
from venn_admit.flows.data.label import label
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars import classifiers


class TestRequests:
    def test_labels_of_what_calibrates_ask_for_one(self, edge: Bench) -> None:
        assert give(edge).recalibrations_due == 1
        first = only_request(edge)
        assert (first.calibrator_id, first.reason, first.job_id, first.error) == (1, "labels", None, None)
        assert first.first_requested_at == first.last_requested_at
        assert give(edge, shift=2).recalibrations_due == 1
        second = only_request(edge)
        assert second.first_requested_at == first.first_requested_at
        assert second.last_requested_at > first.last_requested_at
        assert second.reason == "labels"

    def test_what_changes_no_snapshot_asks_for_none(self, edge: Bench) -> None:
        assert give(edge, shift=0).recalibrations_due == 0
        edge.score("edge", edge.folder / "score.npz")
        path = edge.folder / "labels.csv"
        path.write_text(f"external_id,label\nscore-0,{(int(EDGE['score_y'][0]) + 1) % 3}\n")
        assert label(edge.engine, "edge", LabelFile(path), selection="selected", retract=False).corrected == 1
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
            label(edge.engine, "edge", LabelFile(path), selection="random", retract=False)
        assert edge.rows(REQUEST) == []


class TestDebounce:
    def test_a_request_waits_until_no_other_came_for_a_while(self, edge: Bench, due: Due) -> None:
        give(edge)
        assert due() == []
        age(edge, QUIET - 5)
        give(edge, shift=2)
        age(edge, QUIET - 5)
        assert due() == []
        age(edge, 6)
        (step,) = due()
        assert step.outcome == RecalibrationOutcome.RECALIBRATED
        assert edge.rows(REQUEST) == []
        assert snapshots(edge) == [(1, 1, "retired", "test"), (1, 2, "current", "labels")]
        assert due() == []

    def test_but_no_longer_than_so_long_after_the_first(self, edge: Bench, due: Due) -> None:
        give(edge)
        age(edge, WAIT - 5, "first_requested_at")
        assert due() == []
        age(edge, 6, "first_requested_at")
        assert outcomes(due()) == [RecalibrationOutcome.RECALIBRATED]

    def test_many_labels_are_one_snapshot_that_writes_what_changed(
        self, edge: Bench, due: Due, logged: list[MutableMapping[str, Any]]
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

    def test_it_is_what_a_calibration_from_scratch_gives(self, edge: Bench, due: Due) -> None:
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
    def test_are_searched_by_a_job_and_no_others(self, edge: Bench, due: Due) -> None:
        count = more(edge)
        age(edge, QUIET)
        (started,) = due()
        assert started.outcome == RecalibrationOutcome.STARTED
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

    def test_that_arrive_while_the_job_runs_wait_for_the_next(self, edge: Bench, due: Due) -> None:
        count = more(edge)
        age(edge, QUIET)
        (started,) = due()
        assert started.job_id is not None
        late = more(edge, "late")
        edge.run(started.job_id)
        (made,) = due()
        assert made.calibrated is not None
        assert (made.calibrated.changed.opened, made.calibrated.left_out) == (count, late)
        assert only_request(edge).job_id is None
        assert due() == [], "not quiet yet"
        age(edge, QUIET)
        (again,) = due()
        assert again.job_id is not None
        edge.run(again.job_id)
        assert outcomes(due()) == [RecalibrationOutcome.RECALIBRATED]
        assert edge.rows(REQUEST) == []

    def test_no_snapshot_is_made_while_training_data_change(self, edge: Bench, due: Due) -> None:
        more(edge)
        age(edge, QUIET)
        (started,) = due()
        assert started.job_id is not None
        edge.run(started.job_id)
        with transaction(edge.engine) as connection:  # or they would wait
            connection.exec_driver_sql("UPDATE recalibration_request SET job_id = NULL")
            connection.exec_driver_sql("UPDATE job SET finished_at = finished_at - interval '1 day'")
        assert more(edge, "training", "train") > 0
        with transaction(edge.engine) as connection:
            connection.exec_driver_sql(f"UPDATE recalibration_request SET job_id = {started.job_id}")
        assert outcomes(due()) == [RecalibrationOutcome.OUTDATED]
        assert only_request(edge).job_id is None
        age(edge, QUIET)
        (again,) = due()
        assert again.job_id is not None
        edge.run(again.job_id)
        assert outcomes(due()) == [RecalibrationOutcome.RECALIBRATED]
        assert edge.rows(REQUEST) == []

    def test_labels_that_arrive_while_the_job_runs_are_in_the_snapshot(self, edge: Bench, due: Due) -> None:
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


class TestSettings:
    def test_each_calibrator_is_kept_current_and_the_one_in_use_stays_so(self, edge: Bench, due: Due) -> None:
        other = edge.calibrate("edge", **(EDGE.settings | {"kappa": 5})).calibrator_id
        used = edge.calibrate("edge", **EDGE.settings).calibrator_id
        assert give(edge).recalibrations_due == 2
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
