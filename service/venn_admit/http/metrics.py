"""The metrics of a process that serves HTTP, as Prometheus reads them."""

from collections import Counter as Tally
from collections.abc import Iterable, Mapping
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from venn_admit.flows.reports.gauges import WatchedFigures

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# In place of a reason, as the reports of decisions have it.
ADMITTED = "admitted"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """The figures of one application, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "venn_admit_http_requests_total",
            "Requests that were answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "venn_admit_http_request_seconds",
            "Seconds from a request to the end of its answer.",
            ("method", "route"),
            registry=self._registry,
        )
        self._decided = Counter(
            "venn_admit_http_decided_points_total",
            "Points that were decided on, by whether the prediction was admitted, and why not.",
            ("admitted", "reason"),
            registry=self._registry,
        )
        # Found by their labels once: there are as few as there are routes.
        self._of_requests = cache(self._requests.labels)
        self._of_seconds = cache(self._seconds.labels)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer. route: the template of its path, so that there are few of them."""
        known = method if method in _METHODS else "other"
        self._of_requests(known, route, status).inc()
        self._of_seconds(known, route).observe(seconds)

    def count_decided(self, reasons: Iterable[str | None]) -> None:
        """Count points that were decided on. reasons: why each was rejected, a value of `Reason`; None if admitted."""
        for reason, points in Tally(reasons).items():
            is_admitted = reason is None
            self._decided.labels("true" if is_admitted else "false", ADMITTED if is_admitted else reason).inc(points)

    def text(self, standing: WatchedFigures, ready: Mapping[str, bool]) -> bytes:
        """Return all figures as Prometheus reads them.

        Args:
            standing: What the database says, which is the same whichever process is asked.
            ready: Whether this process finds what it needs ready, by its name.
        """
        return generate_latest(self._registry) + generate_latest(_current(standing, ready))


def _current(standing: WatchedFigures, ready: Mapping[str, bool]) -> CollectorRegistry:
    """Return the figures of this moment, in a new registry, so that classifiers that are gone are left out."""
    registry = CollectorRegistry()
    Gauge("venn_admit_workers", "Workers that are up and take messages.", registry=registry).set(standing.workers)
    Gauge(
        "venn_admit_oldest_job_seconds",
        "Seconds since the oldest running job was submitted; 0 if none runs.",
        registry=registry,
    ).set(standing.oldest_job_seconds or 0)
    Gauge(
        "venn_admit_queue_age_seconds",
        "Seconds that a chunk of a job has waited for a worker, the one that has waited longest; 0 if none waits.",
        registry=registry,
    ).set(standing.queue_seconds or 0)
    is_ready = Gauge("venn_admit_ready", "Whether this process finds it ready.", ("what",), registry=registry)
    for what, state in ready.items():
        is_ready.labels(what).set(state)
    ages, waits, labels, alarms = (
        Gauge(f"venn_admit_{name}", meaning, ("classifier",), registry=registry)
        for name, meaning in (
            ("calibration_age_seconds", "Seconds since the calibration that a classifier decides with was made."),
            (
                "recalibration_wait_seconds",
                "Seconds that labels or data have waited for a recalibration; 0 if none wait.",
            ),
            ("labels_waiting", "Random labels that wait for a recalibration, among the newest 10,000 of the service."),
            ("alarms_standing", "Alarms that stand: admitted predictions may be wrong more often than they should be."),
        )
    )
    for row in standing.classifiers:
        if row.calibration_seconds is not None:
            ages.labels(row.classifier).set(row.calibration_seconds)
        waits.labels(row.classifier).set(row.waiting_seconds or 0)
        labels.labels(row.classifier).set(row.labels_waiting)
        alarms.labels(row.classifier).set(row.alarms)
    return registry
