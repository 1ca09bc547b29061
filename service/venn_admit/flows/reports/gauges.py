"""What is watched of the service while it runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, Row

from venn_admit.store.database.engine import consistent_view
from venn_admit.store.work import gauges as store
from venn_admit.store.work import jobs


@dataclass(frozen=True, slots=True, eq=False)
class WatchedFigures:
    """What is watched of the service.

    Attributes:
        workers: Workers that are up and take messages.
        oldest_job_seconds: How long ago the oldest running job was asked for; None if no job runs.
        queue_seconds: How long a chunk has waited for a worker, the one that has waited longest; None if none waits.
        classifiers: For each classifier its name, the age of its calibration, how long labels or data have waited for a
            recalibration, the labels that wait to calibrate, and its standing alarms.
    """

    workers: int
    oldest_job_seconds: float | None
    queue_seconds: float | None
    classifiers: Sequence[Row[Any]]


def standing(engine: Engine) -> WatchedFigures:
    """Return what is watched, all of one moment."""
    with consistent_view(engine) as connection:
        return WatchedFigures(
            jobs.live_workers(connection),
            store.oldest_job(connection),
            store.oldest_waiting_chunk(connection),
            store.of_classifiers(connection),
        )
