"""An advance of a certificate that stands while labels arrive, against a chain that begins with all of them."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import structlog
from sqlalchemy import Engine

from benchmarks.data import generator
from benchmarks.measure import Measurement
from benchmarks.storage import database, folder
from tests.running import workspace
from venn_admit.files.sources import FileSource
from venn_admit.flows.calibration.calibrate import calibrate_on_stored, settings_for
from venn_admit.flows.calibration.recalibrate import recalibrate_step, retry_and_list
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.create import create
from venn_admit.flows.data.ingest import HELD_OUT, ingest

_NAME = "bench"
_CLASS_COUNT = 3


def measure(large: bool) -> Iterator[Measurement]:
    points = 250_000 if large else 25_000
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with folder() as files, database(files / "home") as engine:
        create(engine, _NAME, tuple(map(str, range(_CLASS_COUNT))), seed=0, logits_only=True)
        _ingest(engine, files, "held-out", points)
        known = find(engine, _NAME)
        settings = settings_for(known, "venn-abers", {"standing": True})
        begun = time.perf_counter()
        calibrate_on_stored(workspace(engine), known, settings, reason="benchmark")
        from_scratch = time.perf_counter() - begun
        for count in (1, 100, 1_000, 10_000):
            _ingest(engine, files, f"more-{count}", count)
            begun = time.perf_counter()
            _advance(engine)
            ours = time.perf_counter() - begun
            yield Measurement(
                what="advance a standing certificate",
                size=f"labels that came: {count:,}; {points:,} count, C={_CLASS_COUNT}",
                against="the same from scratch",
                ours=ours,
                peer=from_scratch,
                ratio=from_scratch / ours,
            )


def _ingest(engine: Engine, files: Path, name: str, rows: int) -> None:
    random = generator()
    label = random.integers(_CLASS_COUNT, size=rows)
    logits = random.normal(size=(rows, _CLASS_COUNT)) + 2 * np.eye(_CLASS_COUNT)[label]
    path = files / f"{name}.npz"
    np.savez(path, f=logits.astype(np.float32), y=label, id=np.char.add(f"{name}-", np.arange(rows).astype(str)))
    ingest(engine, _NAME, FileSource(path), HELD_OUT)


def _advance(engine: Engine) -> None:
    (request,) = retry_and_list(engine, _NAME)
    step = recalibrate_step(workspace(engine), request, quiet_seconds=0, wait_seconds=0, wait=True)
    assert step is not None
    assert step.calibrated is not None, step.error
