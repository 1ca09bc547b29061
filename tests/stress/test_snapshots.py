"""While calibrations are published, every decision is that of exactly one of them."""

import functools
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.patience import wait_until
from tests.stress.furnished import NAME, reviews
from tests.stress.served import Served
from venn_admit.runtime.settings import Settings
from venn_admit.runtime.workspace import Runtime

pytestmark = pytest.mark.processes

OWN = f"/v1/classifiers/{NAME}"
CLIENTS, PUBLISHED = 4, 6
LABELLED = 40
POINTS = [
    {"external_id": str(external_id), "vector": vector.tolist(), "logits": logits.tolist()}
    for external_id, vector, logits in zip(
        *(reviews("asked", 8, seed=9)[column] for column in ("external_id", "vector", "logits")), strict=True
    )
]


class Clients:
    """Clients that ask for the same decisions again and again, until they are told to end."""

    def __init__(self, served: Served) -> None:
        self.answers: list[dict[str, Any]] = []
        self.failures: list[str] = []
        self._served = served
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(CLIENTS)]

    def __enter__(self) -> "Clients":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def saw(self, calibration: int) -> bool:
        """Whether one was answered by this calibration, or otherwise than it should be."""
        return bool(self.failures) or any(answer["calibration"] == calibration for answer in self.answers)

    def _ask(self) -> None:
        with self._served.client() as client:
            while not self._ended.is_set():
                answer = client.post(f"{OWN}/decide", json={"points": POINTS})
                if answer.status_code == 200:
                    self.answers.append(answer.json())
                else:
                    self.failures.append(answer.text)


@pytest.fixture
def runtime(served: Served) -> Iterator[Runtime]:
    runtime = Runtime.start(Settings(database_url=served.program.url, home=served.program.home))
    yield runtime
    runtime.engine.dispose()


@pytest.mark.slow
def test_every_answer_is_that_of_exactly_one_snapshot(served: Served) -> None:
    """The method changes too: calibrations by either one, and of other labels, follow each other."""
    generator = np.random.default_rng(11)
    expected: dict[int, dict[str, Any]] = {}
    with served.client() as client, Clients(served) as clients:
        start = time.monotonic()
        for turn in range(PUBLISHED):
            time.sleep(max(0.0, start + turn - time.monotonic()))  # one a second
            rows = generator.choice(np.arange(1, 801), LABELLED, replace=False)
            labels = [{"external_id": f"held-out-{row}", "label": int(generator.integers(2))} for row in rows]
            assert client.post(f"{OWN}/labels", json={"labels": labels}).status_code == 200
            method = (
                {"method": "venn-abers", "promise": "pointwise"}
                if turn % 2
                else {"method": "venn-admit", "kappa": 10, "q_bins": [0, 1]}
            )
            made = client.post(f"{OWN}/calibrations", json={"alpha": "0.2", **method})
            assert made.status_code == 201, made.text
            # Nobody else publishes, so that this is decided by the calibration that was just made.
            told = client.post(f"{OWN}/decide", json={"points": POINTS}).json()
            assert told["calibration"] == made.json()["calibration"]
            expected[told["calibration"]] = told
            wait_until(functools.partial(clients.saw, told["calibration"]), "a client is answered by it")
    assert clients.failures == []
    assert len(expected) == PUBLISHED
    for answer in clients.answers:
        if answer["calibration"] in expected:  # not the one before the first
            assert answer == expected[answer["calibration"]]
    assert len({str(told["decisions"]) for told in expected.values()}) == PUBLISHED, "each decides differently"
