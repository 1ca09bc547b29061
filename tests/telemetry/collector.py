"""A collector on loopback that takes traces as OTLP over HTTP has them."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True)
class CollectedSpan:
    """A span, and the service and process that made it."""

    service: str
    process: int
    name: str
    kind: int
    trace: str
    own: str
    parent: str
    attributes: dict[str, Any]
    is_error: bool


@dataclass(slots=True)
class Collector:
    """What was collected at a URL."""

    url: str
    spans: list[CollectedSpan] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """The variables that have a process export to it, and soon."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.url, "OTEL_BSP_SCHEDULE_DELAY": "100"}

    def named(self, name: str) -> list[CollectedSpan]:
        """Return the spans of a name."""
        return [span for span in self.spans if span.name == name]

    def take(self, body: bytes) -> None:
        """Take a request."""
        self.raw.append(body)
        found = ExportTraceServiceRequest.FromString(body)
        for resource in found.resource_spans:
            of = {one.key: one.value for one in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans += [
                    CollectedSpan(
                        of["service.name"].string_value,
                        of["process.pid"].int_value,
                        span.name,
                        span.kind,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        {one.key: _value(one.value) for one in span.attributes},
                        span.status.code == 2,
                    )
                    for span in scope.spans
                ]


def _value(given: Any) -> Any:
    return getattr(given, given.WhichOneof("value"))


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/v1/traces"
            collector.take(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - its name in the base class
            """Write nothing to standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
