"""Several processes of the HTTP service behind one address: any answers, and they are replaced without a pause."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx2 as httpx
import pytest

from tests.api.processes import end, serving
from tests.cli.program import PATIENCE_SECONDS, Program

# A process logs each request to a pipe that is read only in the end, and must not fill it.
PAUSE_SECONDS = 0.1
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
        for _ in range(len(self.urls)):
            urls = self.urls  # which may change at any time
            url = urls[next(self._turn) % len(urls)]
            try:
                answer = httpx.get(f"{url}{path}", headers=self._key, timeout=PATIENCE_SECONDS)
            except httpx.TransportError:  # upon which the proxy asks the next one too, since asking changes nothing
                continue
            self.statuses.append(answer.status_code)
            return answer
        raise AssertionError(f"none of {self.urls} answers")

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
        yield
        done.set()
        asking.join()
        assert failures == []


def test_any_process_answers_and_each_is_replaced_without_a_pause(program: Program, key: dict[str, str]) -> None:
    with ExitStack() as processes:
        (old, one), (older, two) = (processes.enter_context(serving(program)) for _ in range(2))
        made = httpx.post(f"{one}/v1/classifiers", json=CLASSIFIER, headers=key)
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
        before = len(address.statuses)
        assert before > 4
        address.get("/v1/classifiers")
        assert set(address.statuses) == {200}
