"""What waits, as Prometheus is told of it: labels for a recalibration, and chunks of jobs for a worker."""

import pytest
from sqlalchemy import text

from tests.api.service import OWN, Service
from tests.cli import samples
from tests.cli.samples import NAME
from venn_admit.store.database.engine import transaction
from venn_admit.store.work import gauges as standing

JOB = """
INSERT INTO job (classifier_id, kind, state, row_count, created_at)
SELECT id, 'fit', 'running', 30, now() - interval '1 hour' FROM classifier LIMIT 1
RETURNING id
"""
# One that nobody has claimed, one that is computed, and the last, which waits for both.
CHUNKS = """
INSERT INTO job_chunk (job_id, ordinal, first_row, end_row, state, lease_token, lease_until, claimed_at, is_last)
VALUES
    (:job, 0, 0, 10, 'pending', NULL, NULL, NULL, FALSE),
    (:job, 1, 10, 20, 'running', gen_random_uuid(), now() + interval '1 minute', now() - interval '20 minutes', FALSE),
    (:job, 2, 20, 30, 'pending', NULL, NULL, NULL, TRUE)
"""


def figure(service: Service, name: str) -> float:
    """The figure of a series, by its name with its labels."""
    (found,) = [line for line in service.get("/metrics").text.splitlines() if line.startswith(name + " ")]
    return float(found.split(" ")[-1])


def change(service: Service, statement: str, **parameters: object) -> None:
    with transaction(service.runtime.engine) as connection:
        connection.execute(text(statement), parameters)


def test_random_labels_that_wait_are_counted(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f'venn_admit_labels_waiting{{classifier="{NAME}"}}'
    assert figure(service, name) == 0
    others = (samples.held_out()["label"][:5] + 1) % samples.CLASS_COUNT
    given = [{"external_id": f"held-out-{row}", "label": int(label)} for row, label in enumerate(others)]
    answer = service.post(f"{OWN}/labels", {"labels": given, "selection": "random", "source": "test"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["corrected"] == 5
    assert figure(service, name) == 5
    monkeypatch.setattr(standing, "MOST_LABELS", 1)
    assert figure(service, name) == 1
    monkeypatch.undo()
    # Once it is served nothing waits, even labels that came while the calibration was being made.
    change(service, "DELETE FROM recalibration_request")
    assert figure(service, name) == 0


def test_the_age_of_the_queue_is_that_of_the_oldest_chunk_that_waits(service: Service) -> None:
    name = "venn_admit_queue_age_seconds"
    assert figure(service, name) == 0
    with transaction(service.runtime.engine) as connection:
        job = connection.execute(text(JOB)).scalar_one()
        connection.execute(text(CHUNKS), {"job": job})
    assert figure(service, name) == pytest.approx(3600, abs=60)
    assert figure(service, "venn_admit_oldest_job_seconds") == pytest.approx(3600, abs=60)

    # It may not be tried again yet, so that nothing waits for a worker.
    change(service, "UPDATE job_chunk SET not_before = now() + interval '1 minute' WHERE ordinal = 0")
    assert figure(service, name) == 0
    assert figure(service, "venn_admit_oldest_job_seconds") == pytest.approx(3600, abs=60)

    # The worker of the other died five minutes ago.
    change(service, "UPDATE job_chunk SET lease_until = now() - interval '5 minutes' WHERE ordinal = 1")
    assert figure(service, name) == pytest.approx(300, abs=60)

    done = "UPDATE job_chunk SET state = 'done', lease_token = NULL, finished_at = now() WHERE NOT is_last"
    change(service, done)
    assert figure(service, name) == pytest.approx(1200, abs=60)
