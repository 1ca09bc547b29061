"""Many at once: writers, workers, a recalibration a second, and readers that score all the while.

Nobody may see an error or a deadlock, each score must rest on one snapshot, and what comes out at the end must be a
calibration from scratch. VENN_ADMIT_TEST_SOAK_SECONDS says for how long; `make soak` takes two minutes.
"""

import os
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from celery import Celery
from sqlalchemy import Engine, text

from tests.conftest import TEST_PREFIX
from tests.from_scratch import current_points, store_again
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.running import Arrays, Bench, workspace
from tests.workers.processes import WorkerProcess, await_workers, running_worker
from tests.workers.samples import CLASS_COUNT, ETA_LOC, NAME, PARAMETERS, SETTINGS, exemplars, value
from venn_admit.files.label_sources import LabelFile
from venn_admit.files.sources import FileSource
from venn_admit.flows.calibration.in_use import use
from venn_admit.flows.calibration.recalibrate import RecalibrationOutcome, recalibrate_due
from venn_admit.flows.data.ingest import ingest
from venn_admit.flows.data.label import label
from venn_admit.flows.decisions.replay import replay
from venn_admit.flows.decisions.score import request_score
from venn_admit.flows.jobs.control import await_job, relay
from venn_admit.store.database.engine import connect

pytestmark = pytest.mark.processes

SECONDS = float(os.environ.get(f"{TEST_PREFIX}SOAK_SECONDS", "12"))
WRITERS, READERS = 10, 3
WAITING = 600


class Crowd:
    """What everybody works on, and how often each kind of thing was done."""

    def __init__(self, engine: Engine, sender: Celery, folder: Path) -> None:
        self.engine = engine
        self.sender = sender
        self.folder = folder
        self.over = Event()
        self.done: Counter[str] = Counter()
        self.next_data = 0.0

    def own(self, name: str) -> Bench:
        """A folder for somebody's files, and the database that all share."""
        (self.folder / name).mkdir()
        return Bench(self.engine, self.folder / name)

    def write_labels(self, number: int) -> None:
        """Label, correct and take back; the first one brings new data now and then."""
        bench, rng = self.own(f"writer-{number}"), np.random.default_rng(number)
        while not self.over.is_set():
            turn = rng.integers(10)
            if number == 0 and time.monotonic() > self.next_data:
                self.next_data = time.monotonic() + 8
                self.ingest(bench, ("held-out", "train")[self.done["files of data"] % 2])
            else:
                retract = turn == 1
                rows = rng.choice(WAITING, size=rng.integers(1, 8), replace=False)
                lines = [f"waiting-{row},{'' if retract else rng.integers(CLASS_COUNT)}" for row in rows]
                path = bench.folder / "labels.csv"
                path.write_text("\n".join(["external_id,label", *lines]) + "\n")
                selection = "selected" if turn == 2 else "random"
                label(self.engine, NAME, LabelFile(path), selection=selection, retract=bool(retract))
                self.done["labels"] += len(rows)
            self.over.wait(rng.exponential(0.2))

    def ingest(self, bench: Bench, split: str) -> None:
        new = exemplars(f"new-{self.done['files of data']}", 6)
        ingest(self.engine, NAME, FileSource(bench.write("new.npz", new)), split)
        self.done["files of data"] += 1

    def recalibrate(self) -> None:
        """Every second, as beat would."""
        while not self.over.wait(1):
            steps = recalibrate_due(
                workspace(self.engine, chunk_rows=500, keep_calibrations=3),
                self.sender,
                quiet_seconds=0,
                wait_seconds=0,
            )
            for step in steps:
                assert step.error is None, step.error
                self.done[str(step.outcome)] += 1

    def score(self, number: int) -> None:
        """File after file; each must be decided on by the snapshot that its request named."""
        bench, turn = self.own(f"reader-{number}"), 0
        while not self.over.is_set():
            turn += 1
            request = request_score(
                workspace(self.engine, chunk_rows=20),
                NAME,
                FileSource(bench.write("scored.npz", unlabelled(f"reader-{number}-{turn}", 40))),
                weighted=turn % 2 == 0,
                require_full_match=False,
                calibration_id=None,
            )
            await_job(self.engine, self.sender, request.job_id, check_workers=lambda: None, on_progress=lambda _: None)
            assert bench.rows(DECIDED_BY, job_id=request.job_id) == [(request.calibration_id, 40)]
            self.done["files scored"] += 1


DECIDED_BY = """
SELECT decision.calibration_id, count(*)
FROM job
INNER JOIN job_row ON job.id = job_row.job_id
INNER JOIN decision
    ON job_row.exemplar_id = decision.exemplar_id
    AND job.weighted = decision.weighted
WHERE job.id = :job_id
GROUP BY decision.calibration_id
"""


def unlabelled(part: str, n: int) -> Arrays:
    return exemplars(part, n) | {"y": np.full(n, -1)}


def everybody(crowd: Crowd, seconds: float, is_enough: Callable[[], bool]) -> None:
    """Let all of them work at once, for so long and until it is enough, or until one fails; raises the error."""
    work: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
        *((crowd.write_labels, (number,)) for number in range(WRITERS)),
        *((crowd.score, (number,)) for number in range(READERS)),
        (crowd.recalibrate, ()),
    ]
    with ThreadPoolExecutor(len(work)) as pool:
        futures = [pool.submit(function, *arguments) for function, arguments in work]
        over_at = time.monotonic() + seconds

        def is_over() -> bool:
            return any(future.done() for future in futures) or (time.monotonic() > over_at and is_enough())

        try:
            wait_until(is_over, "everybody has done enough", seconds + PATIENCE_SECONDS)
        finally:
            crowd.over.set()
        for future in futures:
            future.result()


def settle(crowd: Crowd) -> None:
    """Serve the last request."""

    def served() -> bool:
        recalibrate_due(
            workspace(crowd.engine, chunk_rows=500, keep_calibrations=3), crowd.sender, quiet_seconds=0, wait_seconds=0
        )
        relay(crowd.engine, crowd.sender)
        return bool(value(crowd.engine, "SELECT count(*) = 0 FROM recalibration_request"))

    wait_until(served, "no recalibration is asked for")


def went_wrong(worker: WorkerProcess) -> list[dict[str, Any]]:
    return [entry for entry in worker.entries() if entry["level"] in ("warning", "error", "critical")]


@pytest.mark.slow
def test_all_at_once(url: str, open_engine: Callable[[str], Engine], sender: Celery, tmp_path: Path) -> None:
    engine = open_engine(url)
    crowd = Crowd(engine, sender, tmp_path)
    bench = crowd.own("bench")
    bench.score(NAME, bench.write("waiting.npz", unlabelled("waiting", WAITING)))
    with running_worker(url, tmp_path / "one") as one, running_worker(url, tmp_path / "two") as two:
        await_workers(engine, 2)

        def is_enough() -> bool:
            done = crowd.done
            is_done = done["files scored"] >= READERS and done["labels"] > WRITERS and done["files of data"] >= 2
            is_recalibrated = done[str(RecalibrationOutcome.RECALIBRATED)] > SECONDS / 4
            return is_done and is_recalibrated and all(worker.of_event("chunk is done") for worker in (one, two))

        everybody(crowd, SECONDS, is_enough)
        settle(crowd)
        assert went_wrong(one) + went_wrong(two) == []

    with connect(engine) as connection:
        deadlocks = connection.execute(
            text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        ).scalar_one()
    assert deadlocks == 0
    assert value(engine, "SELECT count(*) FROM job WHERE state <> 'done'") == 0
    assert value(engine, "SELECT max(attempts) FROM job_chunk") == 1

    # The labels are random, so that the last one may admit too little to be put in use by itself.
    use(engine, NAME, value(engine, "SELECT max(id) FROM calibration"))
    store_again(bench, NAME, "again", PARAMETERS, ETA_LOC)
    bench.calibrate("again", **SETTINGS)
    assert current_points(bench, NAME) == current_points(bench, "again")
    decided = bench.rows("SELECT id FROM decision ORDER BY md5(id::text) LIMIT 40")
    for row in decided:
        assert replay(workspace(engine, bench.cache), row.id).differing == ()
