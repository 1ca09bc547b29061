"""Programs that use the HTTP service as it is told to be used: each request again until it is answered."""

import io
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pyarrow.parquet as pq

from tests.cli import samples
from tests.cli.samples import CLASS_COUNT, CLASS_NAMES, DIMENSION, NAME
from tests.patience import PATIENCE_SECONDS, wait_until
from venn_admit.api.models.common import ProblemAnswer
from venn_admit_client.bodies import PARQUET

JSON = "application/json"
OWN = f"/v1/classifiers/{NAME}"
INGESTED, SCORED, LABELLED, DECIDED = 10, 40, 5, 5
# No answer takes so long: one that has not come by then hangs.
ANSWER_SECONDS = 180.0
PAUSE_SECONDS = 0.2


@dataclass(slots=True)
class Told:
    """What the service told of one turn of a client, without what differs from run to run."""

    created: Any = None
    ingested: Any = None
    submitted: Any = None
    labelled: Any = None
    decided: Any = None
    scores: Any = None


class ServiceClient:
    """One client, whose turns are the same in every run: it stores, submits, labels, decides, and fetches decisions."""

    def __init__(self, url: str, key: str, number: int, folder: Path) -> None:
        self.told: list[Told] = []
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        # The X-Request-ID of the answers to requests that store something.
        self.answered: list[str] = []
        self._number = number
        self._folder = folder
        self._client = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=ANSWER_SECONDS)

    def close(self) -> None:
        self._client.close()

    def turn(self) -> None:
        """Do everything once."""
        name = f"{self._number}-{len(self.told)}"
        # No client has copies of another's points, whose splits would depend on who comes first.
        turn = 10_000 * self._number + len(self.told)
        told = Told()
        new = {"classifier": f"new-{name}", "classes": list(CLASS_NAMES), "dimension": DIMENSION}
        told.created = self._store("POST", "/v1/classifiers", new, f"create-{name}")
        given = {"split": "held-out", "exemplars": rows(f"ingested-{name}", INGESTED, seed=1000 + turn)}
        told.ingested = self._store("POST", f"{OWN}/exemplars", given, f"ingest-{name}")
        job = self._store("POST", f"{OWN}/jobs", self._file(f"scored-{name}", 2000 + turn), f"score-{name}")
        told.submitted = {what: job[what] for what in ("calibration", "rows", "weighted")}
        labels = [{"external_id": f"scored-{name}-{row}", "label": row % CLASS_COUNT} for row in range(LABELLED)]
        told.labelled = self._store("POST", f"{OWN}/labels", {"labels": labels}, f"label-{name}")
        points = [
            {"external_id": row["external_id"], "vector": row["vector"], "logits": row["logits"]}
            for row in rows("decided", DECIDED, seed=3000 + turn)
        ]
        told.decided = self._send("POST", f"{OWN}/decide", {"points": points}).json()
        self._await(job["job"])
        scores = self._send("GET", f"{OWN}/jobs/{job['job']}/scores").content
        told.scores = pq.read_table(io.BytesIO(scores)).to_pylist()
        self.told.append(told)
        self.counts["turns"] += 1

    def _await(self, job: int) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while (shown := self._send("GET", f"{OWN}/jobs/{job}").json())["state"] == "running":
            assert time.monotonic() < until, f"the job is stuck: {shown}"
            time.sleep(PAUSE_SECONDS)
        assert shown["state"] == "done", shown

    def _file(self, prefix: str, seed: int) -> bytes:
        return samples.save(
            self._folder, f"{self._number}.parquet", samples.exemplars(prefix, SCORED, seed)
        ).read_bytes()

    def _store(self, method: str, path: str, content: object, name: str) -> Any:
        answer = self._send(method, path, content, name)
        self.answered.append(answer.headers["x-request-id"])
        return answer.json()

    def _send(self, method: str, path: str, content: object = None, name: str | None = None) -> httpx.Response:
        """Send a request until it succeeds, under the same name, and see that each answer until then is a clear one."""
        body = content if isinstance(content, bytes | None) else json.dumps(content).encode()
        headers = {} if body is None else {"Content-Type": PARQUET if isinstance(content, bytes) else JSON}
        if name is not None:
            headers["Idempotency-Key"] = name
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            self.counts["requests"] += 1
            try:
                answer = self._client.request(method, path, content=body, headers=headers)
            except httpx.TimeoutException as error:
                self.problems.append(f"{method} {path}: no answer within {ANSWER_SECONDS:.0f} s: {error!r}")
            except httpx.TransportError:
                self.counts["connections lost"] += 1
            else:
                if answer.is_success:
                    self.counts["answers given again"] += "idempotent-replayed" in answer.headers
                    return answer
                self._check_temporary(f"{method} {path}", answer)
            assert time.monotonic() < until, f"{method} {path} does not succeed: {self.problems}"
            time.sleep(PAUSE_SECONDS)

    def _check_temporary(self, what: str, answer: httpx.Response) -> None:
        """See that an answer says clearly that the request may be sent again."""
        told = f"{what}: {answer.status_code} {answer.text[:500]}"
        if answer.headers.get("content-type") != "application/problem+json":
            self.problems.append(f"{told}: not application/problem+json")
            return
        problem = ProblemAnswer.model_validate(answer.json())
        self.counts[f"{answer.status_code} {problem.code}"] += 1
        self.counts["refusals"] += answer.status_code == 503
        is_temporary = answer.status_code == 503 or problem.code == "still-running"
        if not is_temporary or not answer.headers.get("retry-after", "").isdigit() or "Traceback" in answer.text:
            self.problems.append(told)


def rows(prefix: str, count: int, seed: int) -> list[dict[str, Any]]:
    """Return exemplars as JSON has them."""
    columns = samples.exemplars(prefix, count, seed)
    return [
        {name: values[row].tolist() if name != "external_id" else str(values[row]) for name, values in columns.items()}
        for row in range(count)
    ]


@dataclass(slots=True)
class Load:
    """Clients that take turns until they are told to end."""

    clients: list[ServiceClient]
    failures: list[BaseException] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> "Load":
        self._threads = [threading.Thread(target=self._run, args=(client,)) for client in self.clients]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Let each client complete its turn."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        for client in self.clients:
            client.close()

    @property
    def requests(self) -> int:
        """How many requests were sent until now."""
        return sum(client.counts["requests"] for client in self.clients)

    def await_requests(self, count: int) -> None:
        """Wait until a number more were sent, or a client failed."""
        former = self.requests
        wait_until(lambda: self.requests >= former + count or self.failures, "the clients are at work")

    @property
    def refusals(self) -> int:
        """How many of them were answered that the service cannot answer now."""
        return sum(client.counts["refusals"] for client in self.clients)

    def counts(self) -> Counter[str]:
        """What the clients saw, counted."""
        return sum((client.counts for client in self.clients), Counter())

    def problems(self) -> Iterator[str]:
        """What the clients saw that they should not have."""
        yield from (problem for client in self.clients for problem in client.problems)
        yield from (repr(failure) for failure in self.failures)

    def _run(self, client: ServiceClient) -> None:
        try:
            while not self._ended.is_set():
                client.turn()
        except BaseException as error:  # it is raised by the reader of `problems`
            self.failures.append(error)
