"""Decisions on one point over HTTP, with several clients at once, against the bare search at the same concurrency.

`venn-admit serve` is a process of its own. Its clients, and those of the peer, are threads of this one, each with a
connection that it keeps: to the service, or to the database for `ORDER BY vector <-> v LIMIT 25`, ids alone. Both take
turns, some of the points at a time. The clients' own time counts on both sides.

Then clients decide while calibrations are published, and a file is scored over HTTP and by the command line.
"""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import psycopg
import structlog

from benchmarks.measure import Measurement
from benchmarks.served import NAME, Served, serving
from benchmarks.serving_bulk import measure_bulk
from benchmarks.serving_snapshots import measure_snapshots
from benchmarks.storage import database, folder
from venn_admit.core.types import FloatArray

_NEIGHBOUR_COUNT, _CLIENTS = 25, (1, 8, 32)
_BLOCKS, _WARM_UP = 4, 64
_DECIDE, _JSON = f"/v1/classifiers/{NAME}/decide", {"Content-Type": "application/json"}

Call = Callable[[int], object]


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
            for clients in _CLIENTS:
                yield _side_by_side(served, weighted, clients, f"{size}, clients: {clients}")
        for weighted in (False, True):
            yield measure_snapshots(served, weighted, size)
        yield measure_bulk(served, size, 10_000 if large else 5_000)


def _side_by_side(served: Served, weighted: bool, clients: int, size: str) -> Measurement:
    vectors, engine, count = served.vectors, served.engine, len(served.vectors)
    bodies = [json.dumps({"points": [{"vector": vector.tolist()}], "weighted": weighted}) for vector in vectors]
    literals = [json.dumps(vector.tolist()) for vector in vectors]
    search = (
        f"SELECT exemplar_id FROM venn_admit.exemplar_vector_{served.classifier.id}_support"
        f" ORDER BY vector <-> CAST(%s AS public.vector) LIMIT {_NEIGHBOUR_COUNT}"
    )
    where = engine.dialect.create_connect_args(engine.url)[1]
    with ExitStack() as opened, ThreadPoolExecutor(clients) as threads:
        https = [opened.enter_context(served.client()) for _ in range(clients)]
        connections = [opened.enter_context(psycopg.connect(**where, autocommit=True)) for _ in range(clients)]

        def decide(client: int) -> Call:
            return lambda point: https[client].post(_DECIDE, content=bodies[point], headers=_JSON).raise_for_status()

        def find(client: int) -> Call:
            return lambda point: connections[client].execute(search, [literals[point]]).fetchall()

        def run(call_of: Callable[[int], Call], points: range) -> tuple[float, FloatArray]:
            """Wall clock for all points, and how long each took."""
            start = time.perf_counter()
            parts = threads.map(_timed, map(call_of, range(clients)), [points[c::clients] for c in range(clients)])
            seconds = np.concatenate([np.array(part) for part in parts])
            return time.perf_counter() - start, seconds

        run(decide, range(_WARM_UP))
        run(find, range(_WARM_UP))
        turns, began = [], served.processor_seconds()
        for block in range(_BLOCKS):
            points = range(block * count // _BLOCKS, (block + 1) * count // _BLOCKS)
            both = {side: run(side, points) for side in ((decide, find) if block % 2 else (find, decide))}
            turns.append((both[decide], both[find]))
        taken = (served.processor_seconds() - began) / count
    mine, bare = (np.concatenate([turn[side][1] for turn in turns]) for side in (0, 1))
    my_rate, bare_rate = (count / sum(turn[side][0] for turn in turns) for side in (0, 1))
    ours, peer = float(np.median(mine)), float(np.median(bare))
    return Measurement(
        what=f"decide over HTTP, {'weighted' if weighted else 'plain'}, p50",
        size=size,
        against="bare: nearest 25",
        ours=ours,
        peer=peer,
        ratio=float(np.median([np.median(theirs[1]) / np.median(own[1]) for own, theirs in turns])),
        note=f"p99 {1000 * np.percentile(mine, 99):.1f} ms, peer {1000 * np.percentile(bare, 99):.1f}; "
        f"a second {my_rate:,.0f}, peer {bare_rate:,.0f}; the service took {1000 * taken:.2f} ms of a processor each",
    )


def _timed(call: Call, points: range) -> list[float]:
    seconds = []
    for point in points:
        start = time.perf_counter()
        call(point)
        seconds.append(time.perf_counter() - start)
    return seconds
