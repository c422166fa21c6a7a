"""Keeps plain SQL away from what Headrace writes, and repairs what others did to it."""

from __future__ import annotations

from typing import overload

from headrace.api.own_tables import Owner, owners_of, refuse_own_tables
from headrace.api.project_handle import Names, ProjectHandle
from headrace.catalog import ForeignWrite, resource_of
from headrace.errors import EnvironmentFault, UserError
from headrace.graph.dag import Dag
from headrace.names import LAKE, TableName, qualify
from headrace.results.repair_results import RepairResult

PATIENCE = 60.0
"""Seconds that a repair waits for whoever refreshes the table."""

DAMAGE = frozenset({"FOREIGN_WRITER", "STORED_TABLE_DROPPED"})
"""Failures that a repair ends."""


class RepairVerbs(ProjectHandle):
    """Verbs about tables that others have changed."""

    @overload
    def repair(self, names: str) -> RepairResult: ...
    @overload
    def repair(self, names: Names | None = ...) -> tuple[RepairResult, ...]: ...
    def repair(self, names: str | Names | None = None) -> RepairResult | tuple[RepairResult, ...]:
        """Bring back stream tables and mirrors that other programs dropped, wrote or rolled back.

        What Headrace had published is shown again: rows, versions and change log, so that readers notice nothing. Where
        its files are gone, whoever took them, a stream table is made anew from its sources and a mirror is copied
        anew from its database, and their readers compute anew.

        Args:
            names: One, several, or (None) all that are damaged, as pointers and metadata files show it. Of those
                that are named, all files are looked for.

        Returns:
            What was done, by table; sources before their readers.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`.
            EnvironmentFault: `FOREIGN_WRITER` for a mirror of which files are gone where the lake is in another
                server; `METADATA_UNREADABLE` where nothing of the lake can be read.
            HeadraceError: Making a table anew failed. It stays damaged, and repairing it again goes on. A mirror is
                left as it is while its source is on hold (`SOURCE_NOT_ACTIVE`) or out of reach (`SOURCE_UNREACHABLE`).
        """
        from headrace.refresh.repair import lost_unchanged

        owners = owners_of(self._catalog)
        whole = {owner.name: owner for owner in owners.values()}
        damaged = {owners[w.name].name for w in self._catalog.foreign_writes() if w.name in owners}
        if names is None:
            damaged |= {owners[name].name for name in lost_unchanged(self._catalog, owners, whole=False)}
        wanted = list(damaged) if names is None else self._names([names] if isinstance(names, str) else names)
        for name in wanted:
            if name not in whole:
                self._catalog.stream_table(name)
        order = Dag({**dict.fromkeys(wanted, ()), **self._catalog.dependencies()}).order(wanted)
        results = tuple(self._repair(whole[name], owners) for name in order)
        return results[0] if isinstance(names, str) else results

    def _repair(self, owner: Owner, owners: dict[TableName, Owner]) -> RepairResult:
        from headrace.landing.source_leases import resources_of
        from headrace.refresh.held_leases import holding_leases
        from headrace.refresh.repair import lost_files, lost_unchanged, restore

        stored = [name for name, of in owners.items() if of.name == owner.name]
        resources = [resource_of(owner.name)]
        if owner.source is not None:
            with self._catalog.reading() as reader:
                resources = resources_of(reader.source(owner.source))
        with holding_leases(self._catalog, resources, patience=PATIENCE) as leases:
            restored = restore(self._catalog, stored, leases)
            unchanged = set(stored) - {write.name for write in restored.back}
            lost = {**lost_unchanged(self._catalog, unchanged, whole=True), **restored.lost}
            if lost and owner.source is not None:
                self.sources._lander().refuse_anew(owner.source, owner.name)
            anew = stored if owner.source is not None else lost  # a mirror and its log are made together
            self._catalog.reset_staging(stored, held=leases())
            withdrawn = bool(lost) and self._catalog.withdraw_pointers(anew, held=leases())
        if lost and owner.source is None:
            self._engine().creator.rebuild(owner.name)
        elif lost and withdrawn and owner.source is not None:
            self.sources._lander(PATIENCE).make_anew(owner.source, owner.name)
        elif lost:
            fault = lost_files(lost)
            hint = f"Drop source {owner.source} and create it again: its database has the rows."
            raise EnvironmentFault(fault.code, fault.message, detail=fault.detail, hint=hint)
        if restored.back or lost:
            self._end_failures()
        name = str(owner.name)
        if lost:
            missing = next(iter(lost.values()))
            return RepairResult(name, "made anew", f"files that had been published are gone, such as {missing}")
        if restored.back:
            return RepairResult(name, "restored", "; ".join(_undone(write) for write in restored.back))
        return RepairResult(name, "intact", "it is what was published, and all its files are there")

    def _end_failures(self) -> None:
        """Have schedules try again what failed because of damage; pauses stay.

        That is the table, what is published together with it, and what reads it. What is damaged otherwise fails again.
        """
        states = self._catalog.scheduling_states()
        self._catalog.unpause([], [name for name, state in states.items() if state.error_code in DAMAGE])

    def refuse_own_tables(self, sql: str, script: str, start: int) -> None:
        """Refuse a Spark statement that changes what Headrace writes.

        Looks into the catalog only where the statement changes a table at all; starts no Spark.

        Args:
            sql: The statement.
            script: The script it stands in; the error names the place in it.
            start: Where the statement begins in it.

        Raises:
            UserError: `MANAGED_TABLE`, with the statement that is meant.
        """
        from headrace.sql.write_targets import write_targets

        if targets := write_targets(sql):
            refuse_own_tables(targets, owners_of(self._catalog), self._full_name, script, start)

    def _full_name(self, parts: tuple[str, ...]) -> TableName | None:
        """Return a written name in full; None for a bare one in another catalog than `lake`."""
        namespace, catalogs = self._lazy.namespace(), self._lazy.catalogs()
        elsewhere = self._lazy.started and self.spark.catalog.currentCatalog() != LAKE
        if elsewhere and parts[0] not in catalogs:
            return None
        try:
            return qualify(parts, namespace, catalogs)
        except UserError:
            return None


def _undone(write: ForeignWrite) -> str:
    left = "" if write.found is None else f" (what they left: {write.found})"
    return f"{write.name} {write.what}{left}"
