"""Training exemplars that arrive every 100 ms: whatever is computed from those before them ends all the same."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from sqlalchemy import text

from tests.flows.recalibration import EDGE, REQUEST, more
from tests.patience import PATIENCE_SECONDS
from tests.running import Bench, ChunkLimits, chunk_ordinals, run_chunk
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.types import TrainingEpoch
from venn_admit.flows.calibration.calibrate import calibrate_on_stored, request_approximations
from venn_admit.flows.calibration.compare import compare_on_stored, request_mc
from venn_admit.flows.calibration.fit import fit_on_stored, request_fit, request_neighbours, show_fit
from venn_admit.flows.computing import job_kinds
from venn_admit.flows.data.catalogue import count_waiting, find
from venn_admit.flows.jobs.chunks import ChunkResult, ChunkRunner, ChunkWork, ComputeChunk
from venn_admit.flows.jobs.control import cancel
from venn_admit.store.database.engine import transaction
from venn_admit.store.work import leases

CHUNK_ROWS = 300
STATE = "SELECT state FROM job WHERE id = :id"
BEHIND = "SELECT max(exemplar.id) > min(support_version) FROM exemplar, classifier WHERE split = 'train'"
RELABEL = "UPDATE classifier SET support_version = nextval(pg_get_serial_sequence('exemplar', 'id'))"


class Stream:
    """Training exemplars that arrive without a pause, each at the place of a point of vp."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._arrived = 0
        self._stopped = threading.Event()
        self._failures: list[Exception] = []

    def arrive(self) -> int:
        """Let one more arrive; how many wait then."""
        row = self._arrived % len(EDGE["vp_y"])
        arrays = {
            "id": np.array([f"stream-{self._arrived}"]),
            "r": EDGE["vp_r"][row : row + 1],
            "f": EDGE["vp_f"][row : row + 1],
            "y": (EDGE["vp_y"][row : row + 1] + 1) % 3,
        }
        done = self._bench.ingest("edge", self._bench.write("stream.npz", arrays), "train")
        self._arrived += 1
        return done.training_waiting

    def pass_by(self) -> None:
        """Wait until two more have arrived."""
        deadline, before = time.monotonic() + 60, self._arrived
        while self._arrived < before + 2:
            assert time.monotonic() < deadline
            assert self._failures == []
            time.sleep(0.01)

    @contextmanager
    def flowing(self) -> Iterator[None]:
        def flow() -> None:
            try:
                while not self._stopped.wait(0.1):
                    self.arrive()
            except Exception as error:
                self._failures.append(error)

        thread = threading.Thread(target=flow)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
        assert self._failures == []


@pytest.fixture
def stream(edge: Bench) -> Iterator[Stream]:
    found = Stream(edge)
    with found.flowing():
        found.pass_by()
        yield found


def run_slowly(bench: Bench, job_id: int, stream: Stream, *, disturbed: bool = False) -> None:
    """Compute the chunks of a job; training exemplars arrive before each, and while it is computed.

    disturbed: whether each is given back once.
    """

    def slow(compute: ComputeChunk) -> ComputeChunk:
        def computed(work: ChunkWork) -> ChunkResult:
            result = compute(work)
            stream.pass_by()
            return result

        return computed

    kinds = {kind: slow(compute) for kind, compute in job_kinds(bench.workspace()).items()}
    runner = ChunkRunner(bench.engine, kinds, ChunkLimits(), worker="slow")
    for ordinal in chunk_ordinals(bench.engine, job_id):
        stream.pass_by()
        if disturbed:
            assert run_chunk(runner, job_id, ordinal) == 0
        assert run_chunk(runner, job_id, ordinal) > 0
    assert bench.value(STATE, id=job_id) == "done"
    assert bench.value("SELECT max(attempts) FROM job_chunk WHERE job_id = :id", id=job_id) == 1


def move_to_knn(bench: Bench) -> None:
    with transaction(bench.engine) as connection:
        connection.execute(text("UPDATE exemplar SET split = 'knn' WHERE split = 'mc' AND id % 2 = 0"))


def test_a_calibration_ends(edge: Bench, stream: Stream) -> None:
    job_id = request_approximations(edge.workspace(chunk_rows=CHUNK_ROWS), "edge")
    held = edge.value("SELECT support_version FROM job WHERE id = :id", id=job_id)
    run_slowly(edge, job_id, stream)
    stream.pass_by()
    assert count_waiting(edge.engine, "edge") > 0
    made = calibrate_on_stored(
        edge.workspace(), find(edge.engine, "edge"), make_settings(3, 5, **EDGE.settings), reason="test"
    )
    assert made.classifier.support_version == held
    stream.pass_by()  # an arrival at that moment keeps those that wait until it is over
    assert edge.value("SELECT support_version FROM classifier") > held, "they join"
    assert [row.reason for row in edge.rows(REQUEST)] == ["training data"]


def test_a_fit_that_is_waited_for_ends(edge: Bench, stream: Stream) -> None:
    move_to_knn(edge)
    job_id = request_neighbours(edge.workspace(chunk_rows=CHUNK_ROWS), "edge")
    held = edge.value("SELECT support_version FROM job WHERE id = :id", id=job_id)
    run_slowly(edge, job_id, stream)
    stream.pass_by()
    begun: list[str] = []

    def show(model: str, _line: TrainingEpoch) -> None:
        if model not in begun:
            begun.append(model)
            stream.pass_by()

    made = fit_on_stored(edge.workspace(), "edge", on_epoch=show)
    assert begun == ["knn", "localizer"]
    assert edge.value("SELECT id FROM knn_parameters WHERE is_current") == made.parameters.id
    stream.pass_by()  # as above
    assert edge.value("SELECT support_version FROM classifier") > held


def test_a_job_that_fits_ends(edge: Bench, stream: Stream) -> None:
    move_to_knn(edge)
    job_id = request_fit(edge.workspace(chunk_rows=CHUNK_ROWS), "edge").job_id
    held = edge.value("SELECT support_version FROM job WHERE id = :id", id=job_id)
    run_slowly(edge, job_id, stream)
    assert show_fit(edge.engine, job_id).knn_parameters
    stream.pass_by()  # as above
    assert edge.value("SELECT support_version FROM classifier") > held


def test_a_comparison_ends(edge: Bench, stream: Stream) -> None:
    alpha = EDGE.settings["alpha"]
    job_id = request_mc(edge.workspace(chunk_rows=CHUNK_ROWS), "edge", alpha)
    assert job_id is not None
    run_slowly(edge, job_id, stream)
    stream.pass_by()
    assert compare_on_stored(edge.workspace(), "edge", alpha).compared


def test_scoring_ends(edge: Bench, stream: Stream) -> None:
    job_id = edge.request_score("edge", edge.folder / "score.npz", chunk_rows=60).job_id
    run_slowly(edge, job_id, stream, disturbed=True)
    decided = edge.value("SELECT count(*) FROM decision")
    assert decided == edge.value("SELECT row_count FROM job WHERE id = :id", id=job_id)


class TestEnd:
    def calibrating(self, edge: Bench) -> int:
        more(edge)
        return request_approximations(edge.workspace(chunk_rows=CHUNK_ROWS), "edge")

    def test_a_cancelled_job_holds_none(self, edge: Bench) -> None:
        job_id, arriving = self.calibrating(edge), Stream(edge)
        assert arriving.arrive() == 1
        cancel(edge.engine, job_id)
        assert arriving.arrive() == 0
        assert not edge.value(BEHIND)

    @pytest.mark.parametrize(("minutes", "waiting"), [(9, 2), (11, 0)])
    def test_a_job_that_nobody_computes_holds_none_for_long(self, edge: Bench, minutes: int, waiting: int) -> None:
        job_id, arriving = self.calibrating(edge), Stream(edge)
        assert arriving.arrive() == 1
        self.shift(edge, "created_at", job_id, minutes * 60)
        assert arriving.arrive() == waiting

    @pytest.mark.parametrize(("seconds", "waiting"), [(590, 2), (610, 0)])
    def test_nobody_calibrates_for_ten_minutes(self, edge: Bench, seconds: int, waiting: int) -> None:
        job_id, arriving = self.calibrating(edge), Stream(edge)
        edge.run(job_id)
        assert arriving.arrive() == 1
        self.be_from_yesterday(edge, job_id)
        self.shift(edge, "finished_at", job_id, seconds)
        assert arriving.arrive() == waiting

    def test_a_score_job_that_goes_on_undisturbed_holds_none(self, edge: Bench) -> None:
        job_id = edge.request_score("edge", edge.folder / "score.npz", chunk_rows=60).job_id
        with transaction(edge.engine) as connection:
            assert leases.claim(connection, job_id, 0, worker="here", lease_seconds=600) is not None
        assert Stream(edge).arrive() == 0

    def be_from_yesterday(self, bench: Bench, job_id: int) -> None:
        """All that was calibrated and fitted before a job."""
        with transaction(bench.engine) as connection:
            for table in ("calibration", "knn_parameters"):
                connection.exec_driver_sql(f"UPDATE {table} SET created_at = created_at - interval '1 day'")
            connection.exec_driver_sql(
                f"UPDATE job SET finished_at = finished_at - interval '1 day' WHERE id < {job_id}"
            )

    def shift(self, bench: Bench, column: str, job_id: int, seconds: int) -> None:
        with transaction(bench.engine) as connection:
            connection.exec_driver_sql(
                f"UPDATE job SET {column} = {column} - interval '{seconds} seconds' WHERE id = {job_id}"
            )


def test_what_changes_again_and_again_is_no_attempt(edge: Bench) -> None:
    """Corrections take effect at once, so that a chunk may have to be computed again any number of times."""
    job_id = edge.request_score("edge", edge.folder / "score.npz", chunk_rows=60).job_id

    def corrected(compute: ComputeChunk) -> Callable[[ChunkWork], ChunkResult]:
        def computed(work: ChunkWork) -> ChunkResult:
            result = compute(work)
            with transaction(edge.engine) as connection:
                connection.exec_driver_sql(RELABEL)
            return result

        return computed

    kinds = job_kinds(edge.workspace())
    limits = ChunkLimits(max_attempts=1)
    disturbed = ChunkRunner(edge.engine, kinds | {"score": corrected(kinds["score"])}, limits, worker="disturbed")
    for _ in range(3):
        assert run_chunk(disturbed, job_id, 0) == 0
        (chunk,) = edge.rows("SELECT * FROM job_chunk WHERE job_id = :id AND ordinal = 0", id=job_id)
        assert (chunk.state, chunk.attempts, chunk.lease_token, chunk.sent_at) == ("pending", 0, None, None)
        assert "changed meanwhile" in chunk.error
    edge.run(job_id)
