"""Opens the exporters that are configured; nothing is imported for others."""

from __future__ import annotations

import os
from contextlib import ExitStack

from headrace.catalog import Catalog
from headrace.config import Settings
from headrace.config.exporter_settings import TRACES_ENDPOINTS
from headrace.errors import EnvironmentFault
from headrace.events import Events, Notice
from headrace.extras import require


def open_exporters(settings: Settings, catalog: Catalog, events: Events, catalogs: frozenset[str]) -> ExitStack:
    """Send what refreshes do to where the settings say, until the result is closed.

    A package that is missing is told, and stops nothing; not even that where only the environment of the process, which
    is not Headrace's alone, asks for traces.

    Args:
        settings: The project's.
        catalog: Where definitions are.
        events: What is listened to.
        catalogs: Catalogs that the session knows.
    """
    opened = ExitStack()
    if settings.openlineage is not None and installed("openlineage.client", "openlineage", "[openlineage]", events):
        from headrace.observability.exporting.openlineage_delivery import OpenLineageDelivery

        opened.enter_context(OpenLineageDelivery(settings, settings.openlineage, catalog, events, catalogs))
    if settings.traces.wanted(os.environ):
        asked = "[traces]" if settings.traces.enabled or settings.traces.endpoint else ""
        if installed("opentelemetry.exporter.otlp.proto.http", "otel", asked, events):
            from headrace.observability.exporting.trace_delivery import TraceDelivery

            opened.enter_context(TraceDelivery(settings, events))
    return opened


def installed(module: str, extra: str, section: str, events: Events) -> bool:
    """Return whether a package is there; tell where a section asks for it in vain."""
    try:
        require(module, section or TRACES_ENDPOINTS[0], extra)
    except EnvironmentFault as fault:
        if section:
            events.emit(Notice(f"{fault.message} {fault.hint}. Until then nothing is sent."))
        return False
    return True
