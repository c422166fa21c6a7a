"""Writes one mirror for a landing: columns, rows, then change log; all in `staging`."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from headrace.algebra.schema import Column
from headrace.algebra.types import in_sql
from headrace.catalog import Mirror
from headrace.errors import EnvironmentFault, UserError
from headrace.lake.apply_change import (
    SMALL_STATE_CELLS,
    Change,
    Target,
    change_for,
    commits,
    measures_for,
    plan_apply,
    run_apply,
)
from headrace.lake.metadata import TableMeta
from headrace.lake.tables import OPERATION, VERSION
from headrace.landing.operation_ids import OperationIds
from headrace.landing.shared_keys import require_unique
from headrace.landing.spooled_files import readable
from headrace.names import STAGING, WEIGHT, TableName, quote
from headrace.ports import Runner
from headrace.refresh.staging_tables import only_ours, somebody_elses
from headrace.sources.capture import LandedTable, SharedKey
from headrace.sources.lakehouse.changes_sql import appended_sql, rows_sql

UNFIT = frozenset({"VALUE_ERROR", "ARITHMETIC_ERROR"})
"""Codes of Spark's errors for texts that are no values of a column's type."""

Staged = Callable[[TableName], TableMeta]
"""The metadata that a stored table has in `staging` now."""

Hand = Callable[[TableMeta, str, tuple[Column, ...]], None]
"""Hands a change to consumers: the change log that has it, the query of its rows, its columns without the weight."""


@dataclass(slots=True)
class Moved:
    """The outcome of writing a mirror.

    Args:
        written: Its stored tables that were written, by `lake` name, with their metadata.
        changed: Whether its rows (or columns) are others, so that it has a new version.
        inserted: Rows that appeared.
        deleted: Rows that disappeared.
        commits: Snapshots that the state has gained, at the most.
        operation: The highest operation id of its rows.
        key: Field ids of columns in which no two of its rows agree, as far as is known.
        made: Whether its stored tables were made for it.
    """

    written: Mapping[TableName, TableMeta] = field(default_factory=dict)
    changed: bool = False
    inserted: int = 0
    deleted: int = 0
    commits: int = 0
    operation: int = 0
    key: frozenset[int] = frozenset()
    made: bool = False


@dataclass(frozen=True, slots=True)
class Mirroring:
    """Brings one mirror to a landing.

    Args:
        mirror: The mirror.
        version: The version that it reaches if it changes.
        runner: Runs SQL, in ANSI mode and UTC.
        staged: Finds metadata.
        before: Its stored tables as they are before, which is as `lake` shows them where it does.
        ids: The operation ids of the rows of its change log.
        hand: Hands the change to consumers, if it is a single one of few rows; None where there are none.
        shared: A key that must hold over the rows of several nodes; None where each node sees to its own.
        made: Whether its stored tables were made for this landing, and are empty.
    """

    mirror: Mirror
    version: int
    runner: Runner
    staged: Staged
    before: Mapping[TableName, TableMeta]
    ids: OperationIds
    hand: Hand | None = None
    shared: SharedKey | None = None
    made: bool = False

    def bring(self, parts: Sequence[LandedTable]) -> Moved:
        """Apply the mirror's parts of a landing, one after the other.

        Raises:
            EnvironmentFault: `VALUE_NOT_REPRESENTABLE`, or another error of Spark's; nothing must be published then.
        """
        moved = Moved(key=_ids(self.before[self.mirror.name], self.mirror.key), made=self.made)
        try:
            for landed in parts:
                with readable(self.runner, landed.folders):
                    self._part(landed, moved, whole=len(parts) == 1)
        except UserError as error:
            if error.code not in UNFIT:
                raise
            raise EnvironmentFault(
                "VALUE_NOT_REPRESENTABLE",
                f"A value cannot be held by the mirror {self.mirror.name}; nothing was landed.",
                detail=error.message,
                hint="Correct the value and take its table anew: headrace source resnapshot "
                f"{self.mirror.name.namespace[-1]} -t {self.mirror.name.table}. Or create the source again "
                "with its column among TEXT COLUMNS (…).",
            ) from error
        self._require_unique(moved.changed)
        if moved.changed:
            moved.written = {t: self.staged(t) for t in self.mirror.stored}
            for table, most in zip(self.mirror.stored, (moved.commits, len(parts)), strict=True):
                only_ours(table, self.before[table], moved.written[table], most)
        return moved

    def _require_unique(self, changed: bool) -> None:
        """Refuse one key on two nodes, of added rows, or of all where it was no key before."""
        if self.shared is None:
            return
        former = _ids(self.before[self.mirror.name], self.mirror.key)
        held = bool(former) and former <= _ids(self.staged(self.mirror.name), self.shared.columns)
        if changed or not held:
            require_unique(self.mirror, self.shared, self.runner, self.staged, self.before, whole=not held)

    def _part(self, landed: LandedTable, moved: Moved, *, whole: bool) -> None:
        name, before = self.mirror.name, self.staged(self.mirror.name)
        if landed.replaced or landed.reshaped:
            for statement in evolution(landed, before):
                moved.changed = True
                for stored in self.mirror.stored:
                    self.runner.run(f"ALTER TABLE {stored.within(STAGING).sql} {statement}")
            before = self.staged(name) if moved.changed else before
        keyed = self._known_by(landed, before, moved)
        if landed.replaced and (self.version == 0 or self.made):
            listed = _listed(landed.columns)
            self.runner.run(f"INSERT INTO {name.within(STAGING).sql} ({listed}) {landed.rows_sql()}")
            moved.changed, moved.inserted = True, self.staged(name).row_count or 0
            self.ids.gave(moved.inserted)
            moved.commits += 1
            return
        self._apply(landed, keyed, before, moved, whole=whole)

    @staticmethod
    def _known_by(landed: LandedTable, before: TableMeta, moved: Moved) -> tuple[str, ...] | None:
        """Find the columns that identify the mirror's rows before a part; None for a bag.

        A table may have got another key, by which the rows that it had need not differ. Columns that no two rows agree
        in identify them together with others, too.
        """
        if not (landed.replaced or landed.reshaped):
            return landed.key
        key = _ids(before, landed.key or ())
        holds = bool(moved.key) and moved.key <= key
        moved.key = key if holds else frozenset()  # else rows of other nodes, which come later, may still agree in it
        return landed.key if holds else None

    def _apply(
        self, landed: LandedTable, key: tuple[str, ...] | None, before: TableMeta, moved: Moved, *, whole: bool
    ) -> None:
        view, columns = f"__hr_{uuid.uuid4().hex[:8]}_landing", before.columns
        name = self.mirror.name
        rebuild = f"headrace source resnapshot {name.namespace[-1]}"
        target = Target(name.within(STAGING), columns, key, before.row_count, rebuild=rebuild, apart=key is None)
        query = landed.change_sql(self._rows(before), small=_is_small(before, target))
        if not landed.few:
            self._apply_logged(query, view, target, moved)
            return
        try:
            measured = self.runner.materialize(view, query, measures_for(target), local=True)
            change = change_for(target, view, measured)
            if not change.rows:
                return
            with ThreadPoolExecutor(1, thread_name_prefix="headrace-log") as pool:  # most of a commit is waiting
                logging = pool.submit(self._log, view, columns, change.rows, known=whole)
                self._changed(target, change, moved)
                logging.result()
        finally:
            self.runner.release(view)
        _count(moved, change)

    def _apply_logged(self, query: str, view: str, target: Target, moved: Moved) -> None:
        """Write a change to the log, then apply it from there, so it is computed once."""
        log, listed = self.mirror.log, _listed(target.columns)
        self._number_log()
        former = self.staged(log).current_snapshot_id
        shown = f"{listed}, CAST({WEIGHT} AS BIGINT) AS {WEIGHT}, CAST({self.version} AS BIGINT) AS {VERSION}"
        shown += f", {self.ids.many()} AS {OPERATION}"
        wanted = {**measures_for(target), OPERATION: f"max({OPERATION})"}
        measured = self.runner.append(log.within(STAGING), f"SELECT {shown} FROM ({query})", wanted)
        self.ids.gave_up_to(measured[OPERATION])
        change = change_for(target, view, measured)
        if not change.rows:
            return
        appended = appended_sql(log.within(STAGING), former, self.staged(log))
        try:
            self.runner.view(view, f"SELECT {listed}, {WEIGHT} FROM {appended}")
            self._changed(target, change, moved)
        finally:
            self.runner.release(view)
        _count(moved, change)

    def _changed(self, target: Target, change: Change, moved: Moved) -> None:
        plan = plan_apply(target, change)
        moved.commits += commits(plan)
        name = self.mirror.name
        with somebody_elses(name, self.before[name], lambda: self.staged(name), moved.commits):
            run_apply(plan, self.runner, lambda: self.staged(name))

    def _number_log(self) -> None:
        """Give a log of a former version the column of operation ids; its rows have none."""
        log = self.mirror.log
        if all(c.name != OPERATION for c in self.staged(log).columns):
            self.runner.run(f"ALTER TABLE {log.within(STAGING).sql} ADD COLUMN {OPERATION} BIGINT")

    def _log(self, view: str, columns: tuple[Column, ...], count: int, *, known: bool) -> None:
        """Write a change to the log; one whose rows are known is handed to consumers."""
        rows, log = f"{_listed(columns)}, CAST({WEIGHT} AS BIGINT)", self.mirror.log
        self._number_log()
        into = f"{log.within(STAGING).sql} ({_listed(columns)}, {WEIGHT}, {VERSION}, {OPERATION})"
        numbers = f"CAST({self.version} AS BIGINT), {self.ids.few()}"
        whole = f"SELECT /*+ COALESCE(1) */ * FROM {quote(view)}"
        self.runner.run(f"INSERT INTO {into} SELECT {rows}, {numbers} FROM ({whole})")
        self.ids.gave(count)
        if known and self.hand is not None:
            self.hand(self.staged(log), f"SELECT {rows} AS {WEIGHT} FROM {quote(view)}", columns)

    def _rows(self, before: TableMeta) -> str:
        """Return the mirror's rows before a part.

        Those that are published are read through `lake`: what Spark keeps is dropped when a table that it was computed
        from is written, and `staging` is written. Only the later parts of a landing find rows that are not.
        """
        name, snapshot = self.mirror.name, before.current_snapshot_id
        published = snapshot is None or snapshot in self.before[name].snapshots
        return rows_sql(name if published else name.within(STAGING), before, snapshot)


def _count(moved: Moved, change: Change) -> None:
    moved.changed = True
    moved.inserted, moved.deleted = moved.inserted + change.inserted, moved.deleted + change.deleted


def _is_small(before: TableMeta, target: Target) -> bool:
    """Return whether a mirror is so small that it is rewritten whole."""
    return before.row_count is not None and before.row_count * len(target.columns) <= SMALL_STATE_CELLS


def _ids(meta: TableMeta, names: Sequence[str]) -> frozenset[int]:
    return frozenset(meta.ids_of(names))


def _listed(columns: Sequence[Column]) -> str:
    return ", ".join(quote(c.name) for c in columns)


def evolution(landed: LandedTable, meta: TableMeta) -> tuple[str, ...]:
    """Return the ALTER TABLE clauses that give a mirror and its log their new columns.

    A column of another type is another column: whoever reads it is stopped, and nobody else notices.
    """
    has = {c.name: c.type for c in meta.columns}
    statements = []
    for old, new in landed.renamed.items():
        if old in has and new not in has:
            statements.append(f"RENAME COLUMN {quote(old)} TO {quote(new)}")
            has[new] = has.pop(old)
    wanted = {c.name: c.type for c in landed.columns}
    dropped = [name for name, type_ in has.items() if wanted.get(name) != type_]
    added = [c for c in landed.columns if has.get(c.name) != c.type]
    statements += [f"DROP COLUMN {quote(name)}" for name in dropped]
    statements += [f"ADD COLUMN {quote(c.name)} {in_sql(c.type)}" for c in added]
    return tuple(statements)
