"""Requests to decide by what the process keeps: together, by one statement, and by keys that are valid until then."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from httpx2 import Response
from sqlalchemy import event

from tests.api.service import OWN, Service, check_problem
from tests.api.test_decide import points
from tests.cli.samples import NAME, K
from tests.patience import PATIENCE_SECONDS, wait_until
from venn_admit.api.together import Together
from venn_admit.flows.decisions import point_search
from venn_admit.flows.decisions.score_one import AskedPoints, GivenPoint, PointDecision, PointScorer
from venn_admit.flows.keys.keys import Caller, create, list_events, revoke
from venn_admit.http.guards.recent_keys import SECONDS, RecentKeys
from venn_admit.store.access.keys import Scope

AT_ONCE = 6


@pytest.fixture
def kept(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    """A service that has read what it decides by."""
    monkeypatch.setattr(point_search, "POINTS_BY_SCAN", 2)
    service.post(f"{OWN}/decide", {"points": points([0, 1])})
    for thread in threading.enumerate():
        if thread.name == "copy of training exemplars":
            thread.join(PATIENCE_SECONDS)
    service.post(f"{OWN}/decide", {"points": points([0]), "weighted": True})
    return service


def statements(service: Service) -> list[str]:
    """The statements that are sent from now on."""
    said = list[str]()
    event.listen(
        service.runtime.engine, "before_cursor_execute", lambda _connection, _cursor, text, *_others: said.append(text)
    )
    return said


def named(answer: Response) -> list[str]:
    """The neighbours of a single point."""
    (decided,) = answer.json()["decisions"]
    return [one["external_id"] for one in decided["neighbours"]]


def test_a_request_costs_one_statement(kept: Service) -> None:
    """It sees that key and calibration are valid, and reads what the neighbours are called only once."""
    asked = {"points": points([0]), "weighted": False}
    first = kept.post(f"{OWN}/decide", asked).json()
    said = statements(kept)
    assert kept.post(f"{OWN}/decide", asked).json() == first
    assert len(first["decisions"][0]["neighbours"]) == K
    assert ["valid_keys" in text for text in said[-1:]] == [True]
    assert len(said) <= 2, "the key is looked up by itself once a second"


def test_no_request_waits_while_no_thread_can_be_started(shared: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor those that come later."""

    class NoThread:
        def __init__(self) -> None:
            raise RuntimeError("can't start new thread")

    async def ask(line: Together) -> None:
        await asyncio.wait_for(line.decide(NAME, AskedPoints([])), timeout=5)

    async def ask_twice() -> None:
        line = Together(shared.runtime)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="can't start new thread"):
                await ask(line)

    monkeypatch.setattr("venn_admit.api.together._Thread", NoThread)
    asyncio.run(ask_twice())


def test_requests_at_the_same_time_are_decided_together_and_as_if_alone(
    kept: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those with other wishes, and those that are refused, among them."""
    rows = list(range(AT_ONCE))
    asked: list[dict[str, Any]] = [
        {"points": points([row, row + 9][: 1 + row % 2]), "weighted": False, "neighbours": row} for row in rows
    ]
    asked[3]["points"][0]["vector"] = [0.5]
    alone = [kept.post(f"{OWN}/decide", one) for one in asked]
    assert [answer.status_code for answer in alone] == [200, 200, 200, 422, 200, 200]
    together, all_wait = list[int](), threading.Event()
    score = PointScorer.score_kept

    def held(scorer: PointScorer, name: str, requests: list[AskedPoints]) -> list[list[PointDecision] | None]:
        together.append(len(requests))
        assert all_wait.wait(PATIENCE_SECONDS)
        return score(scorer, name, requests)

    monkeypatch.setattr(PointScorer, "score_kept", held)
    with TestClient(kept.client.app) as client, ThreadPoolExecutor(AT_ONCE) as threads:
        service = Service(client, kept.runtime, kept.keys)
        futures = [threads.submit(service.post, f"{OWN}/decide", asked[0])]
        wait_until(lambda: bool(together), "the first is decided on")
        futures += [threads.submit(service.post, f"{OWN}/decide", one) for one in asked[1:]]
        lines = kept.client.app.state.together._lines  # type: ignore[attr-defined]
        wait_until(lambda: sum(map(len, lines.values())) == AT_ONCE - 1, "all others wait")
        all_wait.set()
        found = [future.result(PATIENCE_SECONDS) for future in futures]
    # What follows is each by itself, since one is refused.
    assert together[:2] == [1, AT_ONCE - 1], "those that came later were decided together"
    for one, other in zip(found, alone, strict=True):
        assert (one.status_code, one.json()) == (other.status_code, other.json())


def test_a_key_that_is_revoked_is_refused_at_once(kept: Service) -> None:
    """Also one that was looked up a moment ago, whatever is kept; and the ledger has it."""
    engine, asked = kept.runtime.engine, {"points": points([0])}
    for clear in (False, True):
        made = create(engine, "made", scope=Scope.SCORE)
        headers = {"Authorization": f"Bearer {made.text}"}
        for _ in range(2):
            assert kept.client.post(f"{OWN}/decide", json=asked, headers=headers).status_code == 200
        if clear:
            kept.runtime.point_scorer._last.clear()
        revoke(engine, made.id)
        before = len(list_events(engine, limit=100))
        answer = kept.client.post(f"{OWN}/decide", json=asked, headers=headers)
        check_problem(answer, 401, "unauthenticated", "the key was revoked")
        noted = list_events(engine, limit=100)
        assert len(noted) == before + 1
        assert (noted[0].action, noted[0].status) == ("authenticate", 401)


def test_a_key_for_another_classifier_is_refused_each_time(kept: Service) -> None:
    made = kept.post("/v1/classifiers", {"classifier": "other", "classes": ["a", "b"], "dimension": 2, "k": 1})
    assert made.status_code == 201, made.text
    text = create(kept.runtime.engine, "other", scope=Scope.SCORE, classifier="other").text
    for _ in range(2):
        answer = kept.client.post(
            f"{OWN}/decide", json={"points": points([0])}, headers={"Authorization": f"Bearer {text}"}
        )
        check_problem(answer, 403, "forbidden", "for classifier 'other' alone")


def test_a_training_exemplar_that_is_forgotten_is_named_no_more(kept: Service) -> None:
    asked = {"points": points([0]), "weighted": False}
    nearest = named(kept.post(f"{OWN}/decide", asked))[0]
    removed = kept.post(f"/v1/classifiers/{NAME}/exemplars/forget", {"ids": [nearest]})
    assert removed.status_code < 300, removed.text
    assert nearest not in named(kept.post(f"{OWN}/decide", asked))


class Shown:
    """A request with an authorization."""

    def __init__(self, text: str) -> None:
        self.headers = {"authorization": text}


def test_a_key_is_remembered_for_a_second() -> None:
    clock = [1000.0]
    keys, caller = RecentKeys(clock=lambda: clock[0]), Caller(1, "one", Scope.SCORE, None)
    mine: Any = Shown("Bearer va_1_a")
    other: Any = Shown("Bearer va_1_b")
    keys.add(mine, caller)
    clock[0] += SECONDS
    assert (keys.get(mine), keys.get(other)) == (caller, None)
    clock[0] += 0.1
    assert keys.get(mine) is None


def test_what_is_kept_of_neighbours_has_a_limit(kept: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it, they are asked for."""
    monkeypatch.setattr("venn_admit.flows.decisions.score_one._DESCRIBED_BYTES", 0)
    scorer = PointScorer(kept.runtime)
    vector = np.array(points([0])[0]["vector"], np.float32)
    found = [scorer.score_each(NAME, [GivenPoint(vector, None)], weighted=False)[0].near for _ in range(3)]
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == K
