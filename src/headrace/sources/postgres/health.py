"""Looking at a server without changing anything."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.sources.postgres import preflight
from headrace.sources.postgres.connection import connected
from headrace.sources.postgres.narrowing import Part
from headrace.sources.postgres.preflight import Check
from headrace.sources.postgres.server import server
from headrace.sources.postgres.slots import Slot, find_slot


@dataclass(frozen=True, slots=True)
class Health:
    """How a source stands at its server.

    Args:
        lag: Bytes of write-ahead log since what is landed; None before the first landing.
        slot: Its slot; None when there is none.
    """

    lag: int | None
    slot: Slot | None


def health(options: Mapping[str, Any], position: Mapping[str, Any] | None) -> Health:
    """How a source stands.

    Raises:
        EnvironmentFault: `SOURCE_UNREACHABLE`.
    """
    with connected(options["url"]) as connection:
        now = server(connection)
        slot = find_slot(connection, options["slot"])
    return Health(None if position is None else max(0, now.position - position["lsn"]), slot)


def check(
    url: str,
    names: Sequence[tuple[str, str]],
    as_text: Collection[str] = (),
    parts: Mapping[tuple[str, str], Part] | None = None,
) -> tuple[Check, ...]:
    """What must be so to capture tables, and whether it is.

    Raises:
        EnvironmentFault: `SOURCE_UNREACHABLE`.
    """
    with connected(url) as connection:
        return preflight.check(connection, names, as_text, parts=parts)[0]
