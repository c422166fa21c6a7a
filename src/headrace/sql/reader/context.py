"""The context of reading one text; it collects refusals, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from headrace.algebra.relations import Relation
from headrace.algebra.schema import Column
from headrace.errors import HeadraceError, Place, place_at
from headrace.names import TableName
from headrace.sql.reader.names.column_names import Names
from headrace.sql.reader.names.scope import Scope
from headrace.sql.reader.refusals import Refusal, not_deterministic, not_maintained
from headrace.sql.reader.scalars.lexemes import Lexemes
from headrace.sql.reader.syntax.cursor import Cursor
from headrace.sql.reader.syntax.query_shape import Cte, Query, Select
from headrace.sql.reader.tables.lateral_item import Beside, Lateral

Resolve = Callable[[tuple[str, ...]], TableName]


@dataclass(frozen=True, slots=True)
class ViewText:
    """A view of the catalog, as the `schema` callback returns it.

    Args:
        sql: The query the view was created with.
        resolve: Gives names in that query their full form: the view's own default catalog and namespace.
        columns: The view's column names, when they differ from the query's.
    """

    sql: str
    resolve: Resolve
    columns: tuple[str, ...] = ()


Schema = Callable[[TableName], tuple[Column, ...] | ViewText]


@dataclass(frozen=True, slots=True)
class Output:
    """Relation and visible columns of a query.

    Args:
        relation: Its rows.
        names: The name each column is seen under from outside; None for an expression without alias.
        opaque: Whether a refused construct may add columns that are not known.
        hidden: Columns that only ORDER BY reads; what cuts the rows off takes them away.
        written: How an expression in ORDER BY can say what a column shows, by column, as far as known.
    """

    relation: Relation
    names: tuple[str | None, ...]
    opaque: bool = False
    hidden: tuple[str, ...] = ()
    written: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OrderClause:
    """A place of the text where rows can be ordered by more.

    Args:
        at: Offset of it.
        removed: How many characters what is put there replaces.
        before: What stands before the first expression.
        after: What stands after the last one.
        terms: By column of the rows: how ORDER BY names it.
        values: By column of the rows: how an expression in ORDER BY names it.
    """

    at: int
    removed: int
    before: str
    after: str
    terms: Mapping[str, str]
    values: Mapping[str, str]

    def renamed(self, names: Mapping[str, str]) -> OrderClause:
        """Return it over columns of other names."""
        terms = {names[name]: text for name, text in self.terms.items() if name in names}
        return replace(self, terms=terms, values={names[n]: text for n, text in self.values.items() if n in names})


@dataclass(frozen=True, slots=True)
class BoundCte:
    """A common table expression with the expressions it may refer to itself.

    Args:
        cte: The expression.
        env: Those it may refer to.
        recursive: Whether it may refer to itself, too.
    """

    cte: Cte
    env: Ctes
    recursive: bool = False


Ctes = Mapping[str, BoundCte]


@dataclass
class Findings:
    """Refusals collected over all texts of one reading.

    Args:
        refusals: Constructs that are not maintained.
        doubts: Names that could not be resolved; they count only when nothing else explains them.
        around: What was found before a part was read on trial.
    """

    refusals: list[Refusal] = field(default_factory=list)
    doubts: list[Refusal] = field(default_factory=list)
    around: Findings | None = None

    @property
    def any(self) -> bool:
        """Return whether anything stands in the way, found on trial or before."""
        return bool(self.refusals or self.doubts) or (self.around is not None and self.around.any)

    def all(self) -> tuple[Refusal, ...]:
        """Return everything worth telling, each once, in the order of the text."""

        def where(refusal: Refusal) -> tuple[int, int]:
            return (refusal.place.line, refusal.place.column) if refusal.place else (0, 0)

        return tuple(sorted(dict.fromkeys(self.refusals or self.doubts), key=where))


@dataclass
class Context:
    """One text being read: the user's, or a view's.

    Args:
        cursor: Its tokens.
        resolve: Gives table names their full form.
        schema: Columns of a table, or the text of a view.
        case_sensitive: Whether names differ by case.
        findings: Where refusals go.
        read_query: Reads a nested query.
        read_view: Reads a view's text, named at an offset of this one.
        read_lateral: Reads a LATERAL subquery that does more than SELECT … FROM … WHERE.
        read_divided: Reads a SELECT block over given rows, for each of their keys by itself.
        read_on: Gives a side of a join columns for the subqueries of a condition.
        keep: Keeps the rows for which a condition with subqueries is true.
        outer: For a view: its place in the user's text.
        read_ctes: Common table expressions read already, by the token they begin at.
        views: The views this text is inside of.
        depth: How many subqueries of expressions it is inside of.
        describe: The analysed schema of a SQL text, by Spark; None where nobody can be asked.
        functions: The user's own functions of one row, by name, and whether they are deterministic.
        orders: Where the user's text orders rows by which something goes, by the place of that.
        origins_only: Whether only the origins of columns are asked for, so that values need not follow from sources.
        moving_literals: Texts of which Spark makes a time where it casts them, as written, each with its place.
        unusual: Options of the session by which Spark reads texts in another way than usual.
    """

    cursor: Cursor
    resolve: Resolve
    schema: Schema
    case_sensitive: bool
    findings: Findings
    read_query: Callable[[Context, Query, Ctes], Output]
    read_view: Callable[[Context, TableName, ViewText, int], Output]
    read_lateral: Callable[[Context, Ctes, Lateral], Beside | None]
    read_divided: Callable[[Context, Ctes, Select, Relation, Scope, tuple[str, ...]], Output]
    read_on: Callable[[Context, Ctes, Relation, Scope, Names, Lexemes], tuple[Relation, Lexemes]]
    keep: Callable[[Context, Ctes, Relation, Scope, Names, Lexemes], Relation]
    outer: Place | None = None
    read_ctes: dict[int, Output] = field(default_factory=dict)
    views: tuple[TableName, ...] = ()
    depth: int = 0
    describe: Callable[[str], tuple[Column, ...]] | None = None
    functions: Mapping[str, bool] = field(default_factory=dict)
    orders: dict[Place, OrderClause] = field(default_factory=dict)
    origins_only: bool = False
    moving_literals: dict[str, Place] = field(default_factory=dict)
    unusual: frozenset[str] = frozenset()

    def trial(self) -> Context:
        """Return a context to read a part in whose findings may be dropped."""
        return replace(self, findings=Findings(around=self.findings), read_ctes=dict(self.read_ctes))

    def place(self, token: int) -> Place:
        """Return the place of a token in the user's text."""
        return self.place_of(self.cursor.offset(token))

    def place_of(self, offset: int) -> Place:
        """Return the place of an offset of this text in the user's text."""
        return self.outer or place_at(self.cursor.sql, offset)

    def refuse(self, refusal: Refusal) -> None:
        """Take down a refusal; inside a view its place becomes the view's."""
        self.findings.refusals.append(self._seen_from_outside(refusal))

    def refuse_value(self, construct: str, place: Place, why: str) -> None:
        """Refuse a value that is no function of the sources, unless only origins are asked for."""
        if not self.origins_only:
            self.refuse(not_deterministic(construct, place, why))

    def doubt(self, construct: str, message: str, offset: int, hint: str | None = None) -> None:
        """Take down something that is refused only because it could not be understood."""
        refusal = not_maintained(construct, self.place_of(offset), message, hint)
        self.findings.doubts.append(self._seen_from_outside(refusal))

    def refuse_at(self, construct: str, token: int, message: str | None = None) -> None:
        """Refuse a construct that begins at a token."""
        self.refuse(not_maintained(construct, self.place(token), message))

    def fold(self, name: str) -> str:
        """Return a name for comparing."""
        return name if self.case_sensitive else name.lower()

    def _seen_from_outside(self, refusal: Refusal) -> Refusal:
        if self.outer is None:
            return refusal
        message = f"In view {self.views[-1]}: {refusal.message}"
        return Refusal(refusal.code, refusal.construct, message, self.outer, refusal.hint)

    def table(self, parts: tuple[str, ...], token: int) -> tuple[TableName, tuple[Column, ...] | ViewText]:
        """Return the full name of a table and what it is.

        Raises:
            UserError: The name does not resolve, or no such table exists; with the place.
        """
        try:
            name = self.resolve(parts)
            return name, self.schema(name)
        except HeadraceError as error:
            error.place = error.place or self.place(token)
            raise
