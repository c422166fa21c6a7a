"""Gives members of a group new definitions: a user's, or where old ones no longer hold.

Nothing of it is visible: stored tables are made in `staging`, and the definitions are published with the contents that
the group's refresh computes. A member that reads another one is defined over what that one becomes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from headrace.catalog import Catalog, StreamTable, resource_of
from headrace.definitions.compiled_views import CompiledViews
from headrace.definitions.details import Details, from_json
from headrace.definitions.function_versions import refuse_missing
from headrace.errors import EnvironmentFault, HeadraceError, Unsupported
from headrace.lake.tables import new_suffix, stored_names
from headrace.names import LAKE, TableName
from headrace.ports import Session
from headrace.reasons import FullReason
from headrace.refresh.cut.cut import Cut
from headrace.refresh.definition.define import sources_of
from headrace.refresh.definition.outdated import Outdated
from headrace.refresh.definition.redefinition import Redefinition
from headrace.refresh.definition.source_keys import SourceKeys
from headrace.refresh.definition.stored_tables import StoredTables
from headrace.refresh.definition.table_spec import TableSpec, definition_of, needs_companion, spec_of
from headrace.refresh.fuses.fuse import Resolution, not_skippable
from headrace.refresh.groups.cycle_rules import as_member, check_cycle, in_cycle, parts
from headrace.refresh.held_leases import Held, holding_leases
from headrace.results.refresh_results import RefreshMode, RefusalInfo


@dataclass(frozen=True, slots=True)
class Given:
    """A new definition that a user gave.

    Args:
        spec: What the user asked for.
        details: What was found out about the query.
        generation: Of the definition that it replaces.
    """

    spec: TableSpec
    details: Details
    generation: int


NONE_GIVEN: Mapping[TableName, Given] = {}

NONE_BESIDE: Mapping[TableName, Details] = {}


@dataclass(frozen=True, slots=True)
class _New:
    spec: TableSpec
    details: Details
    reason: FullReason = FullReason.DEFINITION_CHANGED
    by_user: bool = False


class Redefiner:
    """Defines stream tables again.

    Args:
        catalog: The catalog.
        session: The user's session.
        plans: Compiled views.
        outdated: Tells which definitions do not hold any more.
        tables: Makes stored tables.
    """

    def __init__(
        self, catalog: Catalog, session: Session, plans: CompiledViews, outdated: Outdated, tables: StoredTables
    ) -> None:
        self.catalog = catalog
        self.session = session
        self.plans = plans
        self.outdated = outdated
        self.tables = tables

    def needed(self, names: Sequence[TableName], heads: Cut, beside: Mapping[TableName, Details] = NONE_BESIDE) -> bool:
        """Return whether a definition among some stream tables does not hold any more.

        Args:
            names: The stream tables.
            heads: The cut.
            beside: New definitions of others that are published along.
        """
        keys = SourceKeys(self.catalog, beside)
        known = {t.name: t for t in self.catalog.stream_tables()}
        tables = {name: known.get(name) or self.catalog.stream_table(name) for name in names}
        for part in parts(names, tables):
            if in_cycle(part, tables):
                if self._is_old_cycle([from_json(tables[name].details) for name in part], keys, heads):
                    return True
            elif self._is_outdated(table := tables[part[0]], keys, heads) or self.outdated.has_lost_columns(
                table, heads, beside
            ):
                return True
        return False

    def redefine(
        self,
        names: Sequence[TableName],
        heads: Cut,
        given: Mapping[TableName, Given],
        resolved: Mapping[TableName, Resolution],
        leases: Held,
        trying: Callable[[TableName], None],
        beside: Mapping[TableName, Details] = NONE_BESIDE,
    ) -> dict[TableName, Redefinition]:
        """Make the new definitions of stream tables, and their stored tables in `staging`.

        Args:
            names: The stream tables, all that are published together.
            heads: The cut.
            given: New definitions that a user gave.
            resolved: What was decided about changes that are too large.
            leases: Leases of the caller, on all of them.
            trying: Told of each part before it is defined.
            beside: New definitions of others that are published along, and whose rows are in `staging`.

        Raises:
            HeadraceError: What is wrong with one; then nothing of it is left.
        """
        tables = {name: self.catalog.stream_table(name) for name in names}
        _refuse_overtaken(tables, given)
        reading = {n: replace(t, sources=sources_of(given[n].details)) if n in given else t for n, t in tables.items()}
        made: dict[TableName, Redefinition] = {}
        new = dict(beside)
        own: dict[TableName, Collection[TableName]] = {}
        written: list[TableName] = []
        try:
            for part in parts(names, reading):
                trying(part[0])
                for name, found in self._new(part, reading, heads, new, given, resolved).items():
                    made[name] = self._made(tables[name], found, written)
                    own[name] = part
                new |= {name: from_json(made[name].definition.details) for name in part if name in made}
            read = {n: [s for s in sources_of(new[n]) if s not in own[n]] for n in made}
            return self._logged(made, [source for sources in read.values() for source in sources], names, written)
        except BaseException:
            with suppress(HeadraceError):  # whoever refreshes these tables next puts them back first
                self.catalog.reset_staging(written, held=leases())
            raise

    # ---- what is new

    def _new(
        self,
        part: Sequence[TableName],
        tables: Mapping[TableName, StreamTable],
        heads: Cut,
        new: Mapping[TableName, Details],
        given: Mapping[TableName, Given],
        resolved: Mapping[TableName, Resolution],
    ) -> dict[TableName, _New]:
        """Return what is to be defined anew of a single table or a cycle."""
        if in_cycle(part, tables):
            return self._new_cycle(part, tables, heads, new, given, resolved)
        (name,) = part
        if name in given:
            return {name: _New(given[name].spec, given[name].details, by_user=True)}
        table = tables[name]
        if self._is_outdated(table, SourceKeys(self.catalog, new), heads):
            refuse_missing(name, from_json(table.details), self.session)
            reason = self.outdated.reason(table)
            _refuse_skipping(name, resolved, reason)
            return {name: _New(spec_of(table), self.outdated.defined_again(table, new), reason)}
        if (details := self.outdated.without_lost_columns(table, heads, new)) is not None:
            _refuse_skipping(name, resolved, FullReason.SCHEMA_CHANGED)
            return {name: _New(spec_of(table), details, FullReason.SCHEMA_CHANGED)}
        return {}

    def _new_cycle(
        self,
        part: Sequence[TableName],
        tables: Mapping[TableName, StreamTable],
        heads: Cut,
        new: Mapping[TableName, Details],
        given: Mapping[TableName, Given],
        resolved: Mapping[TableName, Resolution],
    ) -> dict[TableName, _New]:
        """Return new definitions of all members of a cycle, if one of them needs it."""
        keys, by_user = SourceKeys(self.catalog, new), not given.keys().isdisjoint(part)
        known = {name: from_json(tables[name].details) for name in part}
        if not by_user and not self._is_old_cycle(list(known.values()), keys, heads):
            return {}
        details = known | {name: given[name].details for name in part if name in given}
        for name in part if not by_user else ():
            refuse_missing(name, known[name], self.session)
            _refuse_skipping(name, resolved, FullReason.DEFINITION_CHANGED)
            if self._is_old(known[name], keys, heads):
                details[name] = self.outdated.defined_again(tables[name], new)
        details = {name: as_member(each) for name, each in details.items()}
        check_cycle(details, {n: self.plans.view(n, d) if d.incremental else None for n, d in details.items()})
        specs = {name: given[name].spec if name in given else spec_of(tables[name]) for name in part}
        return {name: _New(specs[name], details[name], by_user=by_user) for name in part}

    def _is_old_cycle(self, members: Sequence[Details], keys: SourceKeys, heads: Cut) -> bool:
        return any(not each.cyclic or self._is_old(each, keys, heads) for each in members)

    def _is_old(self, details: Details, keys: SourceKeys, heads: Cut) -> bool:
        return self.outdated.is_old(details, keys) or self.outdated.reads_new_views(details, heads)

    def _is_outdated(self, table: StreamTable, keys: SourceKeys, heads: Cut) -> bool:
        return self.outdated(table, keys) or self.outdated.reads_new_views(from_json(table.details), heads)

    # ---- what it is stored in

    def _made(self, table: StreamTable, new: _New, written: list[TableName]) -> Redefinition:
        """Make the stored tables that a new definition needs; those that fit it are kept.

        Args:
            table: The stream table as it is.
            new: The new definition.
            written: Receives what may have been made, in `lake`.

        Raises:
            Unsupported: `NOT_MAINTAINABLE` where it is to be DIFFERENTIAL and cannot be any more.
        """
        spec, details, suffix = new.spec, new.details, new_suffix()
        if spec.refresh_mode is RefreshMode.DIFFERENTIAL and details.refusals:
            raise _not_maintainable(spec.name, details.refusals[0])
        names, old = stored_names(spec.name, suffix), from_json(table.details)
        kept = [stored for stored in (spec.name, table.log) if stored is not None]
        # what others changed and could not be restored is lost, and so is the difference that readers would need
        there = spec.name in self.catalog.pointers(LAKE, [spec.name]) and not self.catalog.foreign_writes(kept)
        same = there and [(c.name, c.type) for c in old.output] == [(c.name, c.type) for c in details.output]
        companion = log = None
        written += [spec.name, names.companion.within(LAKE), names.log.within(LAKE)]
        if details.companion is not None and needs_companion(details, spec.refresh_mode):
            self.tables.make(names.companion, details.companion, suffix)
            companion = names.companion.within(LAKE)
        if not same:
            self.tables.make_again(names.state, details.output, suffix)
        if table.log is not None:
            log = table.log if same else names.log.within(LAKE)
        if log is not None and not same:
            self.tables.make_log(spec.name, details.output, suffix)
        gone = tuple(t for t in table.stored if t not in (spec.name, companion, log))
        definition = definition_of(spec, details, companion, log)
        return Redefinition(definition, new.reason, gone, remade=not same, by_user=new.by_user)

    def _logged(
        self,
        made: dict[TableName, Redefinition],
        read: Collection[TableName],
        names: Sequence[TableName],
        written: list[TableName],
    ) -> dict[TableName, Redefinition]:
        """Give a change log to stream tables that new definitions read and that keep none yet."""
        logless = self.tables.logless(n for n in read if n not in made or made[n].definition.log is None)
        outside = [resource_of(name) for name in logless if name not in names]
        with holding_leases(self.catalog, outside):
            self.tables.start_logs(name for name in logless if name not in made)
        for name in (name for name in logless if name in made):
            suffix = new_suffix()
            log = stored_names(name, suffix).log
            written.append(log.within(LAKE))
            self.tables.make_log(name, from_json(made[name].definition.details).output, suffix)
            made[name] = replace(made[name], definition=replace(made[name].definition, log=log.within(LAKE)))
        return made


def _not_maintainable(name: TableName, first: RefusalInfo) -> Unsupported:
    return Unsupported(
        "NOT_MAINTAINABLE",
        f"{name} has to be defined again, and cannot be refreshed DIFFERENTIAL then: {first.message}",
        hint=first.hint or f"ALTER STREAM TABLE {name} SET REFRESH MODE AUTO, or undo what was changed below it.",
    )


def _refuse_overtaken(tables: Mapping[TableName, StreamTable], given: Mapping[TableName, Given]) -> None:
    """Refuse a user's definition where another one was published since the user's was analysed."""
    for name, new in given.items():
        if tables[name].generation != new.generation:
            raise EnvironmentFault(
                "DEFINITION_CHANGED",
                f"The definition of {name} changed while another one was made; nothing was changed by this.",
                hint="Try again.",
                retryable=True,
            )


def _refuse_skipping(name: TableName, resolved: Mapping[TableName, Resolution], reason: FullReason) -> None:
    """Recomputing for another reason would bring in what is to be skipped."""
    if resolved.get(name) is Resolution.SKIP:
        raise not_skippable(name, reason)
