"""Training exemplars that arrive while a recalibration is under way wait for it, and put it off no more."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.flows.recalibration import EDGE, QUIET, REQUEST, Computing, Due, age, more, only_request, outcomes
from tests.from_scratch import current_points, store_again
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.running import Bench, ChunkLimits, run_chunk, workspace
from venn_admit.core.split_names import Split
from venn_admit.errors import DatabaseError, NotReadyError, VennAdmitError
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.calibration import recalibrate
from venn_admit.flows.calibration.calibrate import (
    NearlyNothingUsable,
    add_approximation_job,
    calibrate,
    settings_for,
)
from venn_admit.flows.calibration.compare import compare
from venn_admit.flows.calibration.fit import fit
from venn_admit.flows.calibration.recalibrate import RecalibrationOutcome, retry_and_list
from venn_admit.flows.computing import chunk_runner
from venn_admit.flows.data.catalogue import show
from venn_admit.flows.data.label import label
from venn_admit.flows.decisions.replay import replay
from venn_admit.flows.decisions.score_one import PointScorer
from venn_admit.flows.jobs.control import cancel
from venn_admit.flows.reports.other_training import other_training
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.search.array_cache import ArrayCache
from venn_admit.store.work import recalibrations
from venn_admit_client.records.data import Ingestion

NEWEST = "SELECT max(id) FROM exemplar WHERE classifier_id = 1 AND split = 'train'"
EXTERNAL_ID = "SELECT external_id FROM exemplar WHERE id = :id"
LONGEST_LISTED = "SELECT max(one) FROM neighbours CROSS JOIN unnest(neighbour_ids) AS one"
STREAM_SECONDS = 0.3
BLOCKED = """
SELECT count(*)
FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


def training(bench: Bench, name: str, rows: int = 3) -> Ingestion:
    """A few training exemplars, each at the place of a point of vp, so that they are neighbours at once."""
    chosen = np.random.default_rng(list(name.encode())).choice(len(EDGE["vp_y"]), rows, replace=False)
    arrays = {
        "id": np.array([f"{name}-{row}" for row in range(rows)]),
        "r": EDGE["vp_r"][chosen],
        "f": EDGE["vp_f"][chosen],
        "y": (EDGE["vp_y"][chosen] + 1) % 3,
    }
    return bench.ingest("edge", bench.write(f"{name}.npz", arrays), "train")


def classifier_of(bench: Bench) -> Classifier:
    with connect(bench.engine) as connection:
        return classifiers.by_name(connection, "edge")


def version(bench: Bench) -> int:
    return classifier_of(bench).support_version


def begin(bench: Bench, due: Due) -> int:
    """Start a recalibration whose job has points to approximate; its key."""
    more(bench)
    age(bench, QUIET)
    (started,) = due()
    assert started.job_id is not None
    return started.job_id


def run_first(bench: Bench, job_id: int) -> None:
    """Compute the first of several chunks of a job."""
    assert run_chunk(bench.runner(worker="first"), job_id, 0) > 0
    assert bench.value("SELECT state FROM job WHERE id = :id", id=job_id) == "running"


def serve(bench: Bench, due: Due) -> None:
    """Serve the request for what waited."""
    age(bench, QUIET)
    (started,) = due()
    assert started.job_id is not None
    bench.run(started.job_id)
    assert outcomes(due()) == [RecalibrationOutcome.RECALIBRATED]
    assert bench.rows(REQUEST) == []


def require_from_scratch(bench: Bench, of_version: int, again: str, found: list[Any]) -> None:
    store_again(bench, "edge", again, EDGE.parameters, float(EDGE["eta_loc"]), version=of_version)
    bench.calibrate(again, **EDGE.settings)
    assert current_points(bench, again) == found


class TestWaiting:
    def test_what_arrives_waits_for_the_snapshot_and_joins_the_next(self, edge: Bench, due: Due) -> None:
        job_id = begin(edge, due)
        before = version(edge)
        first = training(edge, "first")
        assert (first.training_waiting, first.recalibrations_due) == (3, 0)
        assert training(edge, "second").training_waiting == 6
        assert show(edge.engine, "edge").waiting == 6
        assert version(edge) == before
        edge.run(job_id)
        (made,) = due()
        assert made.calibrated is not None
        assert made.calibrated.classifier.support_version == before
        found = current_points(edge, "edge")

        assert version(edge) == edge.value(NEWEST) > before
        assert show(edge.engine, "edge").waiting == 0
        assert only_request(edge).reason == "training data"
        serve(edge, due)
        assert current_points(edge, "edge") != found
        require_from_scratch(edge, version(edge), "all", current_points(edge, "edge"))
        require_from_scratch(edge, before, "earlier", found)

    def test_what_arrives_while_the_job_is_recorded_finds_it(
        self, edge: Bench, due: Due, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        arriving: list[Future[Ingestion]] = []

        def arrives_meanwhile(*given: Any, **limits: Any) -> int:
            arriving.append(pool.submit(training, edge, "meanwhile"))
            wait_until(lambda: edge.value(BLOCKED) or arriving[0].done(), "it waits or ends")
            assert not arriving[0].done(), "it was stored before the job"
            return add_approximation_job(*given, **limits)

        monkeypatch.setattr(recalibrate, "add_approximation_job", arrives_meanwhile)
        with ThreadPoolExecutor(1) as pool:
            job_id = begin(edge, due)
        assert arriving[0].result().training_waiting == 3
        edge.run(job_id)
        assert outcomes(due()) == [RecalibrationOutcome.RECALIBRATED]
        assert show(edge.engine, "edge").waiting == 0

    def test_without_a_recalibration_none_waits(self, edge: Bench) -> None:
        arrived = training(edge, "at once")
        assert (arrived.training_waiting, arrived.recalibrations_due) == (0, 1)
        assert version(edge) == edge.value(NEWEST)

    @pytest.mark.parametrize("end", ["dry run", "error", "nothing usable", "comparison", "fit"])
    def test_nothing_waits_for_what_came_to_nothing(self, edge: Bench, end: str) -> None:
        """What arrived before it ended joins at its end, and what arrives afterwards joins at once."""

        class Meanwhile(Computing):
            def run_job(self, job_id: int, what: str, then: Callable[[], None] | None = None) -> None:
                super().run_job(job_id, what, then)
                assert training(edge, "meanwhile").training_waiting == 3

        def gives_up(*_: object) -> None:
            raise NotReadyError("it gives up")

        more(edge, "more", "knn")
        edge.adopt("edge", EDGE.parameters, float(EDGE["eta_loc"]))
        work, known, shell = edge.workspace(), classifier_of(edge), Meanwhile(edge)
        asked: dict[str, Any] = {"shell": shell, "reason": "test"}
        match end:
            case "dry run":
                settings = settings_for(known, "venn-admit", EDGE.settings)
                calibrate(work, known, settings, even_if_nearly_nothing_is_usable=True, dry_run=True, **asked)
            case "error":
                settings = settings_for(known, "venn-abers", {"score": "network", "certify": "group:nope"})
                with pytest.raises(VennAdmitError, match="nope"):
                    calibrate(work, known, settings, even_if_nearly_nothing_is_usable=True, **asked)
            case "nothing usable":
                settings = settings_for(known, "venn-admit", {"kappa": 10_000})
                done = calibrate(work, known, settings, even_if_nearly_nothing_is_usable=False, **asked)
                assert isinstance(done, NearlyNothingUsable)
            case "comparison":
                compare(work, "edge", Decimal("0.1"), shell=shell)
            case "fit":
                with pytest.raises(NotReadyError, match="it gives up"):
                    fit(work, "edge", shell=shell, on_epoch=gives_up)
        assert show(edge.engine, "edge").waiting == 0
        assert training(edge, "afterwards").training_waiting == 0

    def test_decisions_meanwhile_rest_on_those_that_train(self, edge: Bench, due: Due) -> None:
        begin(edge, due)
        held = version(edge)
        scorer = PointScorer(edge.workspace())
        vector = EDGE["vp_r"][0].astype(np.float32)
        before = scorer.score("edge", vector)
        same_place = {"id": np.array(["same"]), **{key: EDGE[f"vp_{key}"][:1] for key in ("r", "f", "y")}}
        assert edge.ingest("edge", edge.write("same.npz", same_place), "train").training_waiting == 1
        after = scorer.score("edge", vector)
        assert before.nearest is not None
        assert after.nearest is not None
        np.testing.assert_array_equal(after.nearest.ids, before.nearest.ids)
        assert after.fields == before.fields

        edge.score("edge", edge.write("points.npz", EDGE.exemplars("score")))
        decided = edge.rows("SELECT id, support_version FROM decision")
        assert {row.support_version for row in decided} == {held}
        assert edge.value(LONGEST_LISTED) <= held
        job_id = only_request(edge).job_id
        edge.run(job_id)
        assert outcomes(due()) == [RecalibrationOutcome.RECALIBRATED]
        assert version(edge) > held
        assert all(replay(edge.workspace(), row.id).differing == () for row in decided[:5])
        joined = scorer.score("edge", vector)
        assert joined.nearest is not None
        assert joined.nearest.distances[0] == 0

    def test_what_if_says_that_they_wait(self, edge: Bench, due: Due, monkeypatch: pytest.MonkeyPatch) -> None:
        edge.run(begin(edge, due))
        training(edge, "waiting")
        monkeypatch.setattr(recalibrate, "take_in_waiting", lambda *_: None)  # as if it had died after the snapshot
        assert outcomes(due()) == [RecalibrationOutcome.RECALIBRATED]
        with connect(edge.engine) as connection, pytest.raises(NotReadyError, match="'waiting-0' waits for jobs"):
            other_training(connection, "edge", {}, ["waiting-0"])


class TestStream:
    @contextmanager
    def stream(self, bench: Bench) -> Iterator[Callable[[], None]]:
        """Training exemplars that arrive without a pause; what is yielded waits for two more."""
        arrived, stopped = 0, threading.Event()
        failures: list[Exception] = []

        def arrive() -> None:
            nonlocal arrived
            try:
                while not stopped.is_set():
                    training(bench, f"stream-{arrived}", rows=1)
                    arrived += 1
                    stopped.wait(STREAM_SECONDS)
            except Exception as error:
                failures.append(error)

        def two_more() -> None:
            wanted = arrived + 2
            wait_until(lambda: arrived >= wanted or not thread.is_alive(), "more arrives")

        thread = threading.Thread(target=arrive)
        thread.start()
        try:
            yield two_more
        finally:
            stopped.set()
            thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
        assert failures == []

    @pytest.mark.usefixtures("all_replace")
    def test_snapshots_are_made_meanwhile_and_each_is_one_from_scratch(self, edge: Bench, due: Due) -> None:
        made = []
        with self.stream(edge) as two_more:
            for _ in range(3):
                two_more()
                age(edge, QUIET + 60)
                (started,) = due()
                assert started.job_id is not None
                run_first(edge, started.job_id)
                two_more()
                edge.run(started.job_id)
                (step,) = due()
                assert step.outcome == RecalibrationOutcome.RECALIBRATED
                assert step.calibrated is not None
                made.append((step.calibrated.classifier.support_version, current_points(edge, "edge")))
        versions = [of_version for of_version, _ in made]
        assert versions == sorted(set(versions))
        serve(edge, due)
        newest = edge.value(NEWEST)
        assert version(edge) == newest > versions[-1]
        for number, (of_version, found) in enumerate([*made, (newest, current_points(edge, "edge"))]):
            require_from_scratch(edge, of_version, f"scratch-{number}", found)


class TestEnd:
    @pytest.mark.parametrize("by", ["recalibration", "ingestion"])
    def test_a_cancelled_job_holds_none(self, edge: Bench, due: Due, by: str) -> None:
        job_id = begin(edge, due)
        training(edge, "waiting")
        cancel(edge.engine, job_id)
        if by == "recalibration":
            assert [step.error for step in due()] == [f"job {job_id} was cancelled"]
        else:
            assert training(edge, "next").training_waiting == 0
        assert version(edge) == edge.value(NEWEST)
        if by == "recalibration":
            assert only_request(edge).error is None, "the new data may make a difference"
            serve(edge, due)

    def test_a_failed_job_holds_none(self, edge: Bench, due: Due, tmp_path: Path) -> None:
        job_id = begin(edge, due)
        training(edge, "waiting")
        (tmp_path / "file").touch()
        broken = chunk_runner(
            workspace(edge.engine, ArrayCache(tmp_path / "file")), ChunkLimits(max_attempts=1), worker="broken"
        )
        for ordinal in range(2):
            run_chunk(broken, job_id, ordinal)
        assert outcomes(due()) == [RecalibrationOutcome.FAILED]
        assert version(edge) == edge.value(NEWEST)
        serve(edge, due)

    def test_a_correction_takes_effect_at_once_with_those_that_wait(self, edge: Bench, due: Due) -> None:
        job_id = begin(edge, due)
        before = version(edge)
        training(edge, "waiting")
        run_first(edge, job_id)
        path = edge.folder / "correction.csv"
        path.write_text(f"external_id,label\ntrain-0,{(int(EDGE['train_y'][0]) + 1) % 3}\nwaiting-0,0\nwaiting-1,1\n")
        assert label(edge.engine, "edge", LabelFile(path), selection="selected", retract=False).corrected > 0
        assert version(edge) > edge.value(NEWEST) > before
        edge.run(job_id, [1])
        assert outcomes(due()) == [RecalibrationOutcome.OUTDATED]
        serve(edge, due)
        require_from_scratch(edge, version(edge), "corrected", current_points(edge, "edge"))

    def test_one_that_joins_by_its_label_takes_effect_at_once_with_those_that_wait(self, edge: Bench, due: Due) -> None:
        """It was stored before the newest that trains, so that no version tells it from those that do."""
        own = EDGE.exemplars("score")  # which is unlike what calibrates
        own["id"], own["r"] = np.array([f"own-{known}" for known in own["id"]]), own["r"] + np.float32(0.25)
        edge.score("edge", edge.write("own.npz", own))
        training(edge, "newest")
        job_id = begin(edge, due)
        before = version(edge)
        training(edge, "waiting")
        run_first(edge, job_id)
        path = edge.folder / "joining.csv"
        scored = edge.value("SELECT min(id) FROM exemplar WHERE split = 'scored'")
        assert scored < before
        path.write_text(f"external_id,label\n{edge.value(EXTERNAL_ID, id=scored)},1\n")
        done = label(edge.engine, "edge", LabelFile(path), selection="selected", retract=False, join_train=True)
        assert done.calibrating == {Split.TRAIN: 1}
        assert version(edge) > edge.value(NEWEST) > before
        edge.run(job_id)
        assert outcomes(due()) == [RecalibrationOutcome.OUTDATED]
        serve(edge, due)

    @pytest.mark.parametrize("by", ["ingestion", "beat", "a person"])
    def test_none_waits_for_longer_than_ten_minutes(self, edge: Bench, due: Due, by: str) -> None:
        begin(edge, due)
        held = version(edge)
        training(edge, "waiting")
        self.let_wait(edge, "9 minutes 50 seconds")
        due()
        retry_and_list(edge.engine, "edge")
        assert training(edge, "next").training_waiting == 6
        assert version(edge) == held
        self.let_wait(edge, "15 seconds")
        if by == "ingestion":
            last = training(edge, "last")
            assert (last.training_waiting, last.recalibrations_due) == (0, 1)
        elif by == "beat":
            due()
        else:
            retry_and_list(edge.engine, "edge")
        assert version(edge) == edge.value(NEWEST)

    def let_wait(self, bench: Bench, interval: str) -> None:
        with transaction(bench.engine) as connection:
            connection.exec_driver_sql(
                f"UPDATE exemplar SET created_at = created_at - interval '{interval}' "
                "WHERE external_id LIKE 'waiting-%%'"
            )

    def test_jobs_of_two_settings_hold_until_both_are_served(self, edge: Bench, due: Due) -> None:
        edge.calibrate("edge", **(EDGE.settings | {"kappa": 5}))
        edge.calibrate("edge", **EDGE.settings)
        more(edge)
        age(edge, QUIET)
        started = due()
        assert outcomes(started) == [RecalibrationOutcome.STARTED] * 2
        held = version(edge)
        training(edge, "waiting")
        first, second = (step.job_id for step in started)
        assert first is not None
        assert second is not None
        edge.run(first)
        # What the second lacked was computed by the first, and is not computed again.
        assert outcomes(due()) == [RecalibrationOutcome.RECALIBRATED]
        assert version(edge) == held
        edge.run(second)
        assert outcomes(due()) == [RecalibrationOutcome.RECALIBRATED]
        assert version(edge) == edge.value(NEWEST)
        assert [row.reason for row in edge.rows(REQUEST)] == ["training data"] * 2

    def test_beat_ends_what_a_process_that_died_left(
        self, edge: Bench, due: Due, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job_id = begin(edge, due)
        held = version(edge)
        training(edge, "waiting")
        edge.run(job_id)

        def dies(*_: object) -> None:
            raise DatabaseError("the connection is lost")

        with monkeypatch.context() as patch:
            patch.setattr(recalibrations, "take_in_waiting", dies)
            assert outcomes(due()) == [RecalibrationOutcome.RECALIBRATED]
        assert edge.rows(REQUEST) == []
        assert version(edge) == held
        assert due() == []
        assert version(edge) == edge.value(NEWEST)
        serve(edge, due)


class TestOlderPrograms:
    """They take those that wait for training exemplars at once."""

    def test_a_list_of_theirs_that_holds_one_that_waits_is_refused(self, edge: Bench, due: Due) -> None:
        begin(edge, due)
        training(edge, "waiting")
        with pytest.raises(DatabaseError, match="neighbours_version_check"), transaction(edge.engine) as connection:
            connection.exec_driver_sql(f"UPDATE neighbours SET neighbour_ids[1] = ({NEWEST})")


def test_a_fit_asks_for_a_recalibration(few_reviews: Bench) -> None:
    assert few_reviews.rows(REQUEST) == []
    fitted = few_reviews.fit("reviews")
    assert only_request(few_reviews).reason == "new parameters"
    (request,) = retry_and_list(few_reviews.engine, "reviews")
    with transaction(few_reviews.engine) as connection:
        classifier = classifiers.by_name(connection, "reviews")
        before = calibrations.latest(connection, classifier)
    assert before.knn_parameters_id != fitted.parameters.id
    steps: list[recalibrate.RecalibrationStep] = []
    while not steps or steps[-1].calibrated is None:
        step = recalibrate.recalibrate_step(
            few_reviews.workspace(keep_calibrations=None), request, quiet_seconds=0, wait_seconds=0, wait=True
        )
        assert step is not None
        assert step.error is None
        if step.job_id is not None:
            few_reviews.run(step.job_id)
        steps.append(step)
    with connect(few_reviews.engine) as connection:
        assert calibrations.latest(connection, classifier).knn_parameters_id == fitted.parameters.id
    assert few_reviews.rows(REQUEST) == []
