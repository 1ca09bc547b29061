"""What a command says that waits for a job which does not move."""

from pathlib import Path

import pytest
from celery import Celery
from sqlalchemy import Engine

from tests.workers.samples import SCORED_ROWS, request_score
from venn_admit.cli import waiting
from venn_admit.cli.waiting import Notices
from venn_admit.flows.jobs.control import await_job, relay
from venn_admit.store.database.engine import transaction
from venn_admit.store.work import leases


class EnoughError(Exception):
    """The test has heard what it wanted."""


@pytest.mark.parametrize(
    ("lease_seconds", "said"), [(600, None), (100, "waiting for a chunk whose worker died"), (-1, "died")]
)
def test_a_chunk_whose_worker_died_is_named(
    engine: Engine, sender: Celery, tmp_path: Path, lease_seconds: float, said: str | None
) -> None:
    job_id = request_score(engine, tmp_path, chunk_rows=SCORED_ROWS)
    relay(engine, sender, job_id)
    with transaction(engine) as connection:
        assert leases.claim(connection, job_id, 0, worker="dead", lease_seconds=lease_seconds)
    heard: list[str | None] = []

    def on_wait(reason: str | None) -> None:
        heard.append(reason)
        raise EnoughError

    with pytest.raises(EnoughError):
        await_job(
            engine,
            sender,
            job_id,
            check_workers=lambda: None,
            on_progress=lambda _: None,
            on_wait=on_wait,
            least_lease_seconds=300,
        )
    (reason,) = heard
    assert reason is None if said is None else said in (reason or "")


def test_a_reason_that_lasts_is_said_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(waiting, "NOTICE_SECONDS", -1.0)
    notices = Notices()
    for reason in (None, "this", "this", "this", None, "that", "this", "this"):
        notices(reason)
    assert capsys.readouterr().err.split() == ["this", "this"]
