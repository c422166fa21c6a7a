"""Compares declared sinks with existing ones; returns the steps to take. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from headrace.catalog import Sink
from headrace.config import DeclaredSink
from headrace.errors import UserError
from headrace.names import TableName
from headrace.results.refresh_results import Record
from headrace.sinks.registry import KINDS, sink_kind_of
from headrace.sinks.sink_kind import SinkRequest


@dataclass(frozen=True, slots=True)
class SinkStep(Record):
    """One thing that makes a sink what is declared.

    Args:
        sink: The sink.
        action: `create`, `alter` (schedule, placement, what is done about changes of others), or `nothing`.
    """

    sink: str
    action: str


def steps(
    declared: Mapping[str, DeclaredSink], existing: Iterable[Sink], name_of: Callable[[str], TableName]
) -> tuple[SinkStep, ...]:
    """Return the steps that make the sinks as declared, in order.

    Args:
        declared: The sinks of `headrace.toml`.
        existing: The sinks of the catalog; those that are not declared are left alone.
        name_of: Gives a stream table's name in full.

    Raises:
        UserError: `SINK_DIFFERS` where a sink exists, but as something else.
    """
    there = {sink.name: sink for sink in existing}
    return tuple(
        SinkStep(name, _action(there[name], wanted, name_of) if name in there else "create")
        for name, wanted in declared.items()
    )


def _action(sink: Sink, wanted: DeclaredSink, name_of: Callable[[str], TableName]) -> str:
    kind = KINDS[0] if wanted.kind is None else sink_kind_of(wanted.kind)
    options = kind.options(SinkRequest(wanted.url, wanted.table, wanted.key, wanted.options))
    differing = [name for name in options if name not in kind.alterable and options[name] != sink.options.get(name)]
    if kind.name != sink.kind:
        differing.append("kind")
    if name_of(wanted.stream) != sink.stream:
        differing.append("stream table")
    if differing:
        raise UserError(
            "SINK_DIFFERS",
            f"Sink {sink.name} exists, but its {', '.join(differing)} is not what headrace.toml declares; nothing was "
            "changed.",
            hint=f"To have it as declared, drop it and apply again: `headrace sink drop {sink.name}`.",
        )
    same = all(options.get(name) == sink.options.get(name) for name in kind.alterable)
    return "nothing" if same and wanted.schedule == sink.schedule else "alter"
