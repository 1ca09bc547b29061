"""Traces by OpenTelemetry: spans of requests, of messages, and of chunks that workers compute.

They are off unless the variables of OpenTelemetry say where to export them, and then need the extra `telemetry`; while
they are off, a span costs one comparison. Attributes hold names of routes and numbers of jobs: never what a request
held, a key, or an address.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from venn_admit.errors import InvalidInputError, NotReadyError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL = "http/protobuf"
_NAME = "venn-admit"

_provider: "TracerProvider | None" = None


def is_asked_for(environment: Mapping[str, str]) -> bool:
    """Return whether the variables of OpenTelemetry ask for traces.

    >>> is_asked_for({}), is_asked_for({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"})
    (False, True)
    >>> is_asked_for({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318", "OTEL_SDK_DISABLED": "true"})
    False
    """
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or environment.get("OTEL_TRACES_EXPORTER") == "none":
        return False
    return any(environment.get(name) for name in _ENDPOINTS)


def check() -> None:
    """Raise an error if traces are asked for and cannot be made.

    Raises:
        InvalidInputError: They are to be exported by another protocol than HTTP.
        NotReadyError: The extra is not installed.
    """
    if not is_asked_for(os.environ):
        return
    protocol = next(filter(None, map(os.environ.get, _PROTOCOLS)), _PROTOCOL)
    if protocol != _PROTOCOL:
        raise InvalidInputError(
            f"{_PROTOCOLS[1]}: expected {_PROTOCOL}, got {protocol!a}; set it so, and the port of the collector's "
            "HTTP receiver, which is usually 4318"
        )
    try:
        import opentelemetry.exporter.otlp.proto.http.trace_exporter
        import opentelemetry.sdk.trace.export  # noqa: F401 - to see whether both are there
    except ImportError as error:
        raise NotReadyError(
            "OTEL_EXPORTER_OTLP_ENDPOINT asks for traces, which need OpenTelemetry, which is not installed: pip "
            "install 'venn-admit[telemetry]', or unset the variable"
        ) from error


def begin(part: str) -> None:
    """Make spans in this process from now on, if they are asked for; a child that is forked has to begin itself.

    part: of the program, such as api, for the name of the service unless the variables name it. Raises as `check` does.
    """
    global _provider  # noqa: PLW0603 - there is one in a process, as there is one environment
    check()
    if _provider is not None or not is_asked_for(os.environ):
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource({"service.name": f"{_NAME}-{part}", "process.pid": os.getpid()}).merge(_named_resource())
    _provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    _provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))


def _named_resource() -> Any:
    """What the variables say of the service; the name that the SDK makes up if they name none is left out."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    found = dict(OTELResourceDetector().detect().attributes)
    return Resource(found)


def end() -> None:
    """Export the spans that were made, and make no more."""
    global _provider
    ended, _provider = _provider, None
    if ended is not None:
        ended.shutdown()


def is_on() -> bool:
    """Return whether this process makes spans."""
    return _provider is not None


@contextmanager
def span(
    name: str, kind: str, attributes: Mapping[str, Any], *, sent_with: Mapping[str, Any] | None = None
) -> "Iterator[Span | None]":
    """Make a span around a block, within the current one.

    Args:
        name: What is done; one of few.
        kind: server, producer or consumer.
        attributes: What is known of it before.
        sent_with: The headers that a request or message came with: their span is the one around it.

    Yields:
        The span; None while there are none.
    """
    if _provider is None:
        yield None
        return
    from opentelemetry.trace import SpanKind
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = None
    if sent_with is not None:
        carrier = {key: value for key, value in sent_with.items() if isinstance(value, str)}
        context = TraceContextTextMapPropagator().extract(carrier)
    tracer = _provider.get_tracer(_NAME)
    with tracer.start_as_current_span(name, context, SpanKind[kind.upper()], dict(attributes)) as made:
        yield made


def headers() -> dict[str, str]:
    """Return the headers that tell a receiver of the current span: `traceparent`, and `tracestate` if there is one."""
    if _provider is None:
        return {}
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier
