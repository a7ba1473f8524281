"""`--endpoint`: OTLP as it was written, sent by OpenTelemetry's own exporter."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tape_jupyter.core.plain_text import format_count
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
            with _collect_log_messages() as log_messages:
                done = exporter.export(spans[first : first + _AT_ONCE])
            if done is not SpanExportResult.SUCCESS:
                if first:
                    sent = f"{first} of {format_count(len(spans), 'span')} were sent"
                else:
                    sent = "nothing was sent"
                raise TapeUsageError(
                    f"--endpoint {endpoint}: {log_messages[-1] if log_messages else 'no answer'}; {sent}"
                )
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]


@contextmanager
def _collect_log_messages() -> Iterator[list[str]]:
    """What the exporter logs meanwhile: it is all that it tells of a failure."""
    log_messages: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log_messages.append(record.getMessage()[:500])

    logger, listener = logging.getLogger("opentelemetry"), Listener()
    before = logger.propagate
    logger.addHandler(listener)
    logger.propagate = False
    try:
        yield log_messages
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
            yield from (_build_span(span, resource, scope) for span in inner["spans"])


def _build_span(
    span: Mapping[str, Any], resource: Resource, scope: InstrumentationScope
) -> ReadableSpan:
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    def build_context(span_id: str) -> SpanContext:
        flags = TraceFlags(TraceFlags.SAMPLED)
        return SpanContext(
            int(span["traceId"], 16), int(span_id, 16), is_remote=False, trace_flags=flags
        )

    status = span["status"]
    return ReadableSpan(
        span["name"], build_context(span["spanId"]),
        build_context(span["parentSpanId"]) if span["parentSpanId"] else None, resource,
        attribute_map(span["attributes"]),
        [Event(each["name"], attribute_map(each["attributes"]),
        int(each["timeUnixNano"])) for each in span.get("events", ())],
        kind=SpanKind(span["kind"] - 1), status=Status(StatusCode(status["code"]), status.get("message")),
        start_time=int(span["startTimeUnixNano"]), end_time=int(span["endTimeUnixNano"]), instrumentation_scope=scope,
    )  # fmt: skip
