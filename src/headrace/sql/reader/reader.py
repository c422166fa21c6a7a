"""Query text to algebra.

A query is cut into its shape (`parser`), its names are resolved as Spark resolves them (`scope`), and its clauses
become algebra (`from_reader`, `select_reader`, `aggregates`). Scalars keep the user's own text. Everything that is not
understood for certain is refused by name and place; the query then refreshes FULL, from its own text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from headrace.algebra.pruned_columns import prune
from headrace.algebra.relations import Aggregate, Project, Relation, SortKey, TopK, Union, Values
from headrace.algebra.scalar import column, substitute
from headrace.algebra.schema import Column
from headrace.errors import Place, Unsupported, UserError
from headrace.names import TableName
from headrace.semantics import SET_OPERATIONS_IN_ORDER
from headrace.sql.reader.context import (
    BoundCte,
    Context,
    Ctes,
    Findings,
    OrderClause,
    Output,
    Resolve,
    Schema,
    ViewText,
)
from headrace.sql.reader.names.column_names import Names
from headrace.sql.reader.query_size import CONSTRUCT, OPERATORS, SPLIT, too_large
from headrace.sql.reader.refusals import SESSION, Refusal, not_maintained
from headrace.sql.reader.select.limits import limited, ordering
from headrace.sql.reader.select.select_reader import SelectReader, divided
from headrace.sql.reader.session_uses import misused_session
from headrace.sql.reader.set_operations import combined, remaining
from headrace.sql.reader.subqueries.subquery_reader import decided_on, kept
from headrace.sql.reader.syntax.cursor import Cursor
from headrace.sql.reader.syntax.parser import parse
from headrace.sql.reader.syntax.query_shape import (
    Body,
    From,
    Query,
    Select,
    SetOperation,
    TableBody,
    TableItem,
    ValuesItem,
)
from headrace.sql.reader.tables.from_reader import FromReader
from headrace.sql.reader.tables.lateral_groups import read_lateral
from headrace.sql.reader.unusual_options import refuse_unusual, refuse_unusual_words
from headrace.sql.references import references

_MISUSED = "Spark chooses rows by their sessions, and groups by sessions again, before it has merged them."
_STORED = "Make the sessions a stream table of their own, and read that."

Describe = Callable[[str], tuple[Column, ...]]


@dataclass(frozen=True, slots=True)
class Reading:
    """A query as read: its algebra, or why there is none.

    Args:
        tree: Its algebra, or None when something in it is not maintained.
        refusals: All of that, in the order of the text.
        sources: The tables it reads, through views, each once.
        columns: Its output columns.
        orders: Where its text orders rows by which something goes, by the place of that.
        moving_literals: Texts in it of which Spark makes a time where it casts them, as written, with their places.
    """

    tree: Relation | None
    refusals: tuple[Refusal, ...]
    sources: tuple[TableName, ...]
    columns: tuple[str, ...]
    orders: Mapping[Place, OrderClause] = field(default_factory=dict)
    moving_literals: Mapping[str, Place] = field(default_factory=dict)


def read(
    query: str,
    *,
    resolve: Resolve,
    schema: Schema,
    describe: Describe | None = None,
    case_sensitive: bool = False,
    functions: Mapping[str, bool] | None = None,
    unusual: frozenset[str] = frozenset(),
    output: tuple[str, ...] | None = None,
    origins_only: bool = False,
) -> Reading:
    """Read a query.

    Args:
        query: The user's text.
        resolve: Gives a written table name its full form.
        schema: Columns of a table, or the text of a view; raises `UserError` for a table that does not exist.
        describe: Spark's own analysis of the query: its output columns. None: names are made up where Spark would.
        case_sensitive: Whether names differ by case.
        functions: The user's own functions of one row, by name, and whether they are deterministic.
        unusual: Options of the session by which Spark reads texts in another way than usual.
        output: Its output columns, where they are known and Spark is not asked.
        origins_only: Whether the tree only has to tell where columns come from; a value in it need not follow from the
            sources then, as `rand()` does not.

    Raises:
        UserError: `SYNTAX_ERROR`, `DUPLICATE_COLUMN`, or what `resolve`, `schema` and `describe` raise.
    """
    sources = tuple(dict.fromkeys(_sources(query, resolve, schema, (), case_sensitive=case_sensitive)))
    described = output if describe is None else tuple(c.name for c in describe(query))
    shape, cursor = parse(query)
    findings = Findings()
    context = _context(cursor, resolve, schema, findings, case_sensitive=case_sensitive, describe=describe)
    context.functions, context.origins_only = functions or {}, origins_only
    context.unusual = unusual
    refuse_unusual_words(context)
    try:
        found = _query(context, shape, {})
    except RecursionError:
        context.refuse_at(CONSTRUCT, shape.at, "The query is nested too deep to be maintained.")
        found = Output(Values((), ((),)), (), opaque=True)
    names = described or tuple(name or f"col_{i}" for i, name in enumerate(found.names, 1))
    _check_names(names, case_sensitive)
    if described is not None:
        _compare(context, found, described)
    if len({name.lower() for name in names}) < len(names):
        context.refuse_at("columns that differ by case only", shape.at)
    large = None if found.opaque else too_large(found.relation)
    if large is not None:
        context.refuse(not_maintained(CONSTRUCT, context.place(shape.at), large, SPLIT))
    if not (findings.any or found.opaque) and (place := misused_session(found.relation)) is not None:
        context.refuse(not_maintained(SESSION, place, _MISUSED, _STORED))
    refusals = findings.all()
    if refusals or found.opaque:
        return Reading(None, refusals, sources, names)
    tree = prune(_named(found.relation, names, context.orders))
    return Reading(tree, (), sources, names, context.orders, context.moving_literals)


def _context(
    cursor: Cursor,
    resolve: Resolve,
    schema: Schema,
    findings: Findings,
    *,
    case_sensitive: bool = False,
    describe: Describe | None = None,
) -> Context:
    return Context(
        cursor,
        resolve,
        schema,
        case_sensitive,
        findings,
        _query,
        _view,
        read_lateral,
        divided,
        decided_on,
        kept,
        describe=describe,
    )


def _sources(
    query: str, resolve: Resolve, schema: Schema, views: tuple[TableName, ...], *, case_sensitive: bool
) -> Iterator[TableName]:
    """Yield the tables behind a query, with the place of the name in errors."""
    cursor = Cursor(query)
    places = {token.start: i for i, token in enumerate(cursor.tokens)}
    for reference in references(query, case_sensitive=case_sensitive):
        token = places[reference.start]
        context = _context(cursor, resolve, schema, Findings())
        name, found = context.table(reference.parts, token)
        if not isinstance(found, ViewText):
            yield name
        elif name in views:
            raise circular_view(name)
        else:
            yield from _sources(found.sql, found.resolve, schema, (*views, name), case_sensitive=case_sensitive)


def view_texts(query: str, resolve: Resolve, schema: Schema, *, case_sensitive: bool = False) -> Iterator[str]:
    """Yield the texts of the views that a query reads, and of those which they read."""
    for reference in references(query, case_sensitive=case_sensitive):
        found = schema(resolve(reference.parts))
        if isinstance(found, ViewText):
            yield found.sql
            yield from view_texts(found.sql, found.resolve, schema, case_sensitive=case_sensitive)


def circular_view(name: TableName) -> UserError:
    """Return the error about a view that reads itself."""
    return UserError("CYCLE", f"View {name} reads itself.", hint="Create the view again without the circle.")


def _query(context: Context, query: Query, ctes: Ctes) -> Output:
    env = dict(ctes)
    for cte in query.ctes:
        env[context.fold(cte.name)] = BoundCte(cte, dict(env), query.recursive)
    for extra in query.extras:
        if not (extra.harmless or extra.construct in ("LIMIT", "OFFSET")):
            context.refuse_at(extra.construct, extra.at)
    if not isinstance(query.body, Select):
        return limited(context, query, _body(context, query.body, env), lambda _: None)
    select = SelectReader(context, query.body, env)
    return limited(context, query, select.read(ordering(context, query)), select.place)


def _body(context: Context, body: Body, ctes: Ctes) -> Output:
    match body:
        case Query():
            return _query(context, body, ctes)
        case SetOperation():
            return _set_operation(context, body, ctes)
        case TableBody():
            return _all_of(context, body.table, ctes)
        case ValuesItem():
            return _all_of(context, body, ctes)
        case Select():
            return SelectReader(context, body, ctes).read()


def _all_of(context: Context, item: TableItem | ValuesItem, ctes: Ctes) -> Output:
    joined = FromReader(context, ctes).read(From(item))
    names = Names()
    shown = joined.scope.star() or ()
    items = tuple((names.take(v.name), column(v.internal)) for v in shown)
    return Output(Project(joined.relation, items), tuple(v.name for v in shown), joined.scope.opaque)


def _set_operation(context: Context, operation: SetOperation, ctes: Ctes) -> Output:
    """Set operations from left to right, of which there may be hundreds."""
    waiting: list[SetOperation] = []
    body: Body = operation
    while isinstance(body, SetOperation):
        waiting.append(body)
        body = body.left
    if len(waiting) > OPERATORS:
        context.refuse_at(CONSTRUCT, operation.at, f"More than {OPERATORS} set operations are not maintained.")
        waiting = []
    left = _body(context, body, ctes)
    for each in reversed(waiting):
        left = _combined(context, each, left, _body(context, each.right, ctes))
    return left


def _combined(context: Context, operation: SetOperation, left: Output, right: Output) -> Output:
    if operation.by_name:
        context.refuse_at(f"{operation.operator} BY NAME", operation.at)
        return left
    if isinstance(operation.right, SetOperation):
        refuse_unusual(context, SET_OPERATIONS_IN_ORDER, operation.right.at)
    if len(left.relation.columns) != len(right.relation.columns):
        if not (left.opaque or right.opaque):
            offset = context.cursor.offset(operation.at)
            message = f"The branches of {operation.operator} differ in their number of columns."
            context.doubt(operation.operator, message, offset)
        return replace(left, opaque=True)
    if not left.relation.columns:
        if not (left.opaque or right.opaque):
            context.refuse_at(f"{operation.operator} of no columns", operation.at)
        return replace(left, opaque=True)
    if operation.operator == "EXCEPT" and context.origins_only:
        relation = remaining(left.relation, right.relation, keep_copies=operation.all)
    else:
        relation = combined(operation.operator, left.relation, right.relation, keep_copies=operation.all)
    return Output(relation, left.names, left.opaque or right.opaque)


def _view(context: Context, name: TableName, view: ViewText, token: int) -> Output:
    """Return a view's query, read in the view's own surroundings."""
    if name in context.views:
        raise circular_view(name)
    try:
        shape, cursor = parse(view.sql)
    except UserError as error:
        raise Unsupported("VIEW_NOT_READ", f"The text of view {name} could not be read.", detail=str(error)) from error
    inner = replace(
        context,
        cursor=cursor,
        resolve=view.resolve,
        outer=context.place(token),
        read_ctes={},
        views=(*context.views, name),
    )
    refuse_unusual_words(inner)
    output = _query(inner, shape, {})
    return FromReader(inner, {}).relabelled(output, view.columns, 0)


# the root


def _check_names(names: tuple[str, ...], case_sensitive: bool) -> None:
    seen: dict[str, str] = {}
    for name in names:
        folded = name if case_sensitive else name.lower()
        if folded in seen:
            raise UserError(
                "DUPLICATE_COLUMN",
                f"The query returns two columns named '{name}'.",
                hint="Give one of them another name with AS.",
            )
        seen[folded] = name


def _compare(context: Context, output: Output, described: tuple[str, ...]) -> None:
    """Doubt the reading when Spark sees other columns."""
    own = output.names
    same = len(own) == len(described) and all(
        a is None or a.lower() == b.lower() for a, b in zip(own, described, strict=True)
    )
    if not same and not output.opaque:
        message = f"Spark names the columns {', '.join(described)}; this reading does not give them."
        context.doubt("select list", message, 0)


def _named(relation: Relation, names: tuple[str, ...], orders: dict[Place, OrderClause]) -> Relation:
    """Return the relation under its final column names, without a node more where that can be."""
    if relation.columns == names:
        return relation
    if isinstance(relation, Project):
        return Project(relation.input, tuple(zip(names, (s for _, s in relation.items), strict=True)))
    if isinstance(relation, TopK):
        pairs = zip(relation.columns, names, strict=True)
        new_names = {old: column(new) for old, new in pairs}
        if relation.place is not None and relation.place in orders:
            called = dict(zip(relation.columns, names, strict=True))
            orders[relation.place] = orders[relation.place].renamed(called)
        order = tuple(SortKey(substitute(key.scalar, new_names), key.direction) for key in relation.order)
        return TopK(_named(relation.input, names, orders), order, relation.limit, relation.offset, relation.place)
    if isinstance(relation, Union):
        return Union(tuple(_named(branch, names, orders) for branch in relation.branches))
    if isinstance(relation, Aggregate) and not relation.calls and relation.keys == relation.input.columns:
        return Aggregate(_named(relation.input, names, orders), names)
    renames = zip(names, relation.columns, strict=True)
    return Project(relation, tuple((new, column(old)) for new, old in renames))
