"""Several processes of the HTTP service behind one address: any answers, and they are replaced without a pause."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx2 as httpx
import pytest

from tests.api.processes import end, serving
from tests.cli.program import Program
from tests.patience import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.processes

PAUSE_SECONDS = 0.01
CLASSIFIER = {"classifier": "shared", "classes": ["a", "b"], "dimension": 2}


@pytest.fixture
def key(program: Program) -> dict[str, str]:
    secret = program("key", "create", "test", "--scope", "admin", "--json").result["secret"]
    return {"Authorization": f"Bearer {secret}"}


class Address:
    """One address for several processes. It asks them in turn, and the next if one does not answer."""

    def __init__(self, key: dict[str, str], *urls: str) -> None:
        self.urls = list(urls)
        self.statuses: list[int] = []
        self._key = key
        self._turn = itertools.count()

    def get(self, path: str) -> httpx.Response:
        urls = self.urls  # as they are now, since another thread may add some
        first = next(self._turn) % len(urls)
        for url in urls[first:] + urls[:first]:
            try:
                answer = httpx.get(f"{url}{path}", headers=self._key, timeout=PATIENCE_SECONDS)
            except httpx.TransportError:  # upon which the proxy asks the next one too, since asking changes nothing
                continue
            self.statuses.append(answer.status_code)
            return answer
        raise AssertionError(f"none of {urls} answers")

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Ask again and again, and see in the end that every request was answered."""
        done = threading.Event()
        failures: list[BaseException] = []

        def ask() -> None:
            try:
                while not done.wait(PAUSE_SECONDS):
                    self.get("/v1/classifiers")
            except (AssertionError, httpx.HTTPError) as error:
                failures.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            yield
        finally:
            done.set()
            asking.join()
        assert failures == []


def test_any_process_answers_and_each_is_replaced_without_a_pause(program: Program, key: dict[str, str]) -> None:
    with ExitStack() as processes:
        (old, one), (older, two) = (processes.enter_context(serving(program)) for _ in range(2))
        made = httpx.post(f"{one}/v1/classifiers", json=CLASSIFIER, headers=key, timeout=PATIENCE_SECONDS)
        assert made.status_code == 201, made.text
        address = Address(key, one, two)
        for _ in range(2):
            (listed,) = address.get("/v1/classifiers").json()["classifiers"]
            assert listed["classifier"] == "shared"
        with address.in_use():
            for process in (old, older):
                _, new = processes.enter_context(serving(program))
                address.urls = [*address.urls, new]
                end(process)
            wait_until(lambda: len(address.statuses) > 4, "it is in use")
        address.get("/v1/classifiers")
        assert set(address.statuses) == {200}
