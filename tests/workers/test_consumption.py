"""Whether a worker takes messages, told by what happens around it."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from celery.worker import state

from venn_admit import broker
from venn_admit.errors import BrokerError, DatabaseError
from venn_admit_workers import consumption
from venn_admit_workers.consumption import Consumption

WAITING = 7


class Surroundings:
    """A clock, a broker and a consumer's event loop, all in the test's hands."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.waiting: Callable[[], int] = lambda: WAITING
        self.turns = True
        self.reconnections = 0
        monkeypatch.setattr(consumption, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(broker, "waiting", lambda _: self.waiting())
        monkeypatch.setattr(state, "reserved_requests", set())
        self.consumption = Consumption(Celery())
        pool = SimpleNamespace(num_processes=1)
        self.consumption.begin(SimpleNamespace(hub=self, pool=pool, task_consumer=SimpleNamespace(channel="in use")))

    def call_soon(self, callback: Callable[[], Any]) -> None:
        """As the event loop does, if it turns."""
        if self.turns:
            try:
                callback()
            except ConnectionResetError:
                self.reconnections += 1

    def problems(self, seconds: int) -> list[str | None]:
        """What is said every two seconds from now on."""
        said = []
        for _ in range(seconds // 2):
            self.now += 2
            said.append(self.consumption.problem())
        return said


@pytest.fixture
def surroundings(monkeypatch: pytest.MonkeyPatch) -> Surroundings:
    return Surroundings(monkeypatch)


def test_one_that_takes_nothing_while_messages_wait_reconnects_and_then_ends(surroundings: Surroundings) -> None:
    assert surroundings.problems(10) == [None] * 5
    assert surroundings.problems(4) == [f"{WAITING} messages wait, and none is received"] * 2
    assert surroundings.reconnections == 1
    surroundings.consumption.count_message()
    assert surroundings.problems(4) == [None, None], "that helped"
    assert None not in surroundings.problems(62)[5:]
    assert surroundings.reconnections == 2
    assert surroundings.consumption.is_hopeless


@pytest.mark.parametrize("reason", ["nothing waits", "it is busy"])
def test_one_that_need_not_take_anything(surroundings: Surroundings, reason: str) -> None:
    if reason == "it is busy":
        state.reserved_requests.add("a request")
    else:
        surroundings.waiting = lambda: 0
    assert set(surroundings.problems(100)) == {None}
    assert not surroundings.consumption.is_hopeless


def test_one_whose_event_loop_stands_still(surroundings: Surroundings) -> None:
    surroundings.waiting = lambda: 0
    surroundings.turns = False
    assert surroundings.problems(10) == [None] * 5
    assert set(surroundings.problems(62)) == {"the event loop stands still, or has no connection to the broker"}
    assert surroundings.consumption.is_hopeless
    surroundings.turns = True
    assert surroundings.problems(2) == [None]
    assert not surroundings.consumption.is_hopeless


@pytest.mark.parametrize("kind", [BrokerError, DatabaseError])
def test_one_whose_broker_is_away_waits_for_it(surroundings: Surroundings, kind: type[Exception]) -> None:
    def fail() -> int:
        raise kind("it is away")

    surroundings.waiting = fail
    assert set(surroundings.problems(1000)) == {"it is away"}
    assert not surroundings.consumption.is_hopeless


def test_acknowledgements_matter_on_the_connection_in_use(surroundings: Surroundings) -> None:
    assert surroundings.consumption.receives_from("in use")
    assert not surroundings.consumption.receives_from("given up")
