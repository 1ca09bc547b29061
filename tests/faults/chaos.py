"""Clients at work while the parts of the HTTP service are killed in turn, and what they must find in the end."""

import math
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2 as httpx
from sqlalchemy import make_url, text

from tests.cli import samples
from tests.cli.databases import CALIBRATION
from tests.cli.program import Program
from tests.cli.samples import NAME
from tests.conftest import fresh_database
from tests.faults.clients import ANSWER_SECONDS, Load, ServiceClient, Told
from tests.faults.fleet import TASK_SECONDS, Sweeper
from tests.faults.parts import PROCESSES, REDIS, Parts, Redis, running_parts
from tests.faults.server import Server, own_server
from tests.faults.workload import Comparison, Row, compare
from tests.patience import wait_until
from tests.workers.processes import await_workers
from venn_admit import broker
from venn_admit.store.database.engine import connect, create_engine, transaction
from venn_admit.store.database.schema import upgrade

CLIENTS = 3
# Between two kills, so that each hits requests.
REQUESTS = 30
MOST_DOWN_SECONDS = 2.0

# What is stored, by what the clients call it: keys that the database gives differ from run to run.
STORED = {
    "classifier": ("name", "class_names, dimension, seed", "classifier"),
    "exemplar": (
        "name, external_id",
        "split, label, network_predicted, content_digest",
        "exemplar INNER JOIN classifier ON exemplar.classifier_id = classifier.id",
    ),
    "label": (
        "external_id, label_event.label, selection",
        "label_event.source",
        "label_event INNER JOIN exemplar ON label_event.exemplar_id = exemplar.id",
    ),
    # A job that the broker did not take is cancelled, and its request refused.
    "job": (
        "kind, (SELECT min(external_id) FROM job_row INNER JOIN exemplar ON exemplar_id = exemplar.id "
        "WHERE job_id = job.id)",
        "state, row_count, weighted, require_full_match, error",
        "(SELECT * FROM job WHERE state <> 'cancelled' OR error NOT LIKE 'the broker%') AS job",
    ),
    "decision": (
        "external_id, calibration_id, weighted, require_full_match",
        "predicted, match_count, distance, logits, admit_set, band_size, threshold, category_size, upweight, lower, "
        "upper, decision, reason",
        "decision INNER JOIN exemplar ON decision.exemplar_id = exemplar.id "
        "LEFT JOIN admit_evidence ON decision.id = decision_id",
    ),
}
NOTED = "SELECT request_id FROM audit_event WHERE status BETWEEN 200 AND 299"


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a run left, and what its clients were told."""

    rows: Counter[Row]
    told: list[list[Told]]


@dataclass(frozen=True, slots=True, eq=False)
class Disturbed:
    """A run with kills: what it left, its errors, and what the clients and the killer counted."""

    found: Found
    problems: list[str]
    counts: Counter[str]


@contextmanager
def calibrated_template(server: Server, folder: Path) -> Iterator[str]:
    """The name of a database on the server with a calibrated classifier, that nobody is connected to."""
    with fresh_database(server.url) as url:
        upgrade(url)
        program = Program({"VENN_ADMIT_DATABASE_URL": url, "VENN_ADMIT_HOME": str(folder / "home-of-template")})
        train = samples.save(folder, "train.npz", samples.train())
        held_out = samples.save(folder, "held-out.parquet", samples.held_out())
        size = ("--dim", samples.DIMENSION, "--k", samples.K)
        for arguments in (
            ("create", NAME, "--classes", ",".join(samples.CLASS_NAMES), *size),
            ("ingest", NAME, train, "--split", "train"),
            ("ingest", NAME, held_out, "--split", "held-out"),
            ("fit", NAME),
            ("calibrate", NAME, *CALIBRATION),
        ):
            outcome = program(*arguments)
            assert outcome.code == 0, outcome
        yield make_url(url).database or ""


def disturb(
    server: Server, template: str, folder: Path, redis: Redis | None, *, rounds: int, rng: random.Random
) -> Disturbed:
    """Have clients at work while each part is killed and started again, `rounds` times one after the other."""
    counts: Counter[str] = Counter()
    with _service(server, template, folder, redis) as (parts, key):
        clients = [ServiceClient(parts.url, key, number, folder) for number in range(CLIENTS)]
        with Load(clients) as load:
            for _ in range(rounds):
                for name, part in parts.by_name.items():
                    load.await_requests(REQUESTS)
                    refusals = load.refusals
                    part.kill()
                    time.sleep(rng.uniform(0, MOST_DOWN_SECONDS))
                    if part is server:  # nothing can be answered without it
                        _await_refusals(load, refusals)
                    part.start()
                    counts[f"{name} killed"] += 1
            load.await_requests(REQUESTS)
        counts += load.counts()
        problems = [*load.problems(), *_problems_after(parts, clients)]
        return Disturbed(_found(parts, clients), problems, counts)


def undisturbed(server: Server, template: str, folder: Path, turns: list[int]) -> Found:
    """Have each client take its turns, one after the other, without any kill."""
    folder.mkdir()
    with _service(server, template, folder, None) as (parts, key):
        clients = [ServiceClient(parts.url, key, number, folder) for number in range(len(turns))]
        for client, count in zip(clients, turns, strict=True):
            for _ in range(count):
                client.turn()
            client.close()
            assert client.problems == []
        return _found(parts, clients)


def differences(calm: Found, disturbed: Found) -> tuple[Comparison, bool]:
    """Compare what is stored, and return whether the clients were told the same as well."""
    return compare(calm.rows, disturbed.rows), calm.told == disturbed.told


def service_soak(folder: Path, kills: int, seed: int) -> tuple[Disturbed, Comparison, bool]:
    """Kill every part in turn, with a Redis if there is one to start, and compare as `differences` does."""
    with ExitStack() as stack:
        server = stack.enter_context(own_server(folder / "home"))
        template = stack.enter_context(calibrated_template(server, folder))
        redis = None
        if REDIS is not None:
            redis = Redis(folder / "redis")
            stack.callback(redis.kill)
        rounds = math.ceil(kills / (PROCESSES + 2 + (redis is not None)))
        run = disturb(server, template, folder, redis, rounds=rounds, rng=random.Random(seed))
        calm = undisturbed(server, template, folder / "calm", list(map(len, run.found.told)))
        return run, *differences(calm, run.found)


@contextmanager
def _service(server: Server, template: str, folder: Path, redis: Redis | None) -> Iterator[tuple[Parts, str]]:
    """The service on a copy of the template, with its key, and what sends lost messages again."""
    with fresh_database(server.url, template) as url, running_parts(server, url, folder, redis) as parts:
        key = parts.program("key", "create", "chaos", "--scope", "admin", "--json").result["secret"]
        engine = create_engine(url)
        with transaction(engine) as connection:
            queue = broker.queue_name(connection)
        address = broker.broker_url(None if redis is None else redis.url, url)
        app = broker.make_app(address, queue=queue, task_seconds=TASK_SECONDS)
        try:
            await_workers(engine, 1)
            with Sweeper(engine, app, copies=1):
                yield parts, key
        finally:
            app.close()
            engine.dispose()


def _await_refusals(load: Load, former: int) -> None:
    wait_until(lambda: load.refusals > former or load.failures, "a client is told to come again")


def _problems_after(parts: Parts, clients: list[ServiceClient]) -> Iterator[str]:
    """What is wrong in the end: a service that is not ready, a fault in its log, an answer that no ledger has."""
    for name, process in parts.processes.items():
        ready = httpx.get(f"http://127.0.0.1:{process.port}/health/ready", timeout=ANSWER_SECONDS)
        if ready.status_code != 200:
            yield f"{name} is not ready: {ready.text}"
    logged = parts.logged()
    yield from (line for line in logged.splitlines() if '"event": "fault"' in line or "Traceback" in line)
    engine = create_engine(parts.program.url)
    with connect(engine) as connection:
        noted = set(connection.execute(text(NOTED)).scalars())
    engine.dispose()
    answered = {request for client in clients for request in client.answered}
    if answered - noted:
        yield f"{len(answered - noted)} of {len(answered)} answers are not in the audit ledger"


def _found(parts: Parts, clients: list[ServiceClient]) -> Found:
    engine = create_engine(parts.program.url)
    with connect(engine) as connection:
        found = Counter(
            (what, row.key, row.rest)
            for what, (key, rest, source) in STORED.items()
            for row in connection.execute(
                text(f"SELECT ROW({key})::text AS key, ROW({rest})::text AS rest FROM {source}")
            )
        )
    engine.dispose()
    return Found(found, [client.told for client in clients])
