"""Who refreshed which table when, from the events that processes wrote down as lines of JSON."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

Span = tuple[str, float, float]
"""A table, and the times from which to which it was being refreshed."""


def check_that_nobody_was_in_anothers_way(logs: Iterable[Path]) -> int:
    """From the start of a refresh to its end, or to the last that is known of it, nobody else is at that table.

    Returns:
        How many refreshes there were.
    """
    by_table: dict[str, list[tuple[float, float]]] = {}
    for log in logs:
        for table, begun, ended in spans(lines(log)):
            by_table.setdefault(table, []).append((begun, ended))
    for table, own in by_table.items():
        own.sort()
        for (_, ended), (begun, _) in itertools.pairwise(own):
            assert begun >= ended, f"{table} was refreshed by two at once"
    return sum(map(len, by_table.values()))


def lines(log: Path) -> Iterator[dict[str, Any]]:
    """The events of a log."""
    for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else ():
        with suppress(json.JSONDecodeError):  # the last line of one that was killed
            yield json.loads(line)


def spans(events: Iterable[dict[str, Any]]) -> Iterator[Span]:
    """The refreshes that a process tells of."""
    under_way: dict[str, list[float]] = {}
    for told in events:
        table, event, at = told.get("table", ""), told["event"], told["at"]
        if event == "refresh_started":
            if table in under_way:  # the one before was in a group of which another member failed
                yield (table, *under_way[table])
            under_way[table] = [at, at]
        elif event in ("stage_started", "stage_finished") and table in under_way:
            under_way[table][1] = at
        elif event == "refresh_finished" and table in under_way:
            yield table, under_way.pop(table)[0], at
        elif event == "refresh_failed" and table in under_way:  # told after its lease was given back
            yield (table, *under_way.pop(table))
    for table, (begun, seen) in under_way.items():
        yield table, begun, seen
