"""`--endpoint`: OTLP as it was written, sent by OpenTelemetry's own exporter."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tape_jupyter.errors import TapeUsageError
from tape_jupyter.importers.attributes import attribute_map

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

_AT_ONCE = 64
_NEEDS = (
    "--endpoint needs opentelemetry-exporter-otlp-proto-http; now: pip install 'tape-jupyter[otlp]', or write a file "
    "with --out"
)


def send_documents(endpoint: str, documents: Sequence[bytes]) -> None:
    """Send documents of OTLP JSON. Raises TapeUsageError where the exporter is absent, or does not
    get through.

    Headers (OTEL_EXPORTER_OTLP_HEADERS), certificates and timeouts are the exporter's own.
    """
    if not endpoint.startswith(("http://", "https://")):
        raise TapeUsageError(
            f"--endpoint {endpoint}: name a URL, like http://localhost:4318/v1/traces"
        )
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import SpanExportResult
    except ImportError:
        raise TapeUsageError(_NEEDS) from None
    spans = [span for document in documents for span in _build_spans(json.loads(document))]
    exporter = OTLPSpanExporter(endpoint)
    try:
        for first in range(0, len(spans), _AT_ONCE):
            with _collect_log_messages() as told:
                done = exporter.export(spans[first : first + _AT_ONCE])
            if done is not SpanExportResult.SUCCESS:
                sent = f"{first} of {len(spans)} spans were sent" if first else "nothing was sent"
                raise TapeUsageError(
                    f"--endpoint {endpoint}: {told[-1] if told else 'no answer'}; {sent}"
                )
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]


@contextmanager
def _collect_log_messages() -> Iterator[list[str]]:
    """What the exporter logs meanwhile: it is all that it tells of a failure."""
    told: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage()[:500])

    logger, listener = logging.getLogger("opentelemetry"), Listener()
    before = logger.propagate
    logger.addHandler(listener)
    logger.propagate = False
    try:
        yield told
    finally:
        logger.removeHandler(listener)
        logger.propagate = before


def _build_spans(document: Mapping[str, Any]) -> Iterator[ReadableSpan]:
    """A document's spans as the SDK holds them."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    for part in document["resourceSpans"]:
        resource = Resource(attribute_map(part["resource"]["attributes"]))
        for inner in part["scopeSpans"]:
            scope = InstrumentationScope(inner["scope"]["name"], inner["scope"]["version"])
            yield from (_build_span(told, resource, scope) for told in inner["spans"])


def _build_span(
    told: Mapping[str, Any], resource: Resource, scope: InstrumentationScope
) -> ReadableSpan:
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    def build_context(own: str) -> SpanContext:
        flags = TraceFlags(TraceFlags.SAMPLED)
        return SpanContext(
            int(told["traceId"], 16), int(own, 16), is_remote=False, trace_flags=flags
        )

    status = told["status"]
    return ReadableSpan(
        told["name"], build_context(told["spanId"]),
        build_context(told["parentSpanId"]) if told["parentSpanId"] else None, resource,
        attribute_map(told["attributes"]),
        [Event(each["name"], attribute_map(each["attributes"]),
        int(each["timeUnixNano"])) for each in told.get("events", ())],
        kind=SpanKind(told["kind"] - 1), status=Status(StatusCode(status["code"]), status.get("message")),
        start_time=int(told["startTimeUnixNano"]), end_time=int(told["endTimeUnixNano"]), instrumentation_scope=scope,
    )  # fmt: skip
