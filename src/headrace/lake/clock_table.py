"""The clock as a table that nobody stores, for moving filters to read.

Its snapshots are moments, by their microseconds since 1970 UTC.
Each moment that a refresh reads becomes a version of it in the catalog, as a commit of a table does.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping

from headrace.algebra.schema import Column
from headrace.lake.metadata import Snapshot, TableMeta
from headrace.names import CLOCK_COLUMN, WEIGHT, quote

CLOCK_COLUMNS = (Column(CLOCK_COLUMN, "timestamp"),)


class _Moments(Mapping[int, Snapshot]):
    """Every moment is a snapshot, and none expires."""

    def __getitem__(self, moment: int) -> Snapshot:
        return Snapshot(moment, None, 0, "overwrite", moment // 1000, 0, {"total-records": "1"})

    def __iter__(self) -> Iterator[int]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __contains__(self, moment: object) -> bool:
        return isinstance(moment, int)


def clock_meta(moment: int) -> TableMeta:
    """Return the clock at a moment."""
    return TableMeta("", "clock", "", 3, moment, _Moments(), {0: CLOCK_COLUMNS}, {0: (1,)}, 0, {})


def moment_of(time: dt.datetime) -> int:
    """Return the moment of a time."""
    return (time - _EPOCH) // dt.timedelta(microseconds=1)


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def clock_sql(moment: int | None) -> str:
    """Return the clock's one row at a moment."""
    return f"(SELECT {_time(moment)} AS {CLOCK_COLUMN})"


def clock_change_sql(before: int | None, after: int | None) -> str:
    """Return the change of the clock between two moments."""
    rows = f"({_time(before)}, -1L), ({_time(after)}, 1L)"
    return f"SELECT * FROM VALUES {rows} AS clock({CLOCK_COLUMN}, {quote(WEIGHT)})"


def _time(moment: int | None) -> str:
    return "CAST(NULL AS TIMESTAMP_LTZ)" if moment is None else f"timestamp_micros({moment}L)"
