"""A broker that cannot be reached, from the side of the one that asks for work."""

import gc
import socket
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from celery import Celery
from sqlalchemy import Engine

from tests.patience import wait_until
from tests.workers.samples import CHUNKS, request_score, value
from venn_admit import broker
from venn_admit.cli.opening import connect_unchecked
from venn_admit.cli.waiting import Waiting
from venn_admit.errors import BrokerError, JobError
from venn_admit.flows.jobs import control as flow
from venn_admit.flows.jobs.control import await_job
from venn_admit.runtime.settings import get_settings
from venn_admit.store.database.engine import connect
from venn_admit.store.work import jobs
from venn_admit_workers import app as workers_app


@pytest.fixture(autouse=True)
def sockets_of_failed_connections() -> Iterator[None]:
    """Libraries leave them to the garbage collector, which would tell of them in whichever test it runs next.

    So would a thread that still asks when nobody waits for its answer any longer.
    """
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        wait_until(lambda: "broker" not in {thread.name for thread in threading.enumerate()}, "no thread asks a broker")
        gc.collect()


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def _asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that refuses a connection, or never answers, is not asked again, which would be done for seconds."""

    def once(
        ask: Callable[..., object], _catch: object, args: tuple[object, ...] = (), *_: object, **__: object
    ) -> object:
        return ask(*args)

    monkeypatch.setattr("kombu.connection.retry_over_time", once)


def application(url: str) -> Celery:
    return broker.make_app(url, queue="unreachable", task_seconds=60)


@pytest.mark.usefixtures("_asked_once")
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("amqp://guest:secret@127.0.0.1:9//", r"amqp://guest:\*\*\*@127.0.0.1:9// cannot be reached"),
        ("redis://:secret@127.0.0.1:9/0", r"redis://:\*\*\*@127.0.0.1:9/0 cannot be reached: .*refused; check"),
        ("redis://127.0.0.1:9/0?password=secret", "redis://127.0.0.1:9/0 cannot be reached"),
        ("carrier-pigeon://bob:secret@127.0.0.1", "expected redis://.* or amqp://.*correct VENN_ADMIT_BROKER_URL"),
        ("amqp://guest:secret@127.0.0.1:port//", "expected redis://.* or amqp://.*correct VENN_ADMIT_BROKER_URL"),
        ("amqp://guest:secret@127.0.0.1:99999//", "expected redis://.* or amqp://.*correct VENN_ADMIT_BROKER_URL"),
        ("redis://127.0.0.1:port/0", "expected redis://.* or amqp://.*correct VENN_ADMIT_BROKER_URL"),
    ],
)
def test_an_address_where_no_broker_is(url: str, said: str) -> None:
    with pytest.raises(BrokerError, match=said) as caught:
        broker.prepare(application(url))
    assert caught.value.exit_code == JobError.exit_code == 6
    assert "secret" not in str(caught.value)


@pytest.mark.usefixtures("_asked_once")
def test_a_broker_whose_package_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "find_spec", lambda _: None)
    with pytest.raises(BrokerError, match=r"needs the package redis, .*: pip install 'venn-admit\[redis\]'\Z"):
        broker.prepare(application("redis://:secret@127.0.0.1:9/0"))


@pytest.mark.parametrize("broker_url", ["carrier-pigeon://bob:secret@127.0.0.1", "redis://:secret@127.0.0.1:port/0"])
def test_a_worker_does_not_start_with_an_address_of_no_broker(
    broker_url: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VENN_ADMIT_DATABASE_URL", url)
    monkeypatch.setenv("VENN_ADMIT_HOME", str(tmp_path))
    monkeypatch.setenv("VENN_ADMIT_BROKER_URL", broker_url)
    get_settings.cache_clear()
    with pytest.raises(BrokerError, match=r"expected redis://.* or amqp://.*correct VENN_ADMIT_BROKER_URL") as caught:
        workers_app.make_app(get_settings())
    assert "secret" not in str(caught.value)


@pytest.mark.usefixtures("_asked_once")
@pytest.mark.parametrize("scheme", ["redis", "rediss", "amqp", "amqps"])
def test_one_that_never_answers(scheme: str, silent_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "ANSWER_SECONDS", 0.2)
    with pytest.raises(BrokerError, match="cannot be reached"):
        broker.prepare(application(f"{scheme}://127.0.0.1:{silent_port}//"))


def test_a_wrong_password(rabbitmq_url: str) -> None:
    url = rabbitmq_url.replace("guest:guest@", "guest:wrong@")
    with pytest.raises(BrokerError, match=r"cannot be reached: .*ACCESS_REFUSED.*password") as caught:
        broker.prepare(application(url))
    assert "wrong" not in str(caught.value)


@pytest.mark.usefixtures("_asked_once")
def test_tls_where_none_is_spoken(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "ANSWER_SECONDS", 1.0)
    with pytest.raises(BrokerError, match="cannot be reached"):
        broker.prepare(application(redis_url.replace("redis://", "rediss://")))


@pytest.mark.usefixtures("_asked_once")
def test_a_job_that_was_never_sent_is_cancelled(
    url: str, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VENN_ADMIT_DATABASE_URL", url)
    monkeypatch.setenv("VENN_ADMIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("VENN_ADMIT_BROKER_URL", "redis://127.0.0.1:9/0")
    get_settings.cache_clear()
    session = connect_unchecked()
    job_id = request_score(engine, tmp_path)
    out = tmp_path / "the scores.parquet"
    with pytest.raises(BrokerError, match=rf"job {job_id} was cancelled because.*127\.0\.0\.1:9/0 cannot be reached"):
        Waiting(session, out).run_job(job_id, "Scoring")
    session.engine.dispose()
    with connect(engine) as connection:
        job = jobs.by_id(connection, job_id)
    assert job.state == "cancelled"
    assert "redis://127.0.0.1:9/0 cannot be reached" in (job.error or "")
    told = " ".join(capsys.readouterr().err.split())
    assert f"venn-admit jobs resume {job_id} --out '{out}'" in told


def test_a_request_is_sent_once_it_is_recorded(engine: Engine, sender: Celery, tmp_path: Path) -> None:
    sent: list[tuple[int, int]] = []

    def send(job_id: int) -> None:
        sent.append((job_id, flow.relay(engine, sender, job_id)))

    job_id = request_score(engine, tmp_path, send=send)
    assert sent == [(job_id, CHUNKS)]


def test_a_broker_that_goes_away_is_waited_for(
    engine: Engine, sender: Celery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "CARE_SECONDS", 0.0)
    job_id = request_score(engine, tmp_path)
    awaited: list[str | None] = []

    def check_workers() -> None:
        if len(awaited) in (1, 2):
            raise BrokerError("the broker is away")

    def on_wait(reason: str | None) -> None:
        awaited.append(reason)
        if len(awaited) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await_job(engine, sender, job_id, check_workers=check_workers, on_progress=lambda _: None, on_wait=on_wait)
    assert awaited == [None, *["waiting for the broker: the broker is away"] * 2, None]

    monkeypatch.setattr(flow, "BROKER_PATIENCE_SECONDS", -1.0)
    awaited = [None]
    with pytest.raises(BrokerError, match="the broker is away"):
        await_job(engine, sender, job_id, check_workers=check_workers, on_progress=lambda _: None)


def test_what_could_not_be_sent_counts_as_unsent(engine: Engine, sender: Celery, tmp_path: Path) -> None:
    job_id = request_score(engine, tmp_path)
    with pytest.raises(BrokerError):
        flow.relay(engine, application("redis://127.0.0.1:9/0"), job_id)
    assert value(engine, "SELECT count(sent_at) FROM job_chunk WHERE job_id = :job_id", job_id=job_id) == 0
    assert flow.relay(engine, sender, job_id) == CHUNKS
