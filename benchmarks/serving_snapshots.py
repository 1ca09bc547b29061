"""Decisions over HTTP while calibrations are published, against those while none is."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.measure import Measurement
from benchmarks.served import NAME, Served, settings_under
from tests.running import workspace
from venn_admit.core.approximation.knn import approximate
from venn_admit.flows.calibration.calibrate import calibrate_on_stored
from venn_admit.methods.method import PointsToDecide
from venn_admit.methods.registry import load_snapshot
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.search import nearest
from venn_admit.store.search.array_cache import ArrayCache

_CLIENTS, _SECONDS, _POINTS, _ALPHAS = 8, 12, 16, ("0.1", "0.15", "0.2")


@dataclass
class _Run:
    """What clients were answered: the point's number, the answer, and how long it took."""

    answers: list[tuple[int, dict[str, Any], float]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def measure_snapshots(served: Served, weighted: bool, size: str) -> Measurement:
    """Publish a calibration a second, or as often as one can be made, by settings that take turns."""
    calm, (busy, published) = _run(served, weighted, threading.Event()), _while_published(served, weighted)
    assert not calm.failures + busy.failures, f"requests failed: {(calm.failures + busy.failures)[:3]}"
    seen = _check(served, weighted, calm.answers + busy.answers)
    ours, peer = (float(np.median([seconds for _, _, seconds in run.answers])) for run in (busy, calm))
    return Measurement(
        what=f"decide while calibrations are published, {'weighted' if weighted else 'plain'}, p50",
        size=f"{size}, clients: {_CLIENTS}",
        against="none published",
        ours=ours,
        peer=peer,
        ratio=peer / ours,
        note=f"{published} published in {_SECONDS} s; {len(busy.answers)} answers, no error, each that of one of "
        f"{seen} snapshots; p99 {1000 * np.percentile([one[2] for one in busy.answers], 99):.1f} ms",
    )


def _while_published(served: Served, weighted: bool) -> tuple[_Run, int]:
    ended = threading.Event()
    with ThreadPoolExecutor(1) as thread:
        published = thread.submit(_publish, served, ended)
        try:
            run = _run(served, weighted, ended)
        finally:
            ended.set()
        return run, published.result()


def _publish(served: Served, ended: threading.Event) -> int:
    count, start = 0, time.monotonic()
    while not ended.wait(max(0.0, start + count - time.monotonic())):
        alpha = _ALPHAS[count % len(_ALPHAS)]
        calibrate_on_stored(workspace(served.engine), served.classifier, settings_under(alpha), reason="benchmark")
        count += 1
    return count


def _run(served: Served, weighted: bool, ended: threading.Event) -> _Run:
    run, end = _Run(), time.monotonic() + _SECONDS
    bodies = [
        json.dumps({"points": [{"vector": vector.tolist()}], "weighted": weighted})
        for vector in served.vectors[:_POINTS]
    ]

    def ask(client: int) -> None:
        with served.client() as http:
            point = client
            while time.monotonic() < end and not ended.is_set():
                point = (point + 1) % _POINTS
                start = time.perf_counter()
                answer = http.post(
                    f"/v1/classifiers/{NAME}/decide",
                    content=bodies[point],
                    headers={"Content-Type": "application/json"},
                )
                seconds = time.perf_counter() - start
                if answer.status_code == 200:
                    run.answers.append((point, answer.json(), seconds))
                else:
                    run.failures.append(answer.text)

    with ThreadPoolExecutor(_CLIENTS) as threads:
        list(threads.map(ask, range(_CLIENTS)))
    return run


def _check(served: Served, weighted: bool, answers: list[tuple[int, dict[str, Any], float]]) -> int:
    """See that every answer is that of the snapshot that it names, computed again; return how many are named."""
    cache, expected = ArrayCache(served.files / "cache"), dict[tuple[int, int], dict[str, Any]]()
    with consistent_view(served.engine) as connection:
        found = [nearest.exact_nearest(connection, served.classifier, vector) for vector in served.vectors[:_POINTS]]
    named = {answer["calibration"] for _, answer, _ in answers}
    for calibration_id in named:
        snapshot = load_snapshot(workspace(served.engine, cache), served.classifier, calibration_id)
        for point in {point for point, answer, _ in answers if answer["calibration"] == calibration_id}:
            view = approximate(*nearest.as_neighbours([found[point]]), snapshot.parameters.knn)
            vectors = served.vectors[point : point + 1] if weighted else None
            explained = snapshot.explain(PointsToDecide(view, vectors, None), require_full_match=False)
            expected[calibration_id, point] = json.loads(json.dumps(explained.fields))
    for point, answer, _ in answers:
        (decided,) = answer["decisions"]
        fields = expected[answer["calibration"], point]
        assert {name: decided[name] for name in fields} == fields, f"calibration {answer['calibration']}: {decided}"
    return len(named)
