"""Sends OpenTelemetry's spans: of a cycle, inside it of refreshes, inside them of stages.

Spans are made when a refresh has ended, with the times at which things happened, and exported by OTLP over HTTP on the
thread that delivers. No span processor of the SDK's is used, so that what waits is limited in one place.
"""

from __future__ import annotations

import logging
import os
from functools import cached_property
from typing import Any

from headrace.config import Settings
from headrace.events import Events, SinkFailed, SinkWritten
from headrace.observability.exporting.refresh_delivery import Refresh, RefreshDelivery, own_version

OURS = "headrace"
"""Prefix of the names of attributes that only Headrace has."""

TIMEOUT_SECONDS = 5.0
"""A collector has so long to take spans, all tries included."""


class TraceDelivery(RefreshDelivery):
    """Sends spans while it is open.

    Args:
        settings: The project's.
        events: What is listened to.
    """

    def __init__(self, settings: Settings, events: Events) -> None:
        super().__init__(events, "headrace-traces", "OpenTelemetry's spans")
        self._settings = settings
        self._cycle: Any = None
        self._by, self._began = "", 0
        self._ready: list[Any] = []

    def cycle_began(self, at: int, by: str) -> None:
        """Remember the cycle, whose span begins with its first refresh."""
        self._cycle, self._by, self._began = None, by, at

    def ended(self, refresh: Refresh) -> None:
        """Send a refresh with its stages."""
        refreshed = bool(refresh.mode) and refresh.mode not in ("LAND", "SNAPSHOT")
        span = self._span(f"refresh {refresh.table}" if refreshed else refresh.table, refresh.start, self._parent())
        self._describe(span, refresh)
        for stage in refresh.stages:
            inner = self._span(stage.title, stage.start, span)
            inner.set_attribute(f"{OURS}.table", refresh.table)
            inner.end(stage.end or refresh.end)
        span.end(refresh.end)
        self._export()

    def wrote(self, sink: SinkWritten | SinkFailed, at: int) -> None:
        """Send that a sink was written, or was not."""
        took = round(sink.seconds * 1e9) if isinstance(sink, SinkWritten) else 0
        span = self._span(f"sink {sink.sink}", at - took, self._parent())
        span.set_attribute(f"{OURS}.sink", sink.sink)
        if isinstance(sink, SinkWritten):
            span.set_attribute(f"{OURS}.version", sink.version)
            span.set_attribute(f"{OURS}.rows_inserted", sink.inserted)
            span.set_attribute(f"{OURS}.rows_deleted", sink.deleted)
        else:
            self._fail(span, sink.code, sink.message)
        span.end(at)
        self._export()

    def cycle_ended(self, at: int) -> None:
        """Send the span of the cycle."""
        cycle, self._cycle = self._cycle, None
        if cycle is not None:
            cycle.end(at)
            self._export()

    # ---- spans

    def _parent(self) -> Any:
        """Return the span of the cycle, which begins with its first child; None outside of one."""
        if self._cycle is None and self._cycles:
            self._cycle = self._span("cycle", self._began, None)
            self._cycle.set_attribute(f"{OURS}.started_by", self._by)
        return self._cycle

    def _span(self, name: str, start: int, parent: Any) -> Any:
        from opentelemetry.trace import set_span_in_context

        context = self._around if parent is None else set_span_in_context(parent)
        return self._tracer.start_span(name, context=context, start_time=start)

    def _describe(self, span: Any, refresh: Refresh) -> None:
        known: dict[str, str | int | None] = {
            f"{OURS}.table": refresh.table,
            f"{OURS}.mode": refresh.mode,
            f"{OURS}.reason": refresh.reason,
        }
        if not (refresh.code or refresh.abandoned):
            known |= {
                f"{OURS}.rows_inserted": refresh.rows_inserted,
                f"{OURS}.rows_deleted": refresh.rows_deleted,
            }
        span.set_attributes({name: value for name, value in known.items() if value not in (None, "")})
        if refresh.code:
            self._fail(span, refresh.code, refresh.message)
        elif refresh.abandoned:
            span.set_attribute(f"{OURS}.abandoned", True)

    def _fail(self, span: Any, code: str, message: str) -> None:
        from opentelemetry.trace import Status, StatusCode

        span.set_attribute("error.type", code)
        span.set_status(Status(StatusCode.ERROR, message))

    # ---- sending

    def end(self) -> None:
        """Stop listening, wait a while for what waits, and close the connection."""
        over = self._ended.is_set()
        super().end()
        exporter = self.__dict__.get("_exporter")
        if exporter is not None and not over:
            exporter.shutdown()

    def _export(self) -> None:
        """Send the spans that have ended.

        Raises:
            ConnectionError: They were not taken.
        """
        from opentelemetry.sdk.trace.export import SpanExportResult

        ready, self._ready = self._ready, []
        if ready and self._exporter.export(ready) is not SpanExportResult.SUCCESS:
            raise ConnectionError(f"the collector at {self._exporter._endpoint.split('?')[0]} does not take them")
        if ready:
            self.arrived()

    @cached_property
    def _exporter(self) -> Any:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # what goes wrong is told as a notice
        given = self._settings.traces.endpoint
        endpoint = None if given is None else f"{given.rstrip('/').removesuffix('/v1/traces')}/v1/traces"
        return OTLPSpanExporter(endpoint=endpoint, timeout=TIMEOUT_SECONDS)

    @cached_property
    def _tracer(self) -> Any:
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider

        name = self._settings.traces.service_name
        name = name or ("headrace" if not os.environ.get("OTEL_SERVICE_NAME") else None)
        resource = Resource.create({f"{OURS}.project": self._settings.root.name})
        if name is not None and (self._settings.traces.service_name or not _named(resource)):
            resource = resource.merge(Resource({SERVICE_NAME: name}))
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(_EndedSpans(self._ready_span))
        return provider.get_tracer("headrace", own_version())

    def _ready_span(self, span: Any) -> None:
        self._ready.append(span)

    @cached_property
    def _around(self) -> Any:
        """Return the trace that the process is part of, by `TRACEPARENT`; an empty one for none."""
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        found = {key.lower(): os.environ[key] for key in ("TRACEPARENT", "TRACESTATE") if key in os.environ}
        return TraceContextTextMapPropagator().extract(found)


def _named(resource: Any) -> bool:
    """Return whether the environment says what the service is called."""
    return not str(resource.attributes.get("service.name", "unknown_service")).startswith("unknown_service")


class _EndedSpans:
    """Takes the spans that have ended; a span processor by what it can do."""

    def __init__(self, take: Any) -> None:
        self._take = take

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Do nothing."""

    def _on_ending(self, span: Any) -> None:
        """Do nothing."""

    def on_end(self, span: Any) -> None:
        """Take a span."""
        if span.context.trace_flags.sampled:
            self._take(span)

    def shutdown(self) -> None:
        """Do nothing."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Do nothing."""
        return True
