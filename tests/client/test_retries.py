"""Requests are sent again while they may succeed, and have their effect once."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.api.processes import serving
from tests.cli import samples
from tests.cli.program import Program
from tests.cli.samples import CLASS_NAMES, NAME, SCORED_ROWS
from tests.client.conftest import admin_key
from tests.client.proxy import Drop, Own, Proxy
from tests.faults.server import free_port
from tests.patience import PATIENCE_SECONDS
from venn_admit_client import Classifier, Retries, UnavailableError, VennAdmitError, connect

pytestmark = pytest.mark.processes

Served = tuple[Program, str, str]
QUICK = Retries(total_seconds=60, first_wait=0.01, longest_wait=0.1)


def behind(proxy: Proxy, key: str, retries: Retries = QUICK) -> Classifier:
    return connect(proxy.url, key, retries=retries).classifier(NAME)


def test_a_lost_answer_does_not_store_twice(served: Served, proxy: Proxy) -> None:
    classifier = behind(proxy, served[2])
    scored = samples.scored()
    proxy.seen.clear()
    proxy.faults = [Drop(), Drop()]
    stored = classifier.ingest(
        vectors=scored["vector"],
        logits=scored["logits"],
        labels=scored["label"],
        ids=[f"again-{row}" for row in range(SCORED_ROWS)],
        split="mc",
    )
    assert stored.rows == SCORED_ROWS
    assert [seen.status for seen in proxy.seen] == [200] * 3
    assert len({seen.idempotency_key for seen in proxy.seen}) == 1
    shown = served[0]("show", NAME, "--json").result["data"]["mc"]["exemplars"]
    assert classifier.label({"again-0": int(scored["label"][0])}).unchanged == 1
    assert served[0]("show", NAME, "--json").result["data"]["mc"]["exemplars"] == shown
    assert len({seen.idempotency_key for seen in proxy.seen}) == 2
    assert None not in {seen.idempotency_key for seen in proxy.seen}


def test_a_classifier_whose_creation_was_not_answered_is_created_once(served: Served, proxy: Proxy) -> None:
    proxy.faults = [Drop()]
    with connect(proxy.url, served[2], retries=QUICK) as connection:
        assert connection.create("once", ["a", "b"], dimension=2).dimension == 2
    assert [seen.status for seen in proxy.seen] == [201, 201]


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_an_answer_that_asks_to_come_later_is_obeyed(served: Served, proxy: Proxy, status: int) -> None:
    classifier = behind(proxy, served[2])
    proxy.faults = [Own(status, {"Retry-After": "1"}), Own(status)]
    began = time.monotonic()
    assert len(list(classifier.calibrations())) == 1
    assert 1 <= time.monotonic() - began < QUICK.total_seconds
    assert not proxy.faults


@pytest.mark.parametrize("status", [403, 404, 409, 422, 500])
def test_what_trying_again_cannot_change_is_raised_at_once(served: Served, proxy: Proxy, status: int) -> None:
    classifier = behind(proxy, served[2])
    proxy.faults = [Own(status)]
    with pytest.raises(VennAdmitError, match=f"got status {status} from 127.0.0.1") as refused:
        classifier.report()
    assert refused.value.status == status
    assert [seen.status for seen in proxy.seen] == [200, None]


@pytest.mark.parametrize("body", [b"[" * 100_000, "{}".encode("utf-16"), b"[]", b""], ids=lambda body: ascii(body[:5]))
def test_what_is_no_answer_of_the_service_is_told(served: Served, proxy: Proxy, body: bytes) -> None:
    classifier = behind(proxy, served[2])
    proxy.faults = [Own(200, body=body), Own(500, body=body)]
    for said in ("expected JSON of the venn-admit service, got something else", "got status 500"):
        with pytest.raises(VennAdmitError, match=said):
            classifier.report()


def test_a_request_is_awaited_as_long_as_the_service_says_that_it_runs(served: Served, proxy: Proxy) -> None:
    """A calibration may take far longer than a service may be away."""
    classifier = behind(proxy, served[2], Retries(total_seconds=1, first_wait=0.2, longest_wait=0.2))
    proxy.faults = [Own(409, body=b'{"code": "still-running", "detail": "wait"}') for _ in range(12)]
    began = time.monotonic()
    assert classifier.label({"held-out-1": 1}).rows == 1
    assert time.monotonic() - began > 1
    assert proxy.faults == []


def test_a_request_that_is_still_running_is_awaited(served: Served, proxy: Proxy) -> None:
    classifier = behind(proxy, served[2])
    proxy.faults = [Own(409, body=b'{"code": "still-running", "detail": "wait"}')]
    assert classifier.decide(samples.scored()["vector"][0]).calibration == 1


@pytest.mark.parametrize("answer", [Own(503), Own(429, {"Retry-After": "3600"}), Own(503, {"Retry-After": "tomorrow"})])
def test_it_gives_up_when_the_time_is_over(served: Served, proxy: Proxy, answer: Own) -> None:
    classifier = behind(proxy, served[2], Retries(total_seconds=0.5, first_wait=0.05, longest_wait=0.1))
    proxy.faults = [answer] * 100
    began = time.monotonic()
    with pytest.raises(UnavailableError) as refused:
        classifier.report()
    assert time.monotonic() - began < 60
    assert refused.value.status == answer.status


def test_an_answer_of_something_else_is_no_answer(served: Served, proxy: Proxy) -> None:
    classifier = behind(proxy, served[2])
    proxy.faults = [Own(200)]
    with pytest.raises(VennAdmitError, match="expected JSON of the venn-admit service"):
        classifier.report()


def test_nobody_is_there() -> None:
    with pytest.raises(UnavailableError, match=r"at http://127.0.0.1:9 did not answer in \d+ attempts") as refused:
        connect("http://127.0.0.1:9", "key", retries=Retries(0.2, 0.01, 0.05)).classifiers()
    assert refused.value.status is None
    assert refused.value.__cause__ is not None


def test_threads_beyond_those_that_a_key_may_use_at_once_are_answered_later(own_calibrated: Program) -> None:
    narrow = Program(own_calibrated.environment | {"VENN_ADMIT_CONCURRENT_REQUESTS_PER_KEY": "1"})
    vectors = samples.scored()["vector"]
    with (
        serving(narrow) as (_, url),
        connect(url, admin_key(narrow), retries=Retries(PATIENCE_SECONDS)) as connection,
        ThreadPoolExecutor(4) as threads,
    ):
        decided = list(threads.map(connection.classifier(NAME).decide_many, [vectors] * 8))
    assert [len(one) for one in decided] == [len(vectors)] * 8


def test_a_service_that_is_killed_and_started_again_in_the_middle(own_calibrated: Program) -> None:
    """The first of three blocks is stored before; the others wait for the service to be back."""
    columns, steps = samples.exemplars("late", 3000, seed=9), []
    with ExitStack() as services:
        port = free_port()
        killed, url = services.enter_context(serving(own_calibrated, port=port))
        restart = threading.Thread(target=lambda: services.enter_context(serving(own_calibrated, port=port)))

        def progress(done: int, _: int) -> None:
            steps.append(done)
            if done == 1000:
                killed.kill()
                killed.wait()
                restart.start()

        with connect(url, admin_key(own_calibrated), retries=Retries(PATIENCE_SECONDS)) as connection:
            stored = connection.classifier(NAME).ingest(
                vectors=columns["vector"],
                logits=columns["logits"],
                labels=[CLASS_NAMES[label] for label in columns["label"]],
                progress=progress,
            )
        restart.join()
    assert steps == [1000, 2000, 3000]
    assert (stored.rows, stored.new) == (3000, 3000)
