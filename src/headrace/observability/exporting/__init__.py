"""Sends what refreshes did to others: OpenLineage's run events, OpenTelemetry's spans.

In come the core's events, and what the catalog knows of the tables. Out go requests, from threads of their own, by
libraries that are imported there and nowhere else. Door: `open_exporters`.
"""

from headrace.observability.exporting.open_exporters import open_exporters

__all__ = ["open_exporters"]
