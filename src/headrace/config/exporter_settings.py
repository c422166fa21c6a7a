"""Reads where lineage and traces are sent: the sections [openlineage] and [traces]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headrace.errors import UserError

OPENLINEAGE_KEYS = ("enabled", "url", "api_key_env", "namespace", "transport")
TRACES_KEYS = ("enabled", "endpoint", "service_name")

_OPENLINEAGE_HINT = (
    'Write url = "http://host:5000", and where needed api_key_env = "NAME", namespace = "…"; '
    'or transport = { type = "…" } as OpenLineage\'s client is configured.'
)
_TRACES_HINT = 'Write endpoint = "http://host:4318", and where needed service_name = "…"; or enabled = false.'

TRACES_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""Environment variables of OpenTelemetry that say where traces go."""


@dataclass(frozen=True, slots=True)
class OpenLineageSettings:
    """The section [openlineage]: where run events are sent.

    Args:
        url: A server that takes them by HTTP; None where `transport`, or OpenLineage's own configuration, says it.
        api_key_env: An environment variable with the server's API key.
        namespace: Of jobs and tables; None for the name of the project's folder.
        transport: As OpenLineage's client is configured: `type` and what that needs.
    """

    url: str | None = None
    api_key_env: str | None = None
    namespace: str | None = None
    transport: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TracesSettings:
    """The section [traces]: where spans are sent.

    Args:
        enabled: False for nowhere, whatever the environment says; True also without an endpoint; None where nothing
            is said.
        endpoint: A collector that takes OTLP by HTTP, without `/v1/traces`; None for what the environment says.
        service_name: What it is called there; None for what the environment says, else `headrace`.
    """

    enabled: bool | None = None
    endpoint: str | None = None
    service_name: str | None = None

    def wanted(self, environ: Mapping[str, str]) -> bool:
        """Return whether spans are sent.

        Args:
            environ: The process's environment, with OpenTelemetry's own variables.
        """
        off = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
        if self.enabled is False or off or environ.get("OTEL_TRACES_EXPORTER", "otlp").strip() != "otlp":
            return False
        return bool(self.enabled or self.endpoint or any(environ.get(name) for name in TRACES_ENDPOINTS))


def read_openlineage(file: Path, section: Mapping[str, object] | None) -> OpenLineageSettings | None:
    """Return what the section `[openlineage]` says; None where nothing is to be sent.

    Raises:
        UserError: `CONFIG_INVALID`.
    """
    if section is None:
        return None
    enabled, transport = section.get("enabled", True), section.get("transport", {})
    texts = [section.get(key) for key in ("url", "api_key_env", "namespace")]
    right = isinstance(enabled, bool) and all(map(_is_text, texts)) and _is_url(texts[0])
    if not right or not isinstance(transport, Mapping) or (transport and not _is_transport(transport, texts[0])):
        raise _not_understood(file, "openlineage", _OPENLINEAGE_HINT)
    url, key, namespace = (None if text is None else str(text) for text in texts)
    return OpenLineageSettings(url, key, namespace, transport) if enabled else None


def read_traces(file: Path, section: Mapping[str, object]) -> TracesSettings:
    """Return what the section `[traces]` says.

    Raises:
        UserError: `CONFIG_INVALID`.
    """
    enabled, endpoint, name = (section.get(key) for key in TRACES_KEYS)
    if not isinstance(enabled, bool | None) or not (_is_text(endpoint) and _is_text(name) and _is_url(endpoint)):
        raise _not_understood(file, "traces", _TRACES_HINT)
    return TracesSettings(enabled, *(None if text is None else str(text) for text in (endpoint, name)))


def _is_text(value: object) -> bool:
    return value is None or (isinstance(value, str) and bool(value.strip()))


def _is_transport(transport: Mapping[str, object], url: object) -> bool:
    return isinstance(transport.get("type"), str) and url is None


def _is_url(value: object) -> bool:
    return value is None or re.match(r"https?://[^/\s]+", str(value)) is not None


def _not_understood(file: Path, section: str, hint: str) -> UserError:
    return UserError("CONFIG_INVALID", f"{file} has something in [{section}] that is not understood.", hint=hint)
