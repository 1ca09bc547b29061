"""A fit by workers: without beat, only the process that ends the other chunks sends the message for the last one."""

from collections.abc import Callable
from pathlib import Path

import pytest
from celery import Celery
from sqlalchemy import Engine, text

from tests.patience import wait_until
from tests.running import workspace
from tests.workers.processes import await_workers, running_worker
from tests.workers.samples import CHUNK_ROWS, NAME
from venn_admit.flows.calibration.fit import request_fit, show_fit
from venn_admit.flows.jobs.control import relay
from venn_admit.flows.jobs.listing import progress
from venn_admit.store.database.engine import transaction

pytestmark = pytest.mark.processes


def test_several_processes_fit_once(
    url: str, engine: Engine, sender: Celery, open_engine: Callable[[str], Engine], tmp_path: Path
) -> None:
    with transaction(engine) as connection:
        connection.execute(text("TRUNCATE neighbours CASCADE"))
    before = fits(engine)
    with running_worker(url, tmp_path, concurrency=2):
        await_workers(open_engine(url), 1)
        job = request_fit(workspace(engine, chunk_rows=CHUNK_ROWS), NAME).job_id
        relay(engine, sender, job)
        wait_until(lambda: progress(engine, job).state != "running", "the fit is over")
    assert progress(engine, job).state == "done"
    assert show_fit(engine, job).fit_points > 0
    assert fits(engine) == before + 1


def fits(engine: Engine) -> int:
    with transaction(engine) as connection:
        count: int = connection.execute(
            text("SELECT count(*) FROM knn_parameters WHERE origin = 'fitted'")
        ).scalar_one()
    return count
