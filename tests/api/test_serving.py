"""`serve` as a process of its own, and the keys that open it."""

import re
import signal
import socket
import stat
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from uuid import uuid4

import httpx2 as httpx
import psutil
import pytest

from tests.api.processes import end, serving, start_serving
from tests.api.service import OWN, check_problem
from tests.cli import samples
from tests.cli.program import Program, check_refusal
from tests.cli.samples import NAME
from tests.patience import PATIENCE_SECONDS, wait_until
from venn_admit.api.server import END_SECONDS
from venn_admit.flows.keys.keys import MOST_DAYS
from venn_admit.store.database.engine import create_engine, transaction
from venn_admit_client.bodies import PARQUET

pytestmark = pytest.mark.processes

# What does not wait: the end waits twice as long for requests that are being answered.
AT_ONCE_SECONDS = END_SECONDS / 2
WAITING = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


def is_open(url: str) -> bool:
    """Whether new connections are accepted."""
    address = httpx.URL(url)
    with suppress(OSError), socket.create_connection((address.host, address.port or 0)):
        return True
    return False


def test_requests_are_completed_before_the_end(own_calibrated: Program) -> None:
    key = own_calibrated("key", "create", "test", "--scope", "score", "--json").result["secret"]
    points = [{"vector": vector.tolist()} for vector in samples.scored()["vector"]] * 5
    answers: list[httpx.Response] = []
    engine = create_engine(own_calibrated.url)
    with serving(own_calibrated) as (process, url), httpx.Client(base_url=url, timeout=PATIENCE_SECONDS) as client:

        def decide() -> None:
            headers = {"Authorization": f"Bearer {key}"}
            answers.append(client.post(f"{OWN}/decide", json={"points": points}, headers=headers))

        assert client.get("/health/ready").json()["status"] == "ready"
        asking = threading.Thread(target=decide)
        with transaction(engine) as connection:
            connection.exec_driver_sql("LOCK TABLE exemplar IN ACCESS EXCLUSIVE MODE")
            asking.start()
            wait_until(lambda: connection.exec_driver_sql(WAITING).scalar_one(), "the request is being answered")
            process.send_signal(signal.SIGTERM)
            wait_until(lambda: not is_open(url), "the service ends")
            assert not answers
        asking.join()
        process.wait(PATIENCE_SECONDS)
    engine.dispose()
    (answer,) = answers
    assert answer.status_code == 200
    assert len(answer.json()["decisions"]) == len(points) == 1000
    assert process.returncode == 128 + signal.SIGTERM


def test_copies_of_what_was_forgotten_meanwhile_go_at_the_start(own_calibrated: Program) -> None:
    cache = own_calibrated.home / "cache"
    outdated = cache / f"support-1-{uuid4()}"
    outdated.mkdir(parents=True)
    kept = sorted(path.name for path in cache.glob("*-*") if path != outdated)
    with serving(own_calibrated):
        assert sorted(path.name for path in cache.glob("*-*")) == kept


def test_it_ends_at_once_if_nobody_waits(own_calibrated: Program) -> None:
    with serving(own_calibrated) as (process, url):
        assert httpx.get(f"{url}/health/live", timeout=PATIENCE_SECONDS).json() == {"status": "live"}
        refused = httpx.get(f"{url}/v1/classifiers", timeout=PATIENCE_SECONDS)
        check_problem(refused, 401, "unauthenticated", "got none")
        assert end(process) < AT_ONCE_SECONDS


def test_streams_of_events_do_not_delay_the_end(own_calibrated: Program, tmp_path: Path) -> None:
    key = own_calibrated("key", "create", "test", "--scope", "score", "--json").result["secret"]
    content = samples.save(tmp_path, "batch.parquet", samples.scored()).read_bytes()
    headers = {"Authorization": f"Bearer {key}"}
    with serving(own_calibrated) as (process, url), httpx.Client(base_url=url, timeout=PATIENCE_SECONDS) as client:
        posted = client.post(f"{OWN}/jobs", content=content, headers={**headers, "Content-Type": PARQUET})
        assert posted.status_code == 202, posted.text
        with client.stream("GET", f"{posted.headers['location']}/events", headers=headers) as answer:
            lines = answer.iter_lines()
            assert "event: progress" in (next(lines) for _ in range(5)), "no worker computes it, so that it lasts"
            assert end(process) < AT_ONCE_SECONDS
            assert "event: end" not in list(lines)


def is_answered(client: httpx.Client, path: str) -> bool:
    return client.get(path).status_code == 200


@pytest.mark.parametrize("death", [signal.SIGKILL, signal.SIGQUIT])
def test_the_embedded_server_is_started_again_when_it_has_died(
    home: Path, tmp_path: Path, death: signal.Signals
) -> None:
    program = Program({"VENN_ADMIT_HOME": str(home), "VENN_ADMIT_DATABASE_URL": ""})
    log = tmp_path / "log"
    process, url = start_serving(program, log)
    try:
        key = (home / "api-key").read_text().strip()
        with httpx.Client(base_url=url, timeout=PATIENCE_SECONDS) as client:
            assert client.post("/sign-in", data={"key": key, "next": "/"}).status_code == 303
            client.headers["Authorization"] = f"Bearer {key}"
            for path in ("/v1/classifiers", "/"):
                assert is_answered(client, path)
                server = psutil.Process(int((home / "postgres" / "postmaster.pid").read_text().split()[0]))
                server.send_signal(death)
                server.wait(PATIENCE_SECONDS)
                began = time.monotonic()
                # Whatever is asked while the server dies may fail.
                wait_until(partial(is_answered, client, path), "it answers again")
                assert time.monotonic() - began < AT_ONCE_SECONDS
        assert log.read_text().count("it was started again") == 2
    finally:
        end(process)


def test_the_embedded_default_makes_a_key_that_only_its_owner_can_read(home: Path) -> None:
    program = Program({"VENN_ADMIT_HOME": str(home), "VENN_ADMIT_DATABASE_URL": ""})
    with serving(program) as (process, url):
        file = home / "api-key"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        key = file.read_text().strip()
        made = httpx.post(
            f"{url}/v1/classifiers",
            json={"classifier": NAME, "classes": ["a", "b"], "dimension": 2},
            headers={"Authorization": f"Bearer {key}"},
            timeout=PATIENCE_SECONDS,
        )
        assert made.status_code == 201, made.text
        assert url.startswith("http://127.0.0.1:")
        end(process)
    with serving(program) as (process, url):
        headers = {"Authorization": f"Bearer {key}"}
        again = httpx.get(f"{url}/v1/classifiers", headers=headers, timeout=PATIENCE_SECONDS)
        assert [one["classifier"] for one in again.json()["classifiers"]] == [NAME]
        end(process)
    listed = program.apart("key", "list", "--json").result["keys"]
    assert [(one["scope"], one["state"]) for one in listed] == [("admin", "valid")]
    assert program.apart("key", "revoke", listed[0]["key"]).code == 0
    check_refusal(program.apart("serve", "--port", 0), 4, "holds a key that is revoked; delete the file")


def test_it_listens_to_other_machines_only_with_a_key(program: Program) -> None:
    refused = program.apart("serve", "--host", "0.0.0.0", "--port", 0)
    check_refusal(refused, 4, "there is no valid key yet")
    assert "have a proxy with TLS before it" in refused.stderr
    taken = program.apart("serve", "--host", "203.0.113.1", "--port", 0)
    assert taken.code == 4
    assert program("key", "create", "test", "--scope", "read").code == 0
    check_refusal(program.apart("serve", "--host", "203.0.113.1", "--port", 0), 2, "expected a free address")


def test_the_life_of_a_key(own_ingested: Program) -> None:
    made = own_ingested(
        "key", "create", "nightly job", "--scope", "score", "--classifier", NAME, "--expires", "30d", "--json"
    ).result
    assert re.fullmatch(rf"va_{made['key']}_[0-9a-f]{{64}}", made["secret"])
    (listed,) = own_ingested("key", "list", "--json").result["keys"]
    assert (listed["name"], listed["scope"], listed["classifier"]) == ("nightly job", "score", NAME)
    assert (listed["state"], listed["last_used_at"]) == ("valid", None)
    assert listed["expires_at"] > listed["created_at"]
    engine = create_engine(own_ingested.url)
    with transaction(engine) as connection:
        stored = str(connection.exec_driver_sql("SELECT * FROM api_key").all())
    engine.dispose()
    assert made["secret"].split("_")[2] not in stored

    shown = own_ingested("key", "create", "second", "--scope", "read").stdout
    (line,) = (line for line in shown.splitlines() if line.startswith("va_2_"))
    assert "shown only now" in shown
    for text in (own_ingested("key", "list").stdout, own_ingested("key", "list", "--json").stdout):
        assert "nightly job" in text
        assert line not in text
    assert own_ingested("key", "revoke", 1).code == own_ingested("key", "revoke", 1).code == 0
    states = [one["state"] for one in own_ingested("key", "list", "--json").result["keys"]]
    assert states == ["valid", "revoked"]
    check_refusal(own_ingested("key", "revoke", 9), 3, "there is no key 9; `venn-admit key list` lists the keys")


@pytest.mark.parametrize(
    ("arguments", "code", "saying"),
    [
        (("x", "--scope", "all"), 2, "scope: expected read, score, write, admin, got 'all'"),
        (("", "--scope", "read"), 2, "name: expected 1 to 100 printable characters"),
        ((" ", "--scope", "read"), 2, "name: expected 1 to 100 printable characters"),
        (("a\x07", "--scope", "read"), 2, "name: expected"),
        (("x", "--scope", "read", "--classifier", "none"), 3, "no classifier is named 'none'"),
        (
            ("x", "--scope", "read", "--expires", 30),
            2,
            "expected a number of days from 1d to 99999d, such as 90d, got '30'",
        ),
        (("x", "--scope", "read", "--expires", "3651d"), 2, f"expires: expected 1 to {MOST_DAYS} days, got 3651"),
    ],
)
def test_keys_that_are_refused(ingested: Program, arguments: tuple[object, ...], code: int, saying: str) -> None:
    check_refusal(ingested("key", "create", *arguments), code, saying)
    assert ingested("key", "list", "--json").result == {"keys": []}
