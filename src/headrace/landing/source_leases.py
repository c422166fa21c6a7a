"""Names the leases of a source and of its mirrors."""

from __future__ import annotations

from headrace.catalog import DatabaseSource, resource_of


def source_resource(name: str) -> str:
    """Return the lease resource of a source."""
    return f"source:{name}"


def resources_of(source: DatabaseSource) -> list[str]:
    """Return the leases needed to change a source or its mirrors."""
    return [source_resource(source.name), *(resource_of(t) for m in source.mirrors for t in m.stored)]
