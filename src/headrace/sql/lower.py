"""Algebra → SQL.

A tree becomes one sqlglot tree and one statement. Operators that one SELECT can hold share it: a projection over a
filter over a join of scans is one block, which keeps `explain` readable and Spark's analyzer quick. Scalars are put in
as they are, never parsed, so the user's expressions reach Spark unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import sqlglot
from sqlglot import exp

from headrace.algebra.moving import is_moving
from headrace.algebra.relations import (
    Aggregate,
    AggregateCall,
    Existence,
    Filter,
    Generate,
    Join,
    LookupJoin,
    OuterJoin,
    Project,
    Recursive,
    Relation,
    Repeat,
    Replicate,
    Round,
    Scan,
    SemiJoin,
    Stored,
    TopK,
    Union,
    Values,
    Window,
    WindowCall,
)
from headrace.algebra.scalar import Scalar, as_column, column, replace_columns, uses
from headrace.errors import InternalError
from headrace.names import CLOCK_COLUMN, NOW, RESERVED_PREFIX, WEIGHT, quote

Bind = Callable[[Scan | Stored], str]
"""Returns a leaf in SQL: a table, a snapshot of one, a temporary view."""


def lower(relation: Relation, bind: Bind, dialect: str = "spark", *, hints: bool = False) -> str:
    """Write a relation as one SQL query.

    Args:
        relation: The tree; without `Empty`.
        bind: The table expression of each leaf, such as "`lake`.`shop`.`orders` VERSION AS OF 123", without alias.
        dialect: `spark`, or `duckdb` for tests.
        hints: Ask Spark to broadcast the sides that rules expect to be small.

    Raises:
        InternalError: `NOT_LOWERED` for a node that has no SQL.
    """
    text = lower_tree(relation, bind, hints=hints).sql("spark", pretty=True)
    return text if dialect == "spark" else sqlglot.transpile(text, read="spark", write=dialect, pretty=True)[0]


def lower_tree(relation: Relation, bind: Bind, *, hints: bool = False) -> exp.Query:
    """Write a relation as one sqlglot tree; arguments as for `lower`."""
    lowering = _Lowering(bind, hints, _shared(relation))
    query = lowering.query(relation)
    recursive = lowering.recursions > 0
    for name, body in lowering.ctes.items():
        alias = exp.TableAlias(this=exp.Var(this=name))
        query = query.with_(alias, as_=body, recursive=recursive, copy=False)
    return query


def occurrences(relation: Relation) -> Counter[Scan | Stored]:
    """Count each leaf's occurrences in a relation's SQL; a named subquery counts once."""
    shared, written, found = _shared(relation), set[Relation](), Counter[Scan | Stored]()

    def visit(node: Relation) -> None:
        if node in written:
            return
        if node in shared:
            written.add(node)
        if isinstance(node, Scan | Stored):
            found[node] += 1
        for inner in node.inputs:
            visit(inner)

    visit(relation)
    return found


@dataclass(frozen=True, slots=True)
class _Block:
    """A SELECT under construction.

    Args:
        source: What stands after FROM; None for no FROM.
        alias: Alias of `source`.
        items: Output columns and their SQL over the aliases.
        joins: Joins after the source.
        where: Conditions.
        keys: GROUP BY columns, () for a global aggregate, None when not grouped.
        having: Conditions on groups.
        hints: Aliases to broadcast.
        calls: Output columns that call an aggregate function.
    """

    source: exp.Expression | None
    alias: str
    items: dict[str, str]
    joins: tuple[exp.Join, ...] = ()
    where: tuple[str, ...] = ()
    keys: tuple[str, ...] | None = None
    having: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    calls: frozenset[str] = field(default_factory=frozenset)

    @property
    def single(self) -> bool:
        """Return whether it is one table only, so that it can stand on the right of a join."""
        return self.keys is None and not self.joins and self.source is not None


class _Lowering:
    """One run of `lower`: hands out aliases and collects CTEs."""

    def __init__(self, bind: Bind, hints: bool, shared: frozenset[Relation]) -> None:
        self.bind = bind
        self.hints = hints
        self.shared = shared
        self.ctes: dict[str, exp.Query] = {}
        self.rounds: dict[str, str] = {}
        self.recursions = 0
        self._names: dict[Relation, str] = {}
        self._aliases = 0

    def query(self, relation: Relation) -> exp.Query:
        """Return a complete query."""
        if isinstance(relation, Union) and relation not in self.shared:
            return self._union(relation)
        return _render(self.block(relation))

    def block(self, relation: Relation) -> _Block:
        """Return a SELECT that may still grow."""
        if relation in self.shared:
            return self._cte(relation)
        match relation:
            case Scan():
                items = {out: name for out, name in relation.fields}
                return self._table(self.bind(relation), items | ({WEIGHT: WEIGHT} if relation.weighted else {}))
            case Stored():
                return self._table(self.bind(relation), {name: name for name in relation.names})
            case Values():
                return self._values(relation)
            case Project():
                return self._project(relation)
            case Filter():
                return self._filter(relation)
            case Join():
                return self._join(relation)
            case OuterJoin():
                return self._outer_join(relation)
            case Existence() if is_moving(relation):
                return self._moving(relation)
            case Existence():
                return self._existence(relation)
            case SemiJoin():
                return self._semi_join(relation)
            case LookupJoin():
                return self._lookup_join(relation)
            case Aggregate():
                return self._aggregate(relation)
            case Union():
                return self._nest(self._union(relation), relation.columns)
            case Repeat():
                return self._repeat(relation)
            case Window():
                return self._window(relation)
            case TopK():
                return self._topk(relation)
            case Generate():
                return self._generate(relation)
            case Replicate():
                return self._replicate(relation)
            case Recursive():
                return self._recursive(relation)
            case Round() if relation.name in self.rounds:
                return self._table(self.rounds[relation.name], {name: name for name in relation.columns})
            case Round():
                return self.block(relation.start)
        raise InternalError("NOT_LOWERED", f"{type(relation).__name__} has no SQL.")

    # leaves

    def _alias(self) -> str:
        """Return a name that nobody writes."""
        # a lambda's variable of the same name would take `t1`.`x` for its field
        self._aliases += 1
        return f"{_ALIAS}{self._aliases}"

    def _table(self, text: str, columns: dict[str, str]) -> _Block:
        alias = self._alias()
        return _Block(_aliased(exp.Var(this=text), alias), alias, {o: _qualified(alias, c) for o, c in columns.items()})

    def _nest(self, query: exp.Query, columns: tuple[str, ...]) -> _Block:
        alias = self._alias()
        source = exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(alias)))
        return _Block(source, alias, {name: _qualified(alias, name) for name in columns})

    def _cte(self, relation: Relation) -> _Block:
        if relation not in self._names:
            query = _render(self._unshared(relation)) if not isinstance(relation, Union) else self._union(relation)
            self._names[relation] = name = f"c{len(self._names) + 1}"
            self.ctes[quote(name)] = query
        return self._table(self._names[relation], {name: name for name in relation.columns})

    def _unshared(self, relation: Relation) -> _Block:
        shared, self.shared = self.shared, self.shared - {relation}
        try:
            return self.block(relation)
        finally:
            self.shared = shared

    def _values(self, relation: Values) -> _Block:
        if not relation.rows:
            raise InternalError("NOT_LOWERED", "Values without rows has no SQL.")
        if len(relation.rows) > _ROWS_AS_SELECTS:
            return self._many(relation)
        rows = [_select({n: e.sql for n, e in zip(relation.names, row, strict=True)}) for row in relation.rows]
        return self._nest(_union_all(rows), relation.columns)

    def _many(self, relation: Values) -> _Block:
        """Return rows in VALUES as one relation.

        Spark would parse a SELECT for each by nested calls, until its stack is full.
        """
        alias = self._alias()
        columns = [_name(name) for name in relation.columns]
        rows = [exp.Tuple(expressions=[exp.Var(this=e.sql) for e in row]) for row in relation.rows]
        source = exp.Values(expressions=rows, alias=exp.TableAlias(this=exp.to_identifier(alias), columns=columns))
        return _Block(source, alias, {name: _qualified(alias, name) for name in relation.columns})

    # operators that share a SELECT

    def _open(self, relation: Relation) -> _Block:
        """Return a block that is not grouped yet."""
        block = self.block(relation)
        return self._closed(block) if block.keys is not None else block

    def _closed(self, block: _Block) -> _Block:
        return self._nest(_render(block), tuple(block.items))

    def _project(self, relation: Project) -> _Block:
        block = self.block(relation.input)
        scalars = [scalar for _, scalar in relation.items]
        if _duplicates(block.items, scalars) or _loses_grouping(block, scalars):
            block = self._closed(block)
        calls = frozenset(name for name, scalar in relation.items if scalar.columns & block.calls)
        return replace(block, items={n: _text(scalar, block.items) for n, scalar in relation.items}, calls=calls)

    def _filter(self, relation: Filter) -> _Block:
        block = self.block(relation.input)
        if _duplicates(block.items, [relation.condition]):
            block = self._closed(block)
        condition = _text(relation.condition, block.items)
        if block.keys is None:
            return replace(block, where=(*block.where, condition))
        return replace(block, having=(*block.having, condition))

    def _join(self, relation: Join) -> _Block:
        left = self._open(relation.left)
        if left.source is None or (relation.small_left and self.hints and left.joins):
            left = self._closed(left)
        right = self._single(relation.right)
        items = left.items | right.items
        on = None if relation.condition is None else _text(relation.condition, items)
        join = exp.Join(this=right.source, on=exp.Var(this=on)) if on else exp.Join(this=right.source, kind="CROSS")
        broadcast = (left.alias,) if relation.small_left and self.hints else ()
        return replace(
            left,
            items=items,
            joins=(*left.joins, join),
            where=left.where + right.where,
            hints=left.hints + right.hints + broadcast,
        )

    def _single(self, relation: Relation) -> _Block:
        block = self.block(relation)
        return block if block.single else self._closed(block)

    def _outer_join(self, relation: OuterJoin) -> _Block:
        left = self._open(relation.left)
        # conditions and expressions below a side that may be NULL must not rise above the join
        if left.source is None or (relation.full and (left.where or not _only_columns(left))):
            left = self._closed(left)
        right = self._single(relation.right)
        right = right if not right.where and _only_columns(right) else self._closed(right)
        items = left.items | right.items
        side = "FULL" if relation.full else "LEFT"
        on = exp.Var(this=_text(relation.condition, items))
        join = exp.Join(this=right.source, side=side, kind="OUTER", on=on)
        return replace(left, items=items, joins=(*left.joins, join), hints=left.hints + right.hints)

    def _moving(self, relation: Existence) -> _Block:
        """Write a moving filter as a condition with a value, which Spark knows when it plans."""
        assert isinstance(relation.right, Scan)
        block = self._open(relation.left)
        if block.source is None or _duplicates(block.items, [relation.condition]):
            block = self._closed(block)
        now = f"(SELECT {CLOCK_COLUMN} FROM {self.bind(relation.right)})"
        condition = _text(relation.condition, {**block.items, NOW: now})
        condition = f"NOT coalesce({condition}, false)" if relation.anti else condition
        return replace(block, where=(*block.where, condition))

    def _existence(self, relation: Existence) -> _Block:
        left = self._open(relation.left)
        left = self._closed(left) if left.source is None else left
        right = self._single(relation.right)
        right = self._closed(right) if right.where else right
        on = exp.Var(this=_text(relation.condition, left.items | right.items))
        join = exp.Join(this=right.source, side="LEFT", kind="ANTI" if relation.anti else "SEMI", on=on)
        return replace(left, joins=(*left.joins, join))

    def _keyed(self, relation: SemiJoin | LookupJoin, kind: str | None) -> tuple[_Block, _Block]:
        """Return left, with a join on NULL-safe key equality appended, and right."""
        left = self._open(relation.left)
        left = self._closed(left) if left.source is None else left
        right = self._single(relation.right)
        right = self._closed(right) if right.where else right
        numbers = relation.numbers if isinstance(relation, SemiJoin) else frozenset()
        pairs = [(_operand(left.items[a]), _operand(right.items[b]), a in numbers) for a, b in relation.on]
        on = " AND ".join(_same_number(a, b) if number else f"{a} <=> {b}" for a, b, number in pairs) or "true"
        join = exp.Join(this=right.source, side="LEFT", kind=kind, on=exp.Var(this=on))
        return replace(left, joins=(*left.joins, join)), right

    def _semi_join(self, relation: SemiJoin) -> _Block:
        left, right = self._keyed(relation, "ANTI" if relation.anti else "SEMI")
        broadcast = (right.alias,) if relation.small_right and self.hints else ()
        return replace(left, hints=left.hints + broadcast)

    def _lookup_join(self, relation: LookupJoin) -> _Block:
        if relation.whole:
            return self._whole_join(relation)
        left, right = self._keyed(relation, None)
        broadcast = (right.alias,) if relation.small_right and self.hints else ()
        return replace(left, items=left.items | right.items, hints=left.hints + broadcast)

    def _whole_join(self, relation: LookupJoin) -> _Block:
        # What is stored one task reads. What is computed may have been dealt out by these keys by a window or a join
        # below, without an exchange since: COALESCE would then have one task compute it, down to that exchange.
        left = self._in_one_task(relation.left, "REPARTITION")
        right = self._in_one_task(relation.right, "COALESCE")
        pairs = ((left.items[a], right.items[b]) for a, b in relation.on)
        on = exp.Var(this=" AND ".join(f"{a} <=> {b}" for a, b in pairs))
        join = exp.Join(this=right.source, side="FULL", kind="OUTER", on=on)
        return replace(left, items=left.items | right.items, joins=(join,))

    def _in_one_task(self, relation: Relation, hint: str) -> _Block:
        """Return a relation whose few rows one task has.

        What it has on both sides it joins as it is.
        """
        block = self._closed(self.block(relation))
        if not self.hints:
            return block
        select = _render(block)
        select.set("hint", exp.Hint(expressions=[exp.Anonymous(this=hint, expressions=[exp.Literal.number(1)])]))
        return self._nest(select, tuple(block.items))

    def _aggregate(self, relation: Aggregate) -> _Block:
        block = self._open(relation.input)
        # an expression in GROUP BY could be taken for an ordinal, so only columns stand there
        if block.source is None or not all(isinstance(block.items[key], _Reference) for key in relation.keys):
            block = self._closed(block)
        items = {key: block.items[key] for key in relation.keys}
        items |= {call.name: _call(call, block.items) for call in relation.calls}
        keys = tuple(block.items[key] for key in relation.keys)
        return replace(block, items=items, keys=keys, calls=frozenset(call.name for call in relation.calls))

    def _union(self, relation: Union) -> exp.Query:
        names = relation.columns
        branches = list[exp.Query]()
        for branch in relation.branches:
            block = self.block(branch)
            items = dict(zip(names, block.items.values(), strict=True))
            branches.append(_render(replace(block, items=items)))
        return _union_all(branches)

    def _repeat(self, relation: Repeat) -> _Block:
        block = self._open(relation.input)
        copies = f"explode(sequence(1, CAST({block.items[WEIGHT]} AS int)))"
        kept = {name: sql for name, sql in block.items.items() if name != WEIGHT}
        query = _render(replace(block, items=kept | {_COPY: copies}))
        return self._nest(query, tuple(kept))

    def _window(self, relation: Window) -> _Block:
        block = self._open(relation.input)
        if block.source is None or _duplicates(block.items, [column(n) for c in relation.calls for n in c.columns]):
            block = self._closed(block)
        partition = ", ".join(block.items[name] for name in relation.partition)
        calls = {call.name: _over(call, partition, block.items) for call in relation.calls}
        # conditions above are about the functions' results, so the block is closed
        return self._closed(replace(block, items=block.items | calls))

    def _generate(self, relation: Generate) -> _Block:
        block = self._open(relation.input)
        select = _render(block)
        call = exp.Var(this=_text(relation.generator, block.items))
        names = [_name(name) for name in relation.names]
        several = len(names) > 1
        shown = exp.Aliases(this=call, expressions=names) if several else exp.Alias(this=call, alias=names[0])
        kept = [each for each in select.expressions if block.items]
        select.set("expressions", [*kept, shown])
        return self._nest(select, relation.columns)

    def _topk(self, relation: TopK) -> _Block:
        block = self._closed(self.block(relation.input))
        select = _render(block)
        order = ", ".join(f"{_text(key.scalar, block.items)} {key.direction}".rstrip() for key in relation.order)
        if order:
            select.set("order", exp.Order(expressions=[exp.Var(this=order)]))
        if relation.limit is not None:
            select.set("limit", exp.Limit(expression=exp.Literal.number(relation.limit)))
        if relation.offset:
            select.set("offset", exp.Offset(expression=exp.Literal.number(relation.offset)))
        return self._nest(select, relation.columns)

    def _recursive(self, relation: Recursive) -> _Block:
        start = self._branch(relation.start)
        # before and after a change stand in one statement
        self.recursions += 1
        own = f"r{self.recursions}"
        outside, self.rounds = self.rounds, self.rounds | {relation.name: own}
        again = self._branch(relation.again)
        self.rounds = outside
        names = ", ".join(map(quote, relation.columns))
        levels = "" if relation.levels is None else f" MAX RECURSION LEVEL {relation.levels}"
        self.ctes[f"{own}({names}){levels}"] = exp.Union(this=start, expression=again, distinct=False)
        return self._table(own, {name: name for name in relation.columns})

    def _branch(self, relation: Relation) -> exp.Query:
        """Return one side of the UNION ALL of a recursion, which may have no more than two."""
        query = self.query(relation)
        return _render(self._nest(query, relation.columns)) if isinstance(query, exp.Union) else query

    def _replicate(self, relation: Replicate) -> _Block:
        block = self._open(relation.input)
        copies = _operand(block.items[relation.copies])
        kept = {name: sql for name, sql in block.items.items() if name != relation.copies}
        # a sequence from one to zero would count down
        items = kept | {_COPY: f"explode(sequence(1, CAST({copies} AS int)))"}
        query = _render(replace(block, items=items, where=(*block.where, f"{copies} > 0")))
        return self._nest(query, tuple(kept))


_COPY = "__hr_copy"

_ROWS_AS_SELECTS = 50
"""Literal rows that are written as one SELECT each."""


def _name(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


_ALIAS = f"{RESERVED_PREFIX}t"
"""Prefix of the aliases of tables; a number follows."""


def _aliased(source: exp.Expression, alias: str) -> exp.Expression:
    return exp.Alias(this=source, alias=exp.to_identifier(alias))


class _Reference(str):
    """A column of a table in FROM, an operand as it is; `true OR t1.x` only looks like one."""

    __slots__ = ()


def _qualified(alias: str, name: str) -> _Reference:
    return _Reference(f"{alias}.{quote(name)}")


def _text(scalar: Scalar, items: dict[str, str]) -> str:
    """Return a scalar over the SQL of its input's columns."""
    direct = as_column(scalar)
    if direct is not None:
        return items[direct]
    return replace_columns(scalar, {name: _operand(items[name]) for name in scalar.columns})


def _same_number(a: str, b: str) -> str:
    """Return `a <=> b` of integers as an equi-join on one number, with NULL compared after."""
    return f"coalesce({a}, 0) = coalesce({b}, 0) AND if({a} IS NULL, {b} IS NULL, {b} IS NOT NULL)"


def _operand(sql: str) -> str:
    return sql if isinstance(sql, _Reference) else f"({sql})"


def _only_columns(block: _Block) -> bool:
    return all(isinstance(sql, _Reference) for sql in block.items.values())


def _duplicates(items: dict[str, str], scalars: list[Scalar]) -> bool:
    """Return whether inlining would evaluate an expression twice."""
    if all(as_column(scalar) for scalar in scalars) and len({as_column(s) for s in scalars}) == len(scalars):
        return False
    computed = [name for name, sql in items.items() if not isinstance(sql, _Reference) and _length(sql) > _CHEAP]
    return any(sum(uses(scalar, name) for scalar in scalars) > 1 for name in computed)


def _length(sql: str) -> int:
    """Return the length of an expression, whatever the names of tables begin with."""
    return len(sql.replace(_ALIAS, "t"))


_CHEAP = 24
"""Length in characters of an expression that may be repeated for the sake of readability: a literal, a short call."""


def _loses_grouping(block: _Block, scalars: list[Scalar]) -> bool:
    """Return whether a SELECT without GROUP BY would call no aggregate any more, and be none."""
    return block.keys == () and not any(scalar.columns & block.calls for scalar in scalars)


def _call(call: AggregateCall, items: dict[str, str]) -> str:
    return call.written(lambda scalar: _text(scalar, items))


def _over(call: WindowCall, partition: str, items: dict[str, str]) -> str:
    order = ", ".join(f"{_text(key.scalar, items)} {key.direction}".rstrip() for key in call.order)
    parts = (partition and f"PARTITION BY {partition}", order and f"ORDER BY {order}", call.frame)
    return f"{_text(call.call, items)} OVER ({' '.join(part for part in parts if part)})"


def _select(items: dict[str, str]) -> exp.Select:
    # a relation may have no columns, a SELECT may not
    shown = items or {"__hr_none": "1"}
    return exp.Select(expressions=[exp.Alias(this=exp.Var(this=s), alias=_name(n)) for n, s in shown.items()])


def _render(block: _Block) -> exp.Select:
    select = _select(block.items)
    if block.source is not None:
        select.set("from_", exp.From(this=block.source))
    select.set("joins", list(block.joins))
    if block.where:
        select.set("where", exp.Where(this=_conjunction(block.where)))
    if block.keys:
        select.set("group", exp.Group(expressions=[exp.Var(this=key) for key in block.keys]))
    if block.having:
        select.set("having", exp.Having(this=_conjunction(block.having)))
    if block.hints:
        tables = [exp.to_identifier(alias) for alias in dict.fromkeys(block.hints)]
        select.set("hint", exp.Hint(expressions=[exp.Anonymous(this="BROADCAST", expressions=tables)]))
    return select


def _conjunction(conditions: tuple[str, ...]) -> exp.Expression:
    if len(conditions) == 1:
        return exp.Var(this=conditions[0])
    return exp.Var(this=" AND ".join(f"({condition})" for condition in conditions))


def _union_all(queries: Sequence[exp.Query]) -> exp.Query:
    result = queries[0]
    for query in queries[1:]:
        result = exp.Union(this=result, expression=query, distinct=False)
    return result


def _shared(relation: Relation) -> frozenset[Relation]:
    """Return relations that occur more than once and are worth a name."""
    seen: Counter[Relation] = Counter()

    def visit(node: Relation) -> None:
        seen[node] += 1
        # the rows of a round have a name inside of their recursion only
        if seen[node] == 1 and not isinstance(node, Recursive):
            for inner in node.inputs:
                visit(inner)

    visit(relation)
    return frozenset(node for node, times in seen.items() if times > 1 and _worth_a_name(node))


def _worth_a_name(relation: Relation) -> bool:
    if isinstance(relation, Project) and any(
        len(scalar.sql) > _CHEAP for _, scalar in relation.items if not as_column(scalar)
    ):
        return True
    if isinstance(relation, (Project, Filter)):
        return _worth_a_name(relation.input)
    return bool(relation.inputs)
