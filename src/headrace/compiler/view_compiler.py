"""Text to compiled view: reads a query, and settles what it leaves open if asked to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headrace.algebra.moving import is_moving
from headrace.algebra.properties.keys import KeysOf, Uniqueness
from headrace.algebra.relations import Aggregate, Existence, Relation, Scan, TopK
from headrace.algebra.schema import Column
from headrace.algebra.tree import transform, walk
from headrace.algebra.types import is_collated
from headrace.compiler.choices import by_equality, settled_choices
from headrace.compiler.compile_tree import Describe, compile_tree, types_by
from headrace.compiler.compiled_view import CompiledView
from headrace.compiler.exact_averages import exact_averages
from headrace.compiler.float_sums import ordered_sums
from headrace.compiler.inexact_values import AVERAGES, rounded_averages
from headrace.compiler.maintainability import TypesOf, Undetermined, not_kept, undetermined_rows, unmatched_columns
from headrace.compiler.tie_breaks import candidates
from headrace.errors import HeadraceError, Unsupported, UserError
from headrace.names import CLOCK
from headrace.optimizer.optimizer import Optimizer
from headrace.sql.clock import reads_of_time
from headrace.sql.reader.argument_types import with_types
from headrace.sql.reader.column_types import column_types
from headrace.sql.reader.context import Resolve, Schema
from headrace.sql.reader.functions.moving_literals import moving_literals
from headrace.sql.reader.reader import Reading, read, view_texts
from headrace.sql.reader.refusals import Refusal, not_maintained
from headrace.sql.reader.select.limits import without_effect
from headrace.sql.refinements import Refinement, composed, refined


@dataclass(frozen=True, kw_only=True)
class ViewCompiler:
    """Compiles texts under one set of settings.

    Args:
        resolve: The full name of a table as written.
        schema: The columns of a table, or the text of a view.
        describe: The analysed schema of a SQL text, by Spark.
        describe_query: As `describe`, of the query's own text, refined or not; `describe` when None.
        case_sensitive: Whether column names differ by case.
        ansi: Whether the query runs in ANSI mode.
        unusual: Options by which Spark reads texts in another way than usual.
        functions: The user's own functions of one row, by name, and whether they are deterministic.
        keys: Keys of the sources, as far as known: columns in which no two rows agree.
        optimizer: Runs the passes.
        refine: Whether orders with ties and averages of integers are refined, where the query is maintained then.
        settle: How often aggregates that choose among rows are settled at most; what hides others is settled first.
        in_order: Whether sums of floats are added up in a fixed order, where the query is maintained then.
        moving: Whether functions of the time read that of the refresh, where the query is maintained then.
    """

    resolve: Resolve
    schema: Schema
    describe: Describe
    describe_query: Describe | None = None
    case_sensitive: bool = False
    ansi: bool = True
    unusual: frozenset[str] = frozenset()
    functions: Mapping[str, bool] | None = None
    keys: KeysOf = field(default_factory=dict)
    optimizer: Optimizer = field(default_factory=Optimizer)
    refine: bool = False
    settle: int = 2
    in_order: bool = False
    moving: bool = False

    def compile(self, query: str) -> CompiledView:
        """Compile a query text.

        Args:
            query: A SELECT in Spark SQL.

        Raises:
            UserError: the text is no valid query; what the reader and the analyser raise.
        """
        try:
            return self._compiled(query)
        except _RewrittenTextError as error:
            # the user's own text has passed
            output, sources = (self.describe_query or self.describe)(query), self._reading(query, None).sources
            return CompiledView(query, sources, output, None, (_not_rewritten(error.cause),), None, self.ansi)

    def _reading(self, query: str, describe: Describe | None) -> Reading:
        return read(
            query,
            resolve=self.resolve,
            schema=self.schema,
            describe=describe,
            case_sensitive=self.case_sensitive,
            functions=self.functions,
            unusual=self.unusual,
        )

    def _compiled(self, query: str) -> CompiledView:
        own = self.describe_query or self.describe
        reading = self._reading(query, lambda sql: own(sql) if sql == query else self._describe(sql))
        output = own(query)
        if reading.tree is None:
            settled = self._settled_to_be_read(query, reading.refusals, output)
            return settled or CompiledView(query, reading.sources, output, None, reading.refusals, None, self.ansi)
        types_of = types_by(self._describe)
        # an operand that Spark does not accept by itself is not known to be a text
        if timed := moving_literals(reading.tree, types_by(self.describe), reading.moving_literals):
            return CompiledView(query, reading.sources, output, None, timed, None, self.ansi)
        if self.refine and (exact := self._with_exact_averages(query, reading.tree, types_of, output)) is not None:
            return exact
        open_ends, rests_on_keys = _undetermined(reading.tree, types_of, self.keys)
        if self.refine and (settled := self._settled_ties(query, reading, open_ends, output)) is not None:
            return settled
        tree = transform(reading.tree, _without_idle_cut)
        view = compile_tree(tree, self._describe, query=query, ansi=self.ansi, keys=self.keys, optimizer=self.optimizer)
        loose = open_ends.refusals
        refusals = reading.refusals + unmatched_columns(view, output) + loose + not_kept(view, output, types_of)
        if self.in_order and (added := ordered_sums(query, refusals)):
            ordered = _settled(replace(self._literally, in_order=False), query, added, output)
            if ordered is not None:
                return ordered
        if refusals:
            return CompiledView(query, reading.sources, output, None, refusals, None, self.ansi)
        rests_on_keys = view.rests_on_keys or rests_on_keys
        return replace(view, sources=reading.sources, output=output, rests_on_keys=rests_on_keys)

    def _describe(self, sql: str) -> tuple[Column, ...]:
        """Have Spark analyse a text of Headrace's."""
        try:
            return self.describe(sql)
        except (UserError, Unsupported) as error:
            if error.code in _OF_TABLES:
                raise
            raise _RewrittenTextError(error) from error

    def _settled_to_be_read(
        self, query: str, refusals: tuple[Refusal, ...], output: tuple[Column, ...]
    ) -> CompiledView | None:
        """Compile what time functions or choosing aggregates kept from being read."""
        timed = reads_of_time(query, refusals) if self.moving else ()
        if timed:
            view = _settled(replace(self._literally, refine=self.refine), query, timed, output)
            if view is not None:
                return view
        return self._chosen(query, refusals, output) if self.refine else None

    def _with_exact_averages(
        self, query: str, tree: Relation, types_of: TypesOf, output: tuple[Column, ...]
    ) -> CompiledView | None:
        """Compile a query with exact averages of integers.

        None without such, or where it is not maintained so.
        """
        calls = (call for node in walk(tree) if isinstance(node, Aggregate) for call in node.calls)
        if all(call.function not in AVERAGES for call in calls):  # types are asked for only where they matter
            return None
        added = exact_averages(query, rounded_averages(with_types(tree, types_of)))
        return _settled(self, query, added, output) if added else None

    def _settled_ties(
        self, query: str, reading: Reading, open_ends: Undetermined, output: tuple[Column, ...]
    ) -> CompiledView | None:
        """Return a query compiled whose choosing aggregates, or else whose orders, left ties open."""
        if open_ends.choices:
            return self._chosen(query, open_ends.choices, output)
        for added in candidates(reading, open_ends.orders) if open_ends.orders else ():
            if (view := _settled(self._literally, query, added, output)) is not None:
                return view
        return None

    def _chosen(self, query: str, refusals: tuple[Refusal, ...], output: tuple[Column, ...]) -> CompiledView | None:
        """Return a query compiled with its aggregates leaving no choice.

        None where it is not maintained so either.
        """
        views = view_texts(query, self.resolve, self.schema, case_sensitive=self.case_sensitive)
        added = settled_choices(query, refusals, views) if self.settle else ()
        if not added:
            return None
        further = replace(self._literally, refine=True, settle=self.settle - 1)
        try:
            view = further.compile(refined(query, added))
        except HeadraceError:
            return None
        collated = by_equality(added) and any(map(is_collated, view.types.values()))
        both = composed(added, view.refinements)
        if view.refusals or view.output != output or collated or not _apart(query, both, view):
            return None
        return replace(view, query=query, refinements=both)

    @property
    def _literally(self) -> ViewCompiler:
        """Take ties and functions of the time as they are written."""
        return replace(self, refine=False, settle=ViewCompiler.settle, moving=False)


_OF_TABLES = frozenset({"CATALOG_NOT_FOUND", "HISTORY_EXPIRED", "NAMESPACE_NOT_FOUND", "TABLE_NOT_FOUND"})
"""Errors that say nothing of a text, but of what it reads."""


class _RewrittenTextError(Exception):
    """Spark refuses what a query has been rewritten to, though not the query.

    Args:
        cause: What it says.
    """

    def __init__(self, cause: HeadraceError) -> None:
        super().__init__(cause.code)
        self.cause = cause


def _not_rewritten(error: HeadraceError) -> Refusal:
    message = f"Spark does not accept what the query is rewritten to: {error.message}"
    return not_maintained("query", None, message)


def _undetermined(tree: Relation, types_of: TypesOf, keys: KeysOf) -> tuple[Undetermined, bool]:
    """Return what ties leave open in a query, and whether keys of sources leave less open."""
    found = undetermined_rows(tree, types_of, Uniqueness({}, {}, numbered=True).keys)
    if not found.refusals or not keys:
        return found, False
    known = Uniqueness(keys, column_types(tree, types_of).types, numbered=True).keys
    told_apart = undetermined_rows(tree, types_of, known)
    return told_apart.beside(found), told_apart.refusals != found.refusals


def _settled(
    compiler: ViewCompiler, query: str, added: tuple[Refinement, ...], output: tuple[Column, ...]
) -> CompiledView | None:
    """Return a query compiled with its orders refined.

    None where it is not maintained so either.
    """
    try:
        view = compiler.compile(refined(query, added))
    except HeadraceError:
        return None
    if view.refusals or view.output != output or not _moves_rightly(view.tree):
        return None
    both = composed(added, view.refinements)
    return replace(view, query=query, refinements=both) if _apart(query, both, view) else None


def _apart(query: str, refinements: tuple[Refinement, ...], view: CompiledView) -> bool:
    """Return whether what is refined can be put into a text at once: none stands in another."""
    return refined(query, refinements) == refined(view.query, view.refinements)


def _moves_rightly(tree: Relation | None) -> bool:
    """Return whether a query reads the time in moving filters only."""
    nodes = list(walk(tree)) if tree is not None else []
    moving = [node.right for node in nodes if isinstance(node, Existence) and is_moving(node)]
    return sum(isinstance(node, Scan) and node.source == CLOCK for node in nodes) == len(moving)


def _without_idle_cut(node: Relation) -> Relation:
    """Return what a LIMIT without ORDER BY leaves of one row at most.

    Of several it is refused.
    """
    cut = without_effect(node, single=True) if isinstance(node, TopK) else None
    return node if cut is None else cut
