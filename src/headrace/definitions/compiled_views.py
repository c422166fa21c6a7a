"""Caches compiled views by definition, because compiling has Spark analyse types."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from headrace.algebra.schema import Column
from headrace.compiler.compiled_view import CompiledView
from headrace.compiler.view_compiler import ViewCompiler
from headrace.definitions.details import Details
from headrace.definitions.foreign_caches import look_anew
from headrace.definitions.read_columns import held_to
from headrace.definitions.table_memory import PerTable, TableMemory
from headrace.definitions.user_text import bind_text, own_place, resolver
from headrace.errors import HeadraceError
from headrace.lake.clock_table import CLOCK_COLUMNS
from headrace.names import CLOCK, STAGING, TableName
from headrace.optimizer.optimizer import Observe, Optimizer
from headrace.optimizer.pass_names import DEFINING
from headrace.ports import Session
from headrace.sql.clock import SOME_TIME
from headrace.sql.reader.context import ViewText
from headrace.sql.shortened_literals import shortened


class CompiledViews:
    """Compiles definitions and remembers the results.

    Args:
        session: Gives the runner that knows types.
        disabled: Passes of the optimiser that the project switches off.

    Attributes:
        memory: Forgets the views of tables that are gone, and what others keep for these tables.
    """

    def __init__(self, session: Session, disabled: frozenset[str] = frozenset()) -> None:
        self.memory = TableMemory()
        self._session = session
        self._disabled = disabled
        self._views = PerTable[tuple[Details, CompiledView]](self.memory)

    def view(self, name: TableName, details: Details) -> CompiledView:
        """Return the compiled view of a definition.

        Args:
            name: The stream table.
            details: Its definition; another one than last time is compiled again.
        """
        known = self._views.get(name)
        if known is not None and known[0] == details:
            return known[1]
        view = self.compile(details)
        self._views.put(name, (details, view))
        return view

    def keep(self, name: TableName, details: Details, view: CompiledView) -> None:
        """Remember a view that was compiled outside."""
        self._views.put(name, (details, view))

    @property
    def disabled_in_definitions(self) -> frozenset[str]:
        """Return the disabled passes among those that compile definitions.

        Part of what they are.
        """
        return self._disabled & DEFINING

    def compile(
        self,
        details: Details,
        output: tuple[Column, ...] | None = None,
        observe: Observe | None = None,
        staged: Collection[TableName] = (),
        *,
        refine: bool = False,
        in_order: bool = False,
        moving: bool = False,
    ) -> CompiledView:
        """Compile a definition without remembering it.

        Args:
            details: The definition.
            output: The columns of its query, where Spark has just been asked for them.
            observe: Is told of each pass, now and when programs are derived.
            staged: Stream tables whose columns are those of their tables in `staging`.
            refine: Whether orders with ties and averages of integers are refined; the definition's are anyway.
            in_order: Likewise whether sums of floats are added up in a fixed order.
            moving: Likewise whether functions of the time read that of the refresh.
        """
        runner = self._session.runner().under(details.semantics)
        catalogs = self._session.catalogs()
        columns: dict[TableName, tuple[Column, ...]] = {}
        held: dict[TableName, tuple[str, ...] | None] = {}
        uses = {use.name: use for use in details.sources}

        def schema(name: TableName) -> tuple[Column, ...] | ViewText:
            if name == CLOCK:
                return CLOCK_COLUMNS
            if name in details.views:
                return ViewText(details.views[name], resolver((), catalogs, details.redirects))
            if name not in columns:
                look_anew((name,), runner)
                now = runner.describe(f"SELECT * FROM {found_at(name, staged).sql}")
                names = held[name] = uses[name].held_to(now) if name in uses and uses[name].all else None
                there = {c.name: c for c in now}
                columns[name] = now if names is None else tuple(there[each] for each in names)
            return columns[name]

        own = {} if output is None else {details.text: output}
        described: dict[str, tuple[Column, ...]] = {}

        def describe_query(text: str) -> tuple[Column, ...]:
            if text not in own:
                for name in uses:
                    schema(name)
                own[text] = runner.describe(pinned_free(details, catalogs, held, staged, text))
            return own[text]

        def describe(sql: str) -> tuple[Column, ...]:
            if sql not in described:
                described[sql] = runner.describe(shortened(sql))
            return described[sql]

        return ViewCompiler(
            resolve=resolver(details.namespace, catalogs, details.redirects),
            schema=schema,
            describe=describe,
            describe_query=describe_query,
            case_sensitive=details.semantics.case_sensitive,
            ansi=details.semantics.ansi,
            unusual=details.semantics.read_unusually,
            keys=details.source_keys,
            functions={n: f.deterministic for n, f in self._session.functions().items() if n in details.functions},
            optimizer=Optimizer(details.disabled_passes | (self._disabled - DEFINING), observe),
            refine=refine,
            in_order=in_order,
            moving=moving,
        ).compile(details.text)


Held = Mapping[TableName, tuple[str, ...] | None]
"""By source, the columns that `SELECT *` keeps meaning; None where these are all."""

_ALL: Held = {}


def found_at(name: TableName, staged: Collection[TableName]) -> TableName:
    """Return the name of a relation's table, which is in `staging` while it is not published."""
    return name.within(STAGING) if name in staged else name


def pinned_free(
    details: Details,
    catalogs: frozenset[str],
    held: Held = _ALL,
    staged: Collection[TableName] = (),
    text: str | None = None,
) -> str:
    """Return the query with all names written in full and views put in, for analysis.

    Args:
        details: The definition.
        catalogs: The session's.
        held: Columns to which sources are held.
        staged: Stream tables whose columns are those of their tables in `staging`.
        text: The query's text, where it is not the definition's.
    """

    def bind(named: TableName) -> str:
        if named == CLOCK:
            return SOME_TIME
        name = details.read_as(named)
        sql = f"(SELECT * FROM {found_at(name, staged).sql})" if name in staged else name.sql
        return held_to(sql, held.get(name))

    return bind_text(
        details.text if text is None else text,
        namespace=details.namespace,
        catalogs=catalogs,
        views=details.views,
        bind=bind,
        case_sensitive=details.semantics.case_sensitive,
    )


@contextmanager
def places_as_written(details: Details, catalogs: frozenset[str]) -> Iterator[None]:
    """Show places of errors about `pinned_free` in the query as its author wrote it."""
    try:
        yield
    except HeadraceError as error:
        if error.place is not None:
            error.place = own_place(
                details.query,
                error.place,
                namespace=details.namespace,
                catalogs=catalogs,
                views=details.views,
                bind=lambda name: details.read_as(name).sql,
                case_sensitive=details.semantics.case_sensitive,
            )
        raise
