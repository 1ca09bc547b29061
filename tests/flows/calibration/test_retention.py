"""Old snapshots: which are kept, and that those read as they were."""

import pytest

from tests.flows.recalibration import EDGE, QUIET, Due, age, give, outcomes, points, snapshots
from tests.running import Bench
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.flows.calibration.calibrate import calibrate_on_stored
from venn_admit.flows.calibration.recalibrate import RecalibrationOutcome
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.export import Export
from venn_admit.flows.decisions.replay import replay
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars import classifiers


class TestRetention:
    def recalibrate(self, bench: Bench, due: Due, times: int, keep: int | None) -> None:
        for _ in range(times):
            number = bench.value("SELECT max(number) FROM calibration")
            give(bench, shift=1 + number % 2, rows=range(number, 20))
            age(bench, QUIET)
            assert outcomes(due(keep=keep)) == [RecalibrationOutcome.RECALIBRATED]

    def numbers(self, bench: Bench) -> list[int]:
        return [row.number for row in bench.rows("SELECT number FROM calibration ORDER BY number")]

    def test_the_last_are_kept_and_all_that_decisions_refer_to(self, edge: Bench, due: Due) -> None:
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
        assert replay(edge.workspace(), edge.value("SELECT min(id) FROM decision")).differing == ()

    def test_a_job_that_has_not_decided_yet_keeps_its_snapshot(self, edge: Bench, due: Due) -> None:
        job_id = edge.request_score("edge", edge.folder / "score.npz").job_id
        self.recalibrate(edge, due, 2, 1)
        assert self.numbers(edge) == [1, 3]
        edge.run(job_id)

    def test_one_that_is_about_to_be_referred_to_is_kept_until_the_next_time(self, edge: Bench, due: Due) -> None:
        with connect(edge.engine) as connection:
            calibrations.held(connection, classifiers.by_name(connection, "edge"), 1)
            self.recalibrate(edge, due, 1, 1)
            assert self.numbers(edge) == [1, 2]
        self.recalibrate(edge, due, 1, 1)
        assert self.numbers(edge) == [3]

    def test_of_many_the_oldest_are_deleted_first(self, edge: Bench, due: Due, monkeypatch: pytest.MonkeyPatch) -> None:
        self.recalibrate(edge, due, 5, None)
        monkeypatch.setattr(calibrations, "DELETED_AT_ONCE", 2)
        self.recalibrate(edge, due, 1, 1)
        assert self.numbers(edge) == [3, 4, 5, 6, 7]
        self.recalibrate(edge, due, 1, 1)
        assert self.numbers(edge) == [5, 6, 7, 8]

    def test_all_are_kept_where_nothing_is_said(self, edge: Bench) -> None:
        for _ in range(3):
            edge.calibrate("edge", **EDGE.settings)
        assert self.numbers(edge) == [1, 2, 3, 4]

    def test_other_settings_are_left(self, edge: Bench) -> None:
        edge.calibrate("edge", **(EDGE.settings | {"kappa": 5}))
        for _ in range(2):
            calibrate_on_stored(
                edge.workspace(keep_calibrations=1),
                find(edge.engine, "edge"),
                make_settings(3, 5, **EDGE.settings),
                reason="test",
            )
        assert snapshots(edge) == [(2, 1, "current", "test"), (1, 3, "current", "test")]
