"""Decisions over HTTP, with several clients at once, against the bare search at the same concurrency.

`venn-admit serve` is a process of its own. Its clients, and those of the peer, are threads of this one, each with a
connection that it keeps: to the service, or to the database for `ORDER BY vector <-> v LIMIT 25`, ids alone, or to
have the request sent back where there are logits alone. Both take turns, some of the requests at a time. The time of
the clients counts on both sides.

Then clients decide while calibrations are published, and a file is scored over HTTP and by the command line.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass

import numpy as np
import psycopg
import structlog

from benchmarks.measure import Measurement
from benchmarks.served import NAME, Served, add_logits_only, serving
from benchmarks.serving_bulk import measure_bulk
from benchmarks.serving_snapshots import measure_snapshots
from benchmarks.storage import database, folder
from venn_admit.core.types import FloatArray

_NEIGHBOUR_COUNT, _CLIENTS = 25, (1, 8, 32)
_BLOCKS = 4
# Points of a large request, and how many of these there are.
_MANY, _REQUESTS = 1000, 12

Call = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class _Requests:
    """What clients ask the service, request by request, and the statement of the peer with its parameter for each."""

    what: str
    name: str
    bodies: Sequence[str]
    against: str
    statement: str
    values: Sequence[str]

    @property
    def path(self) -> str:
        return f"/v1/classifiers/{self.name}/decide"


def measure(large: bool) -> Iterator[Measurement]:
    support, held_out, dimension = (100_000, 111_200, 384) if large else (10_000, 11_120, 128)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    with (
        folder() as files,
        database(files / "home") as engine,
        serving(
            engine, files, support=support, held_out=held_out, dimension=dimension, points=256 if large else 640
        ) as served,
    ):
        size = f"{support:,}, D={dimension}"
        for weighted in (False, True):
            of_vectors = _of_vectors(served, weighted)
            for clients in _CLIENTS:
                yield _side_by_side(served, of_vectors, clients, f"{size}, clients: {clients}")
        if not large:  # the peer would take half an hour
            yield _side_by_side(served, _of_many(served), 1, f"{size}, {_MANY:,} points")
        of_logits = _of_logits(served, held_out)
        for clients in _CLIENTS:
            yield _side_by_side(served, of_logits, clients, f"{held_out:,} held out, clients: {clients}")
        for weighted in (False, True):
            yield measure_snapshots(served, weighted, size)
        yield measure_bulk(served, size, 10_000 if large else 5_000)


def _of_vectors(served: Served, weighted: bool) -> _Requests:
    return _Requests(
        "weighted" if weighted else "plain",
        NAME,
        [json.dumps({"points": [{"vector": vector.tolist()}], "weighted": weighted}) for vector in served.vectors],
        f"bare: nearest {_NEIGHBOUR_COUNT}",
        _search(served, "CAST(%s AS public.vector)"),
        [json.dumps(vector.tolist()) for vector in served.vectors],
    )


def _of_many(served: Served) -> _Requests:
    rng = np.random.default_rng(0)
    drawn = [served.vectors[rng.integers(len(served.vectors), size=_MANY)] for _ in range(_REQUESTS)]
    # Digits that tell float32 numbers apart, and no more: a body may be no larger.
    lists = [["[" + ",".join(f"{value:.7g}" for value in vector) + "]" for vector in vectors] for vectors in drawn]
    of_each = f"CROSS JOIN LATERAL ({_search(served, 'v')}) AS near"
    return _Requests(
        "plain",
        NAME,
        ['{"weighted": false, "points": [' + ",".join(f'{{"vector": {one}}}' for one in some) + "]}" for some in lists],
        f"bare: nearest {_NEIGHBOUR_COUNT} of each",
        f"SELECT near.exemplar_id FROM unnest(CAST(%s AS public.vector[])) AS given (v) {of_each}",
        ["{" + ",".join(f'"{one}"' for one in some) + "}" for some in lists],
    )


def _of_logits(served: Served, held_out: int) -> _Requests:
    name = add_logits_only(served.engine, served.files, held_out)
    bodies = [json.dumps({"points": [{"logits": logits.tolist()}]}) for logits in served.logits]
    return _Requests("logits alone", name, bodies, "bare: its text, sent back", "SELECT CAST(%s AS text)", bodies)


def _search(served: Served, vector: str) -> str:
    return (
        f"SELECT exemplar_id FROM venn_admit.exemplar_vector_{served.classifier.id}_support"
        f" ORDER BY vector <-> {vector} LIMIT {_NEIGHBOUR_COUNT}"
    )


def _side_by_side(served: Served, requests: _Requests, clients: int, size: str) -> Measurement:
    engine, count = served.engine, len(requests.bodies)
    where = engine.dialect.create_connect_args(engine.url)[1]
    with ExitStack() as opened, ThreadPoolExecutor(clients) as threads:
        https = [opened.enter_context(closing(served.connect())) for _ in range(clients)]
        connections = [opened.enter_context(psycopg.connect(**where, autocommit=True)) for _ in range(clients)]

        def decide(client: int) -> Call:
            return lambda request: served.post(https[client], requests.path, requests.bodies[request])

        def find(client: int) -> Call:
            return lambda request: (
                connections[client].execute(requests.statement, [requests.values[request]]).fetchall()
            )

        def run(call_of: Callable[[int], Call], asked: range) -> tuple[float, FloatArray]:
            """Wall clock for all requests, and how long each took."""
            start = time.perf_counter()
            parts = threads.map(_timed, map(call_of, range(clients)), [asked[c::clients] for c in range(clients)])
            seconds = np.concatenate([np.array(part) for part in parts])
            return time.perf_counter() - start, seconds

        run(decide, range(count // 2))
        run(find, range(count // 2))
        turns, began = [], served.processor_seconds()
        for block in range(_BLOCKS):
            asked = range(block * count // _BLOCKS, (block + 1) * count // _BLOCKS)
            both = {side: run(side, asked) for side in ((decide, find) if block % 2 else (find, decide))}
            turns.append((both[decide], both[find]))
        taken = (served.processor_seconds() - began) / count
    mine, bare = (np.concatenate([turn[side][1] for turn in turns]) for side in (0, 1))
    my_rate, bare_rate = (count / sum(turn[side][0] for turn in turns) for side in (0, 1))
    ours, peer = float(np.median(mine)), float(np.median(bare))
    return Measurement(
        what=f"decide over HTTP, {requests.what}, p50",
        size=size,
        against=requests.against,
        ours=ours,
        peer=peer,
        ratio=float(np.median([np.median(theirs[1]) / np.median(own[1]) for own, theirs in turns])),
        note=f"p99 {1000 * np.percentile(mine, 99):.1f} ms, peer {1000 * np.percentile(bare, 99):.1f}; "
        f"a second {my_rate:,.0f}, peer {bare_rate:,.0f}; the service took {1000 * taken:.2f} ms of a processor each",
    )


def _timed(call: Call, requests: range) -> list[float]:
    seconds = []
    for request in requests:
        start = time.perf_counter()
        call(request)
        seconds.append(time.perf_counter() - start)
    return seconds
