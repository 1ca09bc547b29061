"""What Prometheus is told of a process that serves HTTP."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
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
            "Points that were decided on, by whether the prediction was admitted.",
            ("admitted",),
            registry=self._registry,
        )
        self._workers = Gauge("venn_admit_workers", "Workers that are up and take messages.", registry=self._registry)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer. route: the template of its path, so that there are few of them."""
        known = method if method in _METHODS else "other"
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(known, route).observe(seconds)

    def count_decided(self, admitted: int, rejected: int) -> None:
        """Count points that were decided on."""
        self._decided.labels("true").inc(admitted)
        self._decided.labels("false").inc(rejected)

    def text(self, workers: int) -> bytes:
        """Return all figures as Prometheus reads them. workers: how many are up now."""
        self._workers.set(workers)
        return generate_latest(self._registry)
