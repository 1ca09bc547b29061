"""A service and a worker that may change rows, and no table, answer every daily request."""

import uuid
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import httpx2 as httpx
import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine, text

from tests.api.processes import serving
from tests.api.service import OWN
from tests.api.test_writing import rows
from tests.cli import samples
from tests.cli.program import Program
from tests.conftest import administration
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.roles import as_role
from tests.workers.processes import await_workers, running_worker
from venn_admit.errors import DatabaseError
from venn_admit.http.guards.idempotency import REPLAYED
from venn_admit.store.database.engine import connect, create_engine, transaction
from venn_admit_client.bodies import PARQUET

CHANGES_OF_TABLES = (
    "CREATE TABLE venn_admit.mine (id integer)",
    "ALTER TABLE venn_admit.exemplar ADD COLUMN mine integer",
    "CREATE INDEX ON venn_admit.exemplar (id)",
    "DROP TABLE venn_admit.job CASCADE",
    "TRUNCATE venn_admit.decision CASCADE",
    "CREATE FUNCTION venn_admit.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
)


@pytest.fixture
def member(own_calibrated: Program) -> Iterator[Program]:
    """The program, connected as a member of the service's role, to whom nothing belongs at the end."""
    role = f"service_{uuid.uuid4().hex[:12]}"
    owner = create_engine(own_calibrated.url)
    with administration(own_calibrated.url) as execute:
        execute(f"CREATE ROLE {role}")
        assert own_calibrated("db", "grant-service", role).code == 0
        engine = as_role(owner, role)
        url = engine.url.render_as_string(hide_password=False)
        yield Program(own_calibrated.environment | {"VENN_ADMIT_DATABASE_URL": url})
        engine.dispose()
        owner.dispose()
        # It is refused if a table, a partition or a queue belongs to the role.
        execute(f"DROP ROLE {role}")


@pytest.fixture
def engine(member: Program) -> Iterator[Engine]:
    engine = create_engine(member.url)
    yield engine
    engine.dispose()


@pytest.fixture
def client(member: Program, engine: Engine) -> Iterator[httpx.Client]:
    """A client with a key that the member made, of a process that serves; beside that a worker, both the member's."""
    key = member("key", "create", "test", "--scope", "admin", "--json").result["secret"]
    with serving(member) as (_, url), running_worker(member.url, member.home / "worker"):
        await_workers(engine, 1)
        headers = {"Authorization": f"Bearer {key}"}
        with httpx.Client(base_url=url, headers=headers, timeout=PATIENCE_SECONDS) as client:
            assert client.get("/health/ready").json()["status"] == "ready"
            yield client


def post(
    client: httpx.Client, path: str, body: object, status: int = 200, *, once: str | None = None
) -> httpx.Response:
    """Send a body, which must be answered by this status; once: the idempotency key that it is sent under."""
    answer = client.post(path, json=body, headers={} if once is None else {"Idempotency-Key": once})
    assert answer.status_code == status, answer.text
    return answer


@pytest.mark.processes
def test_all_daily_requests_are_answered_as_a_member(client: httpx.Client, tmp_path: Path) -> None:
    exemplars = rows(samples.exemplars("more", 20, seed=7))
    points = {"points": [{"external_id": "new", "vector": exemplars[0]["vector"], "logits": exemplars[0]["logits"]}]}
    decided = post(client, f"{OWN}/decide", points).json()["decisions"]
    assert len(decided) == 1

    body = {"split": "held-out", "exemplars": exemplars}
    stored = post(client, f"{OWN}/exemplars", body, once="one")
    assert stored.json()["new"] == len(exemplars)
    again = post(client, f"{OWN}/exemplars", body, once="one")
    assert again.content == stored.content
    assert again.headers[REPLAYED] == "true"
    labelled = post(client, f"{OWN}/labels", {"labels": [{"external_id": "more-0", "label": "red"}]})
    assert labelled.json()["rows"] == 1

    settings = {"method": "venn-admit", "alpha": "0.2", "kappa": 10, "q_bins": [0, 1]}
    made = post(client, f"{OWN}/calibrations", settings, 201).json()["calibration"]
    assert post(client, f"{OWN}/decide", points).json()["calibration"] == made

    file = samples.save(tmp_path, "batch.parquet", samples.scored())
    submitted = client.post(f"{OWN}/jobs", content=file.read_bytes(), headers={"Content-Type": PARQUET})
    assert submitted.status_code == 202, submitted.text
    job = submitted.headers["location"]
    wait_until(lambda: client.get(job).json()["state"] != "running", "the job is over")
    assert client.get(job).json()["state"] == "done"
    scores = client.get(f"{job}/scores", headers={"Accept": PARQUET})
    assert pq.read_table(BytesIO(scores.content)).num_rows == samples.SCORED_ROWS

    forgotten = post(client, f"{OWN}/exemplars/forget", {"ids": ["more-1"]})
    assert forgotten.json()["exemplars"] == 1
    post(client, "/v1/classifiers", {"classifier": "new", "classes": ["a", "b"], "dimension": 3}, 201)
    removed = client.delete("/v1/classifiers/new")
    assert removed.status_code == 200, removed.text


@pytest.mark.parametrize("statement", CHANGES_OF_TABLES)
def test_a_member_changes_no_table(engine: Engine, statement: str) -> None:
    """The connections are those that the service has, by the URL that it was given."""
    with connect(engine) as connection:
        member = "SELECT pg_has_role(current_user, 'venn_admit_service', 'MEMBER')"
        assert connection.execute(text(member)).scalar_one()
        assert connection.execute(text("SELECT current_setting('is_superuser')")).scalar_one() == "off"
    with pytest.raises(DatabaseError, match=r"permission denied|must be owner"), transaction(engine) as connection:
        connection.execute(text(statement))
