"""A kind of database source that no release has: a folder of CSV files, whose first line gives names and types.

    CREATE SOURCE name FROM FOLDER '/path' TABLES (file [AS mirror], …) [DELIMITER ';']

It is small and real: it leaves a mark in the folder while it captures, follows what is written to the files, says in
its own words how it stands, warns of a folder that is to be emptied, and stops when the folder is gone.
"""

from __future__ import annotations

import csv
import datetime as dt
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.algebra.schema import Column
from headrace.errors import UserError
from headrace.lake.compare import consolidate
from headrace.names import WEIGHT, TableName
from headrace.sources.capture import Landing
from headrace.sources.source_kind import (
    Check,
    HealthLine,
    ImpendingLoss,
    Json,
    Outlook,
    ServerHealth,
    SourceRequest,
    TableChanges,
    Tables,
    differs,
)

if TYPE_CHECKING:
    from headrace.sources.source_kind import KeptSource, Told
    from headrace.sql.reader.syntax.statement_cursor import StatementCursor

MARK, DOOMED = ".captured", ".doomed"
"""Left in a folder that is captured; left by whoever is going to empty it, with the seconds until then."""


@dataclass(frozen=True)
class FolderTable:
    """A file as it is now; see `LandedTable`."""

    name: TableName
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    replaced: bool
    renamed: Mapping[str, str] = field(default_factory=dict)
    key: tuple[str, ...] | None = None
    reshaped: bool = False
    folders: tuple[str, ...] = ()

    @property
    def details(self) -> Json:
        return {"columns": [[c.name, c.type] for c in self.columns]}

    @property
    def few(self) -> bool:
        return len(self.rows) < 1000

    def rows_sql(self) -> str:
        names = ", ".join(c.name for c in self.columns)
        typed = ", ".join(f"CAST({c.name} AS {c.type}) AS {c.name}" for c in self.columns)
        listed = ", ".join("(" + ", ".join(f"'{value}'" for value in row) + ")" for row in self.rows)
        nothing = f"({', '.join('NULL' for _ in self.columns)})"
        where = "" if self.rows else " WHERE false"
        return f"SELECT {typed} FROM VALUES {listed or nothing} AS v ({names}){where}"

    def change_sql(self, before: str, *, small: bool = False) -> str:
        names = ", ".join(c.name for c in self.columns)
        old = f"SELECT {names}, -1L AS {WEIGHT} FROM {before}"
        return consolidate(f"{old} UNION ALL SELECT *, 1L FROM ({self.rows_sql()})", self.columns)


class FolderCapture:
    """See `Capture`."""

    def __init__(self, source: KeptSource) -> None:
        self._folder, self._delimiter = Path(source.options["folder"]), source.options["delimiter"]
        self._files = {m.name: source.options["files"][m.name.table] for m in source.mirrors}

    @property
    def installed(self) -> bool:
        return (self._folder / MARK).exists()

    def begin(self) -> Landing:
        (self._there() / MARK).touch()
        return self._landing({}, self._files, begins=True)

    def land(self, position: Json) -> Landing:
        self._there()
        return self._landing(position, ())

    def renew(self, position: Json, mirrors: Collection[TableName]) -> Landing:
        self._there()
        return self._landing(position, mirrors)

    def tidy(self) -> None:
        """Nothing is captured that has no mirror."""

    def acknowledge(self, position: Json) -> None:
        """The folder keeps nothing for us."""

    def remove(self) -> None:
        (self._folder / MARK).unlink(missing_ok=True)

    def clear(self) -> None:
        """There are no files of a landing."""

    def sweep(self, age: dt.timedelta | None) -> None:
        """Nor of former ones."""

    def _there(self) -> Path:
        if not self._folder.is_dir():
            raise UserError("FOLDER_GONE", f"The folder {self._folder} is gone.")
        return self._folder

    def _landing(self, position: Json, anew: Collection[TableName], *, begins: bool = False) -> Landing:
        texts = {name: (self._folder / f"{file}.csv").read_text() for name, file in self._files.items()}
        stamps = {name.table: hashlib.sha256(text.encode()).hexdigest()[:8] for name, text in texts.items()}
        changed = [name for name in texts if name in anew or position.get(name.table) != stamps[name.table]]
        tables = tuple(self._table(name, texts[name], name in anew) for name in changed)
        rows = sum(len(table.rows) for table in tables)
        return Landing(tables, stamps, stamps != dict(position), int(bool(tables)), rows, True, begins=begins)

    def _table(self, name: TableName, text: str, replaced: bool) -> FolderTable:
        first, *rows = csv.reader(text.splitlines(), delimiter=self._delimiter)
        columns = tuple(Column(name, type_) for name, _, type_ in (column.partition(":") for column in first))
        return FolderTable(name, columns, tuple(map(tuple, rows)), replaced)


class Folder:
    """See `SourceKind`."""

    name = "folder"
    create_form = "  CREATE SOURCE name FROM FOLDER '/path' TABLES (file [AS mirror], …) [DELIMITER ';']"
    add_form = "  ALTER SOURCE name ADD TABLES (file [AS mirror], …)"
    stopping = frozenset({"FOLDER_GONE"})

    def read_request(self, cursor: StatementCursor) -> SourceRequest:
        folder = cursor.string("A folder")
        cursor.need("TABLES")
        tables = cursor.texts()
        return SourceRequest(folder, tables, {"delimiter": cursor.string("It")} if cursor.take("DELIMITER") else {})

    def mirror_names(self, tables: Tables) -> tuple[str, ...]:
        return tuple(_files(tables))

    def check(self, request: SourceRequest) -> tuple[Check, ...]:
        files = {file: Path(request.address, f"{file}.csv") for file in _files(request.tables).values()}
        return tuple(
            Check(file, path.is_file(), "is there" if path.is_file() else "is missing", f"touch {path}")
            for file, path in files.items()
        )

    def options(self, name: str, request: SourceRequest) -> Json:
        if unknown := request.options.keys() - {"delimiter"}:
            raise UserError("INVALID_OPTION", f"A folder has no {', '.join(sorted(unknown))}.")
        delimiter = request.options.get("delimiter", ",")
        return {"folder": request.address, "files": _files(request.tables), "delimiter": delimiter}

    def with_tables(self, options: Json, tables: Tables, said: Json) -> Json:
        return {**options, "files": {**options["files"], **_files(tables)}}

    def without_tables(self, options: Json, mirrors: Sequence[str]) -> Json:
        return {**options, "files": {m: file for m, file in options["files"].items() if m not in mirrors}}

    def named_mirrors(self, source: KeptSource, tables: Sequence[str]) -> tuple[str, ...]:
        if strange := [name for name in tables if name not in source.options["files"]]:
            raise UserError("SOURCE_TABLE_UNKNOWN", f"Source {source.name} has no table {strange[0]}.")
        return tuple(tables)

    def changes(self, source: KeptSource, declared: SourceRequest) -> TableChanges:
        if source.options["folder"] != declared.address:
            raise differs(source.name, "its folder", "drop it and declare it anew")
        wanted, there = _files(declared.tables), source.options["files"]
        return TableChanges(tuple(m for m in wanted if m not in there), tuple(m for m in there if m not in wanted))

    def said_of(self, tables: Tables, said: Json) -> Json:
        return {}

    def address(self, options: Json) -> str:
        return str(options["folder"])

    def captured(self, source: KeptSource) -> dict[str, tuple[str, ...]]:
        """Return nothing that a sink could write to."""
        return {}

    def position_text(self, position: Json | None) -> str | None:
        return None if position is None else " ".join(f"{file}@{stamp}" for file, stamp in sorted(position.items()))

    def followed(self, source: KeptSource) -> Mapping[str, str]:
        return {}

    def open_capture(self, source: KeptSource, folder: str, told: Told, landings: int = 0) -> FolderCapture:
        return FolderCapture(source)

    def health(self, source: KeptSource, folder: str) -> ServerHealth:
        landing = FolderCapture(source).land(source.position or {})
        marked = Path(source.options["folder"], MARK).exists()
        lines = (HealthLine("Files", f"{len(landing.tables)} wait"), HealthLine("Mark", missing=not marked))
        return ServerHealth({"waiting_files": len(landing.tables), "marked": marked}, lines, self._look(source))

    def look(self, source: KeptSource, *, landed: bool) -> Json | None:
        return self._look(source)

    def outlook(self, source: KeptSource, look: Json) -> Outlook:
        loss = ImpendingLoss(source.options["folder"], None, look["seconds"], "somebody is going to empty it")
        return Outlook((look,), loss)

    def _look(self, source: KeptSource) -> dict[str, Any] | None:
        doomed = Path(source.options["folder"], DOOMED)
        return {"seconds": float(doomed.read_text())} if doomed.exists() else None


FOLDER = Folder()


def _files(tables: Tables) -> dict[str, str]:
    if isinstance(tables, Mapping):
        return dict(tables)
    named = [text.split() for text in tables]
    return {words[-1]: words[0] for words in named}
