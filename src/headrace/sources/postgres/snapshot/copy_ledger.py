"""Records the parts of a first snapshot already copied, so that it can be resumed.

Every attempt writes to a folder of its own (`spool.py`): what it is the beginning of, and a mark for every part that is
whole. Who goes on takes those parts over into his own folder, so that an attempt that was only suspended, and wakes,
writes what nobody reads. Why parts of an earlier attempt are still right is told in `continuing.py`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.names import TableName
from headrace.sources.capture import Json
from headrace.sources.postgres.remote_tables import RemoteTable, from_json, to_json
from headrace.sources.postgres.spool.spool import Spool

_BEGUN, _DONE = "_begun.json", "_done"

Range = tuple[int | None, int | None]
"""The first page of a part, and the page after its last; None for the table's own ends."""


@dataclass(frozen=True, slots=True)
class _Whole:
    """A part that was copied: its file (None without rows), and how many rows."""

    file: str | None
    rows: int


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An earlier process's folder, its cuts of tables, and its complete parts."""

    folder: str
    cuts: Mapping[str, Json]
    whole: Mapping[tuple[str, Range], _Whole]


class Ledger:
    """Records one attempt at a first snapshot, and reads those before it.

    Args:
        spool: Where this attempt writes.
        mark: What the snapshot is the beginning of: parts of attempts with the same mark are taken over, no others.
    """

    def __init__(self, spool: Spool, mark: Json) -> None:
        self._spool = spool
        self.mark = _plain(mark)
        read = [self._read(folder) for folder in spool.markers.others()]
        self._former = tuple(attempt for attempt in read if attempt is not None)
        self._refused: set[str] = set()

    @property
    def continues(self) -> bool:
        """Return whether there was an attempt before this one."""
        return bool(self._former)

    def table(self, name: TableName) -> RemoteTable | None:
        """Return a table as it was when the last attempt began; None where there was none."""
        cuts = [attempt.cuts[name.table] for attempt in self._former if name.table in attempt.cuts]
        return from_json(cuts[-1]["table"]) if cuts else None

    def refuse(self, mirrors: Collection[TableName]) -> None:
        """Discard earlier copies of some tables."""
        self._refused |= {name.table for name in mirrors}

    def cut(self, name: TableName, table: RemoteTable) -> tuple[Range, ...] | None:
        """Return how a table was cut.

        None where no part of it is whole, or it is no longer the table that it was.
        """
        if name.table in self._refused:
            return None
        now = _plain(to_json(table))
        for attempt in self._former:
            cut = attempt.cuts.get(name.table)
            if cut is not None and cut["table"] == now and any(at[0] == name.table for at in attempt.whole):
                return tuple((first, end) for first, end in cut["parts"])
        return None

    def begin(
        self,
        tables: Mapping[TableName, RemoteTable],
        parts: Sequence[tuple[TableName, Range]],
        folders: Mapping[TableName, str],
    ) -> dict[int, int]:
        """Write down what is copied, and take over the parts that are whole.

        Args:
            tables: The tables.
            parts: Their parts, in order.
            folders: Names of the tables' folders in the spool.

        Returns:
            The numbers of the parts that are there, with how many rows they have.
        """
        cuts = {
            name.table: {"table": to_json(table), "parts": [of for mirror, of in parts if mirror == name]}
            for name, table in tables.items()
        }
        self._spool.markers.write(_BEGUN, {"mark": self.mark, "tables": cuts})
        taken: dict[int, int] = {}
        for name, table in tables.items():
            if self.cut(name, table) is not None:
                whole = self._whole(name, _plain(cuts[name.table]))
                for number, (mirror, of) in enumerate(parts):
                    if mirror == name and of in whole:
                        taken[number] = self._take(number, name, of, folders[name], whole[of])
        for attempt in self._former:
            self._spool.discard(attempt.folder)
        return taken

    def done(self, number: int, name: TableName, of: Range, folder: str, rows: int) -> None:
        """Mark a part of a table as copied.

        Args:
            number: The part's number, which names its file.
            name: The mirror.
            of: The part's pages.
            folder: Where its file is.
            rows: How many rows it has; without any there is no file.
        """
        file = f"{folder}/{number}.parquet" if rows else None
        if file is not None:
            self._spool.markers.settle(file)
        self._spool.markers.write(
            f"{_DONE}/{number}.json", {"mirror": name.table, "part": of, "rows": rows, "file": file}
        )

    def _take(self, number: int, name: TableName, of: Range, folder: str, part: _Whole) -> int:
        if part.file is not None:
            self._spool.markers.take(part.file, f"{folder}/{number}.parquet")
        self.done(number, name, of, folder, part.rows)
        return part.rows

    def _whole(self, name: TableName, cut: Json) -> dict[Range, _Whole]:
        return {
            at[1]: part
            for attempt in self._former
            if attempt.cuts.get(name.table) == cut
            for at, part in attempt.whole.items()
            if at[0] == name.table
        }

    def _read(self, folder: str) -> _Attempt | None:
        begun = self._spool.markers.read(f"{folder}/{_BEGUN}")
        if begun is None or begun["mark"] != self.mark:
            return None
        whole: dict[tuple[str, Range], _Whole] = {}
        for path in self._spool.markers.listed(f"{folder}/{_DONE}"):
            if (part := self._spool.markers.read(path)) is not None:
                file = None if part["file"] is None else f"{folder}/{part['file']}"
                if file is None or self._spool.markers.there(file):  # else a later attempt has taken it
                    first, end = part["part"]
                    whole[part["mirror"], (first, end)] = _Whole(file, part["rows"])
        return _Attempt(folder, begun["tables"], whole)


def _plain(value: Json) -> Any:
    """Return a value as it comes back from JSON."""
    return json.loads(json.dumps(value))
