"""Subqueries in expressions.

EXISTS and IN become semi-joins, their opposites anti-joins; under OR, a column that says whether there is a partner. A
subquery without outer references that is asked for its existence, or for its one value, becomes a relation of one row;
a value that depends on outer columns by equalities, the aggregate grouped by the other sides of these, joined.
"""

from __future__ import annotations

from headrace.algebra.moving import moving_filter
from headrace.algebra.relations import Aggregate, AggregateCall, Existence, Filter, Join, Project, Relation, Union
from headrace.algebra.scalar import FALSE, TRUE, Scalar, all_of, cast, column, compose, equals
from headrace.algebra.tree import identity
from headrace.algebra.types import cast_sql, mentions
from headrace.sql.reader.context import Context, Ctes
from headrace.sql.reader.names.column_names import Names
from headrace.sql.reader.names.resolve import lexemes_of, of_one_row
from headrace.sql.reader.names.scope import Scope
from headrace.sql.reader.scalars.booleans import Combined, Condition, Part, condition, has_subquery
from headrace.sql.reader.scalars.collations import INSIDE, under_one_collation
from headrace.sql.reader.scalars.lexemes import (
    EXISTS,
    IN,
    Lexeme,
    Lexemes,
    Role,
    cells,
    in_brackets,
    input_lexeme,
    scalar,
)
from headrace.sql.reader.spark_types import types_in
from headrace.sql.reader.subqueries.by_time import by_time
from headrace.sql.reader.subqueries.correlation import (
    RefusedError,
    Rows,
    alone,
    correlated,
    deeper,
    query_at,
    refuse,
    understood,
)
from headrace.sql.reader.subqueries.existence_only import only_asked_for_rows
from headrace.sql.reader.subqueries.grouped_partners import groups, one_row, one_row_met, partners
from headrace.sql.reader.subqueries.partner_marks import looked_up
from headrace.sql.reader.subqueries.scalar_subqueries import Values
from headrace.sql.reader.syntax.query_shape import Range
from headrace.sql.reader.tables.from_reader import Joined

_ZEROS = (
    "NOT IN over floating-point numbers: where Spark answers it by hashing, 0.0 and -0.0 are different there."
    " NOT EXISTS takes them for equal."
)


class SubqueryReader:
    """Reads the subqueries of one SELECT block.

    Args:
        context: The text.
        ctes: The common table expressions in sight.
    """

    def __init__(self, context: Context, ctes: Ctes) -> None:
        self.context = context
        self.ctes = ctes

    def where(self, joined: Joined, within: Range | None) -> Relation:
        """Return the joined inputs under WHERE."""
        if within is None:
            return joined.relation
        return self.filtered(joined.relation, joined.scope, lexemes_of(self.context, within))

    def filtered(self, relation: Relation, scope: Scope, lexemes: Lexemes) -> Relation:
        """Return the rows for which a condition is true.

        Args:
            relation: The rows.
            scope: What names mean that are not resolved yet.
            lexemes: The condition.
        """
        rows = _rows(relation, scope)
        try:
            self._filter(rows, lexemes)
        except RefusedError:
            return relation
        return rows.relation

    def valued(self, relation: Relation, scope: Scope, lists: list[Lexemes]) -> tuple[Relation, list[Lexemes]]:
        """Return rows with scalar subqueries as columns, and expressions over these rows."""
        rows = _rows(relation, scope)
        try:
            out = [self._values().put_in(rows, lexemes) if has_subquery(lexemes) else lexemes for lexemes in lists]
        except RefusedError:
            return relation, lists
        return rows.relation, out

    def _values(self) -> Values:
        return Values(self.context, self.ctes, self._filter, self._over)

    # conditions

    def _filter(self, rows: Rows, lexemes: Lexemes) -> None:
        of_one_row(self.context, lexemes, "a condition")
        moving, lexemes = by_time(lexemes)
        for each in moving:
            timed = understood(self.context, each, rows.scope)
            rows.relation = moving_filter(rows.relation, scalar(timed))
        if not lexemes:
            return
        whole = condition(lexemes)
        parts = whole.parts if isinstance(whole, Combined) and whole.word == "AND" else (whole,)
        # what needs no subquery comes first: fewer rows are left for the others
        for part in sorted(parts, key=_holds_subquery):
            if isinstance(part, Part) and _asks_for_existence(part.lexemes):
                self._keep(rows, part)
            elif isinstance(part, Part) and has_subquery(part.lexemes):
                over = self._values().put_in(rows, part.lexemes, only_true=True)
                self._keep_if(rows, Part(over, part.negated).written())
            else:
                self._keep_if(rows, self._over(rows, part))

    def _keep_if(self, rows: Rows, lexemes: Lexemes) -> None:
        rows.relation = Filter(rows.relation, scalar(lexemes))

    def _over(self, rows: Rows, part: Condition) -> Lexemes:
        """Return a condition whose subqueries have become columns."""
        if isinstance(part, Part) and not part.lexemes:
            self.context.doubt("condition", "A part of a condition is missing.", 0)
            raise RefusedError
        if isinstance(part, Combined):
            out: list[Lexeme] = []
            for each in part.parts:
                over = self._over(rows, each)
                word = [Lexeme(Role.OPERATOR, part.word, over[0].at, True)] if out else []
                out += [*word, *in_brackets(over)]
            return tuple(out)
        if _asks_for_existence(part.lexemes):
            return self._mark(rows, part)
        if has_subquery(part.lexemes):
            return Part(self._values().put_in(rows, part.lexemes), part.negated).written()
        return Part(understood(self.context, part.lexemes, rows.scope), part.negated).written()

    # existence

    def _keep(self, rows: Rows, part: Part) -> None:
        """Keep the rows for which a partner exists, or none does."""
        lexeme = part.lexemes[-1]
        known = self._of_one_row(rows, part)
        if known is not None:
            self._keep_if(rows, known)
            return
        unrelated, right, pairs, on, negated = self._partners(rows, part)
        if unrelated and not pairs:
            flag = self._flags(rows, right, None)[0]
            self._keep_if(rows, Part((input_lexeme(flag, lexeme),), negated).written())
        elif unrelated and negated and len(pairs) == 1:
            self._not_in(rows, right, pairs[0], lexeme)
        else:
            rows.relation = Existence(rows.relation, right, _met(pairs, on, negated), anti=negated)

    def _not_in(self, rows: Rows, right: Relation, pair: tuple[str, str], lexeme: Lexeme) -> None:
        """Read x NOT IN R: true over an empty R, else by NULLs and equality.

        It holds when neither x nor a value of R is NULL, and no value equals x.
        """
        if any(self._is_float(*each) for each in ((rows.relation, pair[0]), (right, pair[1]))):
            refuse(self.context, lexeme, "NOT IN of floats", _ZEROS)
        rows.relation = Existence(rows.relation, right, _equal(pair), anti=True)
        some, nulls = self._flags(rows, right, pair[1])
        parts = {"some": column(some), "nulls": column(nulls), "x": column(pair[0])}
        rows.relation = Filter(rows.relation, compose("NOT {some} OR ({x} IS NOT NULL AND NOT {nulls})", **parts))

    def _is_float(self, relation: Relation, name: str) -> bool:
        return mentions(self._type(relation, column(name)), "float", "double")

    def _type(self, relation: Relation, value: Scalar) -> str:
        """Return the type of a value over some rows; "" where nobody can be asked."""
        types = types_in(self.context, Project(relation, (("value", value),)))
        return types[0].type if types else ""

    def _as_compared(self, left: Relation, x: Scalar, right: Relation, y: Scalar) -> tuple[Scalar, Scalar]:
        """Return both sides of IN as values of the type that Spark compares them in.

        Without ANSI mode, IN compares a text and a number as texts, and = as numbers.
        """
        types = self._type(left, x), self._type(right, y)
        if self.context.describe is None or "" in types or len({mentions(type_, "string") for type_ in types}) == 1:
            return x, y
        either = ", ".join(cast_sql("NULL", type_) for type_ in types)
        (common,) = self.context.describe(f"SELECT coalesce({either}) AS value")
        return cast(x, common.type), cast(y, common.type)

    def _mark(self, rows: Rows, part: Part) -> Lexemes:
        """Return a column for a partner's existence, as a condition refers to it."""
        lexeme = part.lexemes[-1]
        known = self._of_one_row(rows, part)
        if known is not None:
            return known
        unrelated, right, pairs, on, negated = self._partners(rows, part)
        if unrelated and not pairs:
            return Part((input_lexeme(self._flags(rows, right, None)[0], lexeme),), negated).written()
        equal = [_equality(pair, lexeme) for pair in pairs]
        if not (negated and pairs):
            found = looked_up(self.context, rows, right, (*on, *equal), lexeme)
            if found is not None:
                return Part(found, negated).written()
        theta = _met(pairs, on, negated)
        name, columns = rows.names.take("exists"), rows.relation.columns
        rows.relation = Union(
            tuple(
                Project(
                    Existence(rows.relation, right, theta, anti=anti),
                    (*identity(columns), (name, FALSE if anti else TRUE)),
                )
                for anti in (False, True)
            )
        )
        return Part((input_lexeme(name, lexeme),), negated).written()

    def _flags(self, rows: Rows, right: Relation, value: str | None) -> tuple[str, ...]:
        """Join a row that says if `right` has rows and, when needed, a NULL value in some."""
        some, nulls = rows.names.take("some"), rows.names.take("nulls")
        calls: tuple[AggregateCall, ...] = (AggregateCall("n", "count"),)
        items = [(some, compose("{n} > 0", n=column("n")))]
        if value is not None:
            calls += (AggregateCall("m", "count", column(value)),)
            items.append((nulls, compose("{n} > {m}", n=column("n"), m=column("m"))))
        rows.relation = Join(rows.relation, Project(Aggregate(right, (), calls), tuple(items)))
        return tuple(name for name, _ in items)

    def _partners(
        self, rows: Rows, part: Part
    ) -> tuple[bool, Relation, list[tuple[str, str]], tuple[Lexemes, ...], bool]:
        """Return the relation, pairs and conditions of an EXISTS or IN.

        Returns:
            Whether it is the same for all rows; its relation; columns that IN compares; other conditions; whether the
            opposite is asked for.
        """
        lexeme = part.lexemes[-1]
        context = deeper(self.context, lexeme)
        reader = SubqueryReader(context, self.ctes)
        query = query_at(context, self.ctes, lexeme)
        if lexeme.parts[0] == EXISTS:
            query = only_asked_for_rows(context, query)
        asked, negated = self._looked_for(rows, part)
        output = alone(context, query, self.ctes)
        if output is not None:
            if not asked:
                return True, output.relation, [], (), negated
            right: Relation = output.relation
            shown: list[Lexemes] = [(input_lexeme(c, lexeme),) for c in right.columns]
            conditions: tuple[Lexemes, ...] = ()
        else:
            body = groups(query)
            if body is not None:
                inner = partners(context, body, self.ctes, rows, lexeme, reader._filter)
            else:
                inner = correlated(context, query, self.ctes, rows, lexeme, reader._filter)
            conditions = inner.conditions
            right = inner.rows.relation
            if not asked:
                return False, right, [], conditions, negated
            if not all(inner.items):
                refuse(self.context, lexeme, IN, "The select list of the subquery could not be read.")
            shown = list(inner.items)
        if len(shown) != len(asked):
            refuse(self.context, lexeme, IN, "IN compares another number of values than the subquery has columns.")
        sides = [self._sides(x, y, lexeme) for x, y in zip(asked, shown, strict=True)]
        compared = [self._as_compared(rows.relation, scalar(x), right, scalar(y)) for x, y in sides]
        fresh = tuple((rows.names.take("in"), y) for _, y in compared)
        right = Project(right, (*(() if output is not None else identity(right.columns)), *fresh))
        pairs = [(rows.fresh("value", x), name) for (x, _), (name, _) in zip(compared, fresh, strict=True)]
        return output is not None, right, pairs, conditions, negated

    def _looked_for(self, rows: Rows, part: Part) -> tuple[tuple[Lexemes, ...], bool]:
        """Return what IN looks for, nothing for EXISTS; and whether the opposite is asked for."""
        if part.lexemes[-1].parts[0] != IN:
            return (), part.negated
        opposite = part.lexemes[-3].role is Role.OPERATOR and part.lexemes[-3].text.upper() == "NOT"
        written = cells(part.lexemes[: -3 if opposite else -2])
        asked = tuple(understood(self.context, each, rows.scope) for each in written)
        return asked, part.negated is not opposite

    def _of_one_row(self, rows: Rows, part: Part) -> Lexemes | None:
        """Return EXISTS or IN over one row for each outer row, as a condition.

        None for any other.
        """
        lexeme = part.lexemes[-1]
        context = deeper(self.context, lexeme)
        query = query_at(context, self.ctes, lexeme)
        if lexeme.parts[0] == EXISTS:
            query = only_asked_for_rows(context, query)
        body = one_row(context, query)
        if body is None or alone(context, query, self.ctes) is not None:
            return None
        asked, negated = self._looked_for(rows, part)
        reader, values = SubqueryReader(context, self.ctes), self._values()
        found = one_row_met(
            context,
            body,
            self.ctes,
            rows,
            lexeme,
            reader._filter,
            asked,
            lambda inner: values.grouped(rows, inner, lexeme),
        )
        return Part(found, negated).written()

    def _sides(self, asked: Lexemes, own: Lexemes, lexeme: Lexeme) -> tuple[Lexemes, Lexemes]:
        """Return both operands of IN, under the collation that one of them may name."""
        sides = under_one_collation(asked, own)
        if sides is None:
            refuse(self.context, lexeme, IN, INSIDE)
        assert sides is not None
        return sides


def decided_on(
    context: Context, ctes: Ctes, relation: Relation, scope: Scope, names: Names, lexemes: Lexemes
) -> tuple[Relation, Lexemes]:
    """Return a join's side with columns for a condition's subqueries, and the condition.

    Args:
        context: The text.
        ctes: The common table expressions in sight.
        relation: The side.
        scope: What names mean there.
        names: Hands out columns that are free on both sides.
        lexemes: The condition.
    """
    rows = Rows(relation, scope, names)
    try:
        over = SubqueryReader(context, ctes)._over(rows, condition(lexemes))
    except RefusedError:
        if not context.findings.any:
            context.doubt("ON", "A subquery in ON could not be read.", lexemes[0].at)
        return relation, lexemes
    return rows.relation, over


def kept(context: Context, ctes: Ctes, relation: Relation, scope: Scope, names: Names, lexemes: Lexemes) -> Relation:
    """Return the rows for which a condition with subqueries is true.

    Arguments as for `decided_on`.
    """
    rows = Rows(relation, scope, names)
    try:
        SubqueryReader(context, ctes)._filter(rows, lexemes)
    except RefusedError:
        return relation
    return rows.relation


def _rows(relation: Relation, scope: Scope) -> Rows:
    names = Names()
    for name in relation.columns:
        names.take(name)
    return Rows(relation, scope, names)


def _holds_subquery(part: Condition) -> bool:
    return isinstance(part, Combined) or has_subquery(part.lexemes)


def _asks_for_existence(lexemes: Lexemes) -> bool:
    """Return whether it is EXISTS (…), or `… IN (…)`."""
    last = lexemes[-1] if lexemes else None
    if last is None or last.role is not Role.SUBQUERY or has_subquery(lexemes[:-1]):
        return False
    if last.parts[0] == EXISTS:
        return len(lexemes) == 1
    return last.parts[0] == IN and len(lexemes) > 2 and lexemes[-2].text.upper() == "IN"


def _equal(pair: tuple[str, str]) -> Scalar:
    return equals(column(pair[0]), column(pair[1]))


def _equality(pair: tuple[str, str], like: Lexeme) -> Lexemes:
    return (input_lexeme(pair[0], like), Lexeme(Role.OPERATOR, "=", like.at, True), input_lexeme(pair[1], like))


def _met(pairs: list[tuple[str, str]], conditions: tuple[Lexemes, ...], negated: bool) -> Scalar:
    """Return the condition that partners fulfil.

    For the opposite of IN: the one that they do not fail.
    """
    met = [compose("COALESCE({p}, true)", p=p) if negated else p for p in map(_equal, pairs)]
    return all_of((*map(scalar, conditions), *met)) or TRUE
