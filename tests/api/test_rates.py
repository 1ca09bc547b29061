"""How many requests a key may send, and how many a process answers at once."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.types import Message, Receive, Send
from starlette.types import Scope as ASGIScope

from tests.api.service import OWN, Service, check_problem
from tests.patience import PATIENCE_SECONDS
from venn_admit.api.application import create_application
from venn_admit.api.routes import classifiers
from venn_admit.flows.data.catalogue import show
from venn_admit.http.guards import rates
from venn_admit.http.guards.rates import Bucket
from venn_admit.store.access.keys import Scope


def limited(service: Service, **settings: Any) -> TestClient:
    """The application under other settings."""
    runtime = replace(service.runtime, settings=replace(service.runtime.settings, **settings))
    return TestClient(create_application(runtime), raise_server_exceptions=False)


def ask(service: Service, client: TestClient, key: Scope = Scope.READ) -> Any:
    return client.get(OWN, headers={"Authorization": f"Bearer {service.keys[key]}"})


def test_a_bucket_fills_at_its_rate_up_to_its_burst() -> None:
    now = [0.0]
    bucket = Bucket(30, 3, clock=lambda: now[0])
    assert [bucket.take() for _ in range(4)] == [0, 0, 0, 2]
    now[0] = 1.0
    assert bucket.take() == pytest.approx(1)
    now[0] = 2.0
    assert bucket.take() == 0
    assert bucket.left == 0
    assert bucket.seconds_to_full == pytest.approx(6)
    now[0] = 1000.0
    assert [bucket.take() for _ in range(4)] == [0, 0, 0, 2]


@pytest.fixture
def time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """No bucket fills, however long a request takes."""
    defaults = Bucket.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "clock", lambda: 0.0)


@pytest.mark.usefixtures("time_stands_still")
def test_too_many_requests_of_one_key_are_refused(shared: Service) -> None:
    client = limited(shared, requests_per_minute=1, requests_burst=3)
    for left in (2, 1, 0):
        answer = ask(shared, client)
        assert answer.status_code == 200
        assert answer.headers["ratelimit-policy"] == '"requests";q=3;w=180'
        assert answer.headers["ratelimit"] == f'"requests";r={left};t={(3 - left) * 60}'
    refused = ask(shared, client)
    check_problem(refused, 429, "too-many-requests", "at most 1 requests a minute from one key, and 3 at once")
    assert 0 < int(refused.headers["retry-after"]) <= 60
    assert refused.headers["ratelimit"].startswith('"requests";r=0;t=')
    assert ask(shared, client, Scope.ADMIN).status_code == 200, "each key has requests of its own"
    assert client.get("/health/live").status_code == 200


@pytest.mark.usefixtures("time_stands_still")
def test_requests_to_decide_have_a_rate_of_their_own(shared: Service) -> None:
    client = limited(shared, requests_per_minute=1, decisions_per_minute=60, requests_burst=2)
    key = {"Authorization": f"Bearer {shared.keys[Scope.SCORE]}"}

    def decide() -> Any:
        return client.post(f"{OWN}/decide", json={"points": [{"vector": [0.5] * 8}]}, headers=key)

    for left in (1, 0):
        assert ask(shared, client, Scope.SCORE).headers["ratelimit"] == f'"requests";r={left};t={(2 - left) * 60}'
        answer = decide()
        assert answer.headers["ratelimit-policy"] == '"decisions";q=2;w=2'
        assert answer.headers["ratelimit"] == f'"decisions";r={left};t={2 - left}'
    check_problem(decide(), 429, "too-many-requests", "at most 60 decisions a minute from one key")
    check_problem(ask(shared, client, Scope.SCORE), 429, "too-many-requests", "at most 1 requests a minute")


@pytest.mark.usefixtures("time_stands_still")
def test_errors_say_how_many_requests_are_left(shared: Service) -> None:
    client = limited(shared, requests_per_minute=1, requests_burst=3)
    key = {"Authorization": f"Bearer {shared.keys[Scope.READ]}"}
    answer = client.get("/v1/classifiers/nobody", headers=key)
    check_problem(answer, 404, "unknown-classifier")
    assert answer.headers["ratelimit"] == '"requests";r=2;t=60'
    assert "ratelimit" not in client.get(OWN).headers, "there is no key that it could be about"


def test_there_need_be_no_limit(shared: Service) -> None:
    client = limited(
        shared, requests_per_minute=0, requests_burst=1, concurrent_requests=0, concurrent_requests_per_key=0
    )
    for _ in range(3):
        answer = ask(shared, client)
        assert answer.status_code == 200
        assert "ratelimit" not in answer.headers


def test_callers_are_forgotten_in_time(shared: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "MOST_CALLERS", 1)
    client = limited(shared, requests_per_minute=1, requests_burst=1)
    assert ask(shared, client).status_code == 200
    assert ask(shared, client).status_code == 429
    assert ask(shared, client, Scope.ADMIN).status_code == 200
    assert ask(shared, client).status_code == 200


class Held:
    """Requests to show a classifier, which last until they are let go."""

    def __init__(self) -> None:
        self._began, self._go_on = threading.Semaphore(0), threading.Event()

    def show(self, *args: Any) -> Any:
        self._began.release()
        assert self._go_on.wait(PATIENCE_SECONDS)
        return show(*args)

    def await_requests(self, count: int) -> None:
        for number in range(count):
            assert self._began.acquire(timeout=PATIENCE_SECONDS), f"{number} of {count} are being answered"

    def let_go(self) -> None:
        self._go_on.set()


@contextmanager
def holding() -> Iterator[Held]:
    held = Held()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifiers, "show", held.show)
        try:
            yield held
        finally:
            held.let_go()


def test_a_busy_process_refuses_more_but_tells_its_health(shared: Service) -> None:
    with limited(shared, concurrent_requests=1) as client, ThreadPoolExecutor(1) as threads, holding() as held:
        first = threads.submit(ask, shared, client)
        held.await_requests(1)
        refused = ask(shared, client)
        check_problem(refused, 503, "too-busy", "answering 1 requests")
        assert refused.headers["retry-after"] == "1"
        for health in ("live", "ready"):
            assert client.get(f"/health/{health}").status_code == 200, "the only thread is taken"
        held.let_go()
        assert first.result().status_code == 200
        assert ask(shared, client).status_code == 200


def test_a_key_has_so_many_requests_at_a_time(shared: Service) -> None:
    with limited(shared, concurrent_requests_per_key=2) as client, ThreadPoolExecutor(2) as threads, holding() as held:
        first = [threads.submit(ask, shared, client) for _ in range(2)]
        held.await_requests(2)
        refused = ask(shared, client)
        check_problem(refused, 429, "too-many", "at most 2 requests with a key at a time")
        assert refused.headers["retry-after"] == "1"
        assert "ratelimit" in refused.headers
        other = {"Authorization": f"Bearer {shared.keys[Scope.ADMIN]}"}
        assert client.get("/v1/classifiers", headers=other).status_code == 200
        held.let_go()
        assert [one.result().status_code for one in first] == [200, 200]
        assert ask(shared, client).status_code == 200


def test_others_are_answered_however_many_requests_last(shared: Service) -> None:
    keys = list(Scope) * 15
    with limited(shared) as client, ThreadPoolExecutor(len(keys)) as threads, holding() as held:
        asked = [threads.submit(ask, shared, client, key) for key in keys]
        held.await_requests(len(keys))
        key = {"Authorization": f"Bearer {shared.keys[Scope.READ]}"}
        for path in ("/health/live", "/health/ready", "/v1/classifiers"):
            assert client.get(path, headers=key).status_code == 200
        assert not any(one.done() for one in asked)
        held.let_go()
        assert {one.result().status_code for one in asked} == {200}


def test_a_stream_of_events_does_not_make_a_process_busy() -> None:
    async def opened() -> list[int]:
        ended, statuses = asyncio.Event(), list[int]()

        async def app(scope: ASGIScope, _receive: Receive, send: Send) -> None:
            kind = b"text/event-stream" if scope["path"] == "/events" else b"application/json"
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
            if scope["path"] == "/events":
                await ended.wait()
            await send({"type": "http.response.body", "body": b""})

        async def receive() -> Message:
            return {"type": "http.request"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        guarded = rates.Concurrency(app, most=1, most_per_key=0)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(2):
                tasks.create_task(guarded({"type": "http", "path": "/events"}, receive, send))
            await asyncio.sleep(0)
            await guarded({"type": "http", "path": "/v1/classifiers"}, receive, send)
            ended.set()
        return statuses

    assert asyncio.run(opened()) == [200, 200, 200]


def test_a_body_that_is_awaited_does_not_make_a_process_busy() -> None:
    async def opened() -> list[int]:
        come, statuses = asyncio.Event(), list[int]()

        async def app(_scope: ASGIScope, receive: Receive, send: Send) -> None:
            await receive()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        async def slow() -> Message:
            await come.wait()
            return {"type": "http.request"}

        async def at_once() -> Message:
            return {"type": "http.request"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        guarded = rates.Concurrency(app, most=1, most_per_key=0)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(2):
                tasks.create_task(guarded({"type": "http", "path": "/v1/classifiers"}, slow, send))
            await asyncio.sleep(0.01)
            await guarded({"type": "http", "path": "/v1/classifiers"}, at_once, send)
            assert statuses == [200]
            come.set()
        return statuses

    assert asyncio.run(opened()) == [200, 200, 200]
