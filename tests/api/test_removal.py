"""A job is removed over HTTP: at once for the client that asks, and for good by the upkeep of the database."""

from pathlib import Path

import pytest
from httpx2 import Response

from tests.api.service import OWN, Service, check_problem
from tests.api.test_batches import compute, submit
from tests.cli import samples
from venn_admit.flows.jobs.removal import prune
from venn_admit.store.access.audit import Origin
from venn_admit.store.access.keys import Scope


@pytest.fixture(scope="module")
def exemplars(session_folder: Path) -> Path:
    """Without labels: decisions on exemplars that have any are kept."""
    columns = {name: values for name, values in samples.scored().items() if name != "label"}
    return samples.save(session_folder, "removed.parquet", columns)


def delete(service: Service, path: str) -> Response:
    return service.ask("DELETE", path, key=Scope.ADMIN)


def test_a_job_is_removed(service: Service, exemplars: Path) -> None:
    job = submit(service, exemplars)["job"]
    path = f"{OWN}/jobs/{job}"
    check_problem(delete(service, path), 409, "job-running", f"job {job} is running")
    compute(service, job)
    decision = service.get(f"{OWN}/decisions").json()["decisions"][0]["decision"]
    for _ in range(2):
        answer = delete(service, path)
        assert answer.status_code == 200, answer.text
        told = answer.json()
        assert (told["state"], told["rows_done"]) == ("done", samples.SCORED_ROWS)
        assert told["removed_at"] is not None
    check_problem(service.get(f"{path}/scores"), 404, "removed-job", f"job {job} were removed on ")
    removed = prune(service.runtime.engine, None, origin=Origin.SCHEDULE)
    assert removed.rows == samples.SCORED_ROWS
    assert service.get(path).json()["chunk_list"] == []
    assert removed.decisions == samples.SCORED_ROWS
    check_problem(service.get(f"{OWN}/decisions/{decision}"), 404, "removed-decision", "because somebody asked")
    check_problem(delete(service, f"{OWN}/jobs/999999"), 404, "unknown-job")
    events = service.get("/v1/audit", key=Scope.ADMIN).json()["events"]
    assert [event["status"] for event in events if event["action"] == "delete_job"] == [404, 200, 200, 409]
