"""One SELECT block: expressions, grouping, HAVING, DISTINCT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.algebra.relations import Aggregate, Project, Relation, Values
from headrace.algebra.types import field_names
from headrace.names import quote
from headrace.sql.reader.context import Context, Ctes, Output
from headrace.sql.reader.names.column_names import Names
from headrace.sql.reader.names.resolve import pieces_of, resolved, window_pieces
from headrace.sql.reader.names.scope import AmbiguousNameError, Scope, Visible
from headrace.sql.reader.refusals import not_deterministic, not_maintained
from headrace.sql.reader.scalars.booleans import has_subquery
from headrace.sql.reader.scalars.pieces import (
    Piece,
    Pieces,
    Role,
    bracketed,
    input_piece,
    is_integer,
    keys,
    scalar,
    unbracketed,
    unquoted,
)
from headrace.sql.reader.select.aggregates import Grouping, UngroupedError, UnsupportedCallError, call_at, has_aggregate
from headrace.sql.reader.select.below_grouping import put_below
from headrace.sql.reader.select.grouping_sets import GroupingSets, grouping_sets, hive_sets, sets_of, trails
from headrace.sql.reader.select.windows import Definitions, Windowing, has_window, with_definitions
from headrace.sql.reader.spark_types import types_in
from headrace.sql.reader.subqueries.subquery_reader import SubqueryReader
from headrace.sql.reader.syntax.query_shape import Range, Select
from headrace.sql.reader.syntax.tokens import Kind, Token
from headrace.sql.reader.tables.from_reader import FromReader, Joined
from headrace.sql.reader.tables.generators import VIEW, as_generator, generated, is_generator


@dataclass(frozen=True, slots=True)
class Item:
    """One output expression, or a generator of several.

    Args:
        name: The column's name; None when it has neither alias nor a name of its own.
        pieces: The expression.
        names: For a generator: the names of its columns.
    """

    name: str | None
    pieces: Pieces
    names: tuple[str, ...] = ()


class SelectReader:
    """Reads one SELECT block.

    Args:
        context: The text.
        select: The block.
        ctes: The common table expressions in sight.
        given: The rows it reads, where its FROM has been read already.
        keys: Columns of these that divide it: its groups, partitions and distinct rows are those of each key by
            itself. They come last in what it gives.
    """

    def __init__(
        self, context: Context, select: Select, ctes: Ctes, *, given: Joined | None = None, keys: tuple[str, ...] = ()
    ) -> None:
        self.context = context
        self.select = select
        self.ctes = ctes
        self.given = given
        self.keys = keys
        self.aliases: dict[str, Pieces] = {}
        self.subqueries = SubqueryReader(context, ctes)
        self.shown: list[Pieces] = []
        self.called: dict[str, list[Pieces]] = {}
        self.scope = Scope((), context.case_sensitive)
        self.rows: Relation | None = None

    def read(self, ordering: Sequence[Pieces] = ()) -> Output:
        """The block as algebra.

        Args:
            ordering: What its rows are ordered by before some are cut off.
        """
        select = self.select
        for extra in select.extras:
            if extra.construct != VIEW:
                self.context.refuse_at(extra.construct, extra.at)
        joined = self._source()
        self.rows = joined.relation
        relation = self.subqueries.where(joined, select.where)
        items = [item for within in select.items for item in self.items_of(within, joined.scope)]
        self.shown, self.scope = [item.pieces for item in items], joined.scope
        for item in items:
            if item.name is not None:
                self.called.setdefault(self.context.fold(item.name), []).append(item.pieces)
        first, hidden = len(items), self._hidden(ordering)
        self.shown += hidden
        items += [Item(None, pieces) for pieces in hidden]
        items += [Item(None, pieces) for pieces in self._key_pieces()]
        grouped = select.group is not None or any(has_aggregate(item.pieces) for item in items)
        if grouped or (select.having is not None and self._having_aggregates(select.having)):
            relation, items = self._grouped(relation, items, joined.scope)
        elif select.having is not None:
            self.context.refuse_at("HAVING without grouping", select.having[0] - 1)
        else:
            relation, items = self._valued(relation, items, joined.scope)
        if any(has_window(item.pieces) for item in items):
            relation, items = self._windowed(relation, items)
        relation, items = self._generated(relation, items)
        output = self._project(relation, items, joined.scope)
        if not select.distinct:
            return replace(output, hidden=output.relation.columns[first : first + len(hidden)])
        return Output(Aggregate(output.relation, output.relation.columns), output.names, output.opaque)

    def place(self, pieces: Pieces) -> int | None:
        """The position of the select item that an expression of ORDER BY repeats; None when there is none."""
        if any(is_generator(shown) for shown in self.shown):
            return None
        found = self._ordering(pieces)
        if found is None:
            return None
        return next((i for i, shown in enumerate(self.shown) if keys(shown) == keys(found)), None)

    def _hidden(self, ordering: Sequence[Pieces]) -> list[Pieces]:
        """The expressions of ORDER BY that no select item shows."""
        groups = self.select.group is not None or any(map(has_aggregate, self.shown))
        if self.select.distinct or self.scope.opaque or any(map(is_generator, self.shown)):
            return []
        hidden: list[Pieces] = []
        for pieces in ordering:
            name = pieces[0].parts[0] if len(pieces) == 1 and pieces[0].role is Role.NAME else ""
            alone = self.context.fold(name) in self.called
            if not pieces or is_integer(pieces) or alone or has_window(pieces) or has_subquery(pieces):
                continue
            found = self._ordering(pieces)
            known = [keys(each) for each in (*self.shown, *hidden)]
            if found is not None and keys(found) not in known and (groups or not has_aggregate(found)):
                hidden.append(found)
        return hidden

    def _ordering(self, pieces: Pieces) -> Pieces | None:
        """An expression of ORDER BY over the columns of FROM; None where it is not certain what a name means.

        A name means a column of the result before one of FROM, but not within an aggregate.
        """
        aggregates = {
            i
            for at, piece in enumerate(pieces)
            if piece.role is Role.CALL and has_aggregate(pieces[at : at + 1])
            for i in range(at, call_at(pieces, at).end)
        }
        out: list[Piece] = []
        for at, piece in enumerate(pieces):
            meant = self.called.get(self.context.fold(piece.parts[0])) if piece.role is Role.NAME else None
            if meant is None or self._same_below(piece, meant):
                out.append(piece)
            elif at in aggregates or len(piece.parts) > 1 or len(meant) > 1:
                return None
            else:
                out += bracketed(meant[0], piece)
        return unbracketed(resolved(self.context, tuple(out), self.scope, self.aliases))

    def _same_below(self, piece: Piece, meant: list[Pieces]) -> bool:
        """Return whether a name means the same column of FROM as of the result."""
        try:
            found = self.scope.resolve(piece.parts)
        except AmbiguousNameError:
            return False
        return found is not None and all(
            _plain_column(each) and each[0].parts[0] == found.column.internal for each in meant
        )

    def _generated(self, relation: Relation, items: list[Item]) -> tuple[Relation, list[Item]]:
        """The rows that a generator among the items gives, and its columns in its place."""
        at = next((i for i, item in enumerate(items) if is_generator(item.pieces)), None)
        if at is None or any(piece.role is Role.NAME for piece in items[at].pieces):
            return relation, items
        relation, columns = generated(relation, items[at].pieces, items[at].names)
        like = items[at].pieces[0]
        shown = [Item(n, (input_piece(c, like),)) for n, c in zip(items[at].names, columns, strict=True)]
        return relation, [*items[:at], *shown, *items[at + 1 :]]

    def _windowed(self, relation: Relation, items: list[Item]) -> tuple[Relation, list[Item]]:
        divided = tuple(piece.parts[0] for item in items[len(items) - len(self.keys) :] for piece in item.pieces)
        windowing = Windowing(self.context, relation, divided)
        out = [replace(item, pieces=windowing.over(item.pieces)) for item in items]
        if any(piece.role is Role.NAME for item in out for piece in item.pieces):
            return relation, out
        return windowing.windows(), out

    def _definitions(self) -> Definitions:
        pieces = {name: window_pieces(self.context, within) for name, within in self.select.windows}
        return {self.context.fold(name): found for name, found in pieces.items()}

    def _source(self) -> Joined:
        if self.select.source is None:
            scope = Scope((), self.context.case_sensitive)
            return Joined(Values((), ((),)), scope)
        return self.given or FromReader(self.context, self.ctes).block(self.select)

    def _project(self, relation: Relation, items: list[Item], scope: Scope) -> Output:
        names = Names()
        out = []
        for i, item in enumerate(items, 1):
            resolved_all = all(piece.role is not Role.NAME for piece in item.pieces)
            # an unresolved name is in the findings already; the tree is thrown away
            out.append((names.take(item.name or f"col_{i}"), scalar(item.pieces if resolved_all else ())))
        return Output(Project(relation, tuple(out)), tuple(item.name for item in items), scope.opaque)

    def _valued(self, relation: Relation, items: list[Item], scope: Scope) -> tuple[Relation, list[Item]]:
        """The values of subqueries in the select list."""
        if not any(has_subquery(item.pieces) for item in items):
            return relation, items
        relation, over = self.subqueries.valued(relation, scope, [item.pieces for item in items])
        return relation, [replace(item, pieces=pieces) for item, pieces in zip(items, over, strict=True)]

    # the select list

    def items_of(self, within: Range, scope: Scope) -> list[Item]:
        """A select item, over the columns of FROM; several for a star."""
        star = self._star(within, scope)
        if star is not None:
            return star
        generator = self._generator(within, scope)
        if generator is not None:
            return [generator]
        pieces, alias = self._without_alias(pieces_of(self.context, within))
        pieces = with_definitions(self.context, pieces, self._definitions()) if has_window(pieces) else pieces
        name = alias or _own_name(pieces)
        expression = unbracketed(resolved(self.context, pieces, scope, self.aliases, subqueries=True))
        if alias is not None:
            # a second alias of one name would be ambiguous in Spark: the first one stays, Spark judges
            self.aliases.setdefault(self.context.fold(alias), expression)
        return [Item(name, expression)]

    def _generator(self, within: Range, scope: Scope) -> Item | None:
        """A select item that is a generator with names for its columns; None for any other."""
        pieces = pieces_of(self.context, within)
        first = next((i for i, piece in enumerate(pieces) if piece.role is Role.ALIAS), len(pieces))
        names = tuple(unquoted(p.text) for p in pieces[first:] if p.text not in ("(", ",", ")"))
        explicit = first > 0 and pieces[first - 1].text.upper() == "AS"
        call = as_generator(pieces[: first - 1 if explicit else first])
        if not names or not is_generator(call):
            return None
        return Item(names[0], resolved(self.context, call, scope, self.aliases), names)

    def _without_alias(self, pieces: Pieces) -> tuple[Pieces, str | None]:
        first = len(pieces)
        while first and pieces[first - 1].role is Role.ALIAS:
            first -= 1
        if first == len(pieces):
            return pieces, None
        written = pieces[first:]
        if len(written) > 1:
            place = self.context.place_of(written[0].at)
            self.context.refuse(not_maintained("several aliases for one expression", place))
        explicit = first > 0 and pieces[first - 1].role is Role.OPERATOR and pieces[first - 1].text.upper() == "AS"
        text = written[0].text
        name = unquoted(text)
        return pieces[: first - 1 if explicit else first], name

    def _star(self, within: Range, scope: Scope) -> list[Item] | None:
        """The columns of `*`, `alias.*`, with or without EXCEPT; None when the item is no star."""
        tokens = self.context.cursor.tokens[within[0] : within[1]]
        at = next((i for i, token in enumerate(tokens) if token.text == "*" and token.kind is Kind.OP), None)
        if (
            at is None
            or at % 2
            or any(not t.is_name for t in tokens[:at:2])
            or any(t.text != "." for t in tokens[1:at:2])
        ):
            return None
        after = tokens[at + 1 :]
        excluded = {self.context.fold(t.name) for t in after[2:-1:2]}
        if after and (after[0].word != "EXCEPT" or any(t.text != "," for t in after[3:-1:2])):
            return None
        columns = scope.star(tuple(token.name for token in tokens[:at:2]))
        fields = self._field_items(tokens[:at:2], scope) if columns is None and not scope.opaque else None
        if fields is not None:
            return [item for item in fields if self.context.fold(item.name or "") not in excluded]
        if columns is None:
            self.context.refuse_at(
                f"{''.join(t.text for t in tokens[: at + 1])} of a struct or a joined table", within[0]
            )
            return []
        if scope.opaque:
            return []
        like = Piece(Role.INPUT, "", tokens[0].start, False)
        kept = [c for c in columns if self.context.fold(c.name) not in excluded]
        return [Item(_shown(c), (input_piece(c.internal, like),)) for c in kept]

    def _field_items(self, named: Sequence[Token], scope: Scope) -> list[Item] | None:
        """The fields of a struct as items, where Spark can be asked which it has; None for anything else."""
        texts = tuple(token.text for token in named)
        struct = Piece(Role.NAME, ".".join(texts), named[0].start, False, tuple(t.name for t in named), texts)
        try:
            known = self.rows is not None and scope.resolve(struct.parts) is not None
        except AmbiguousNameError:
            known = False
        if not known or self.rows is None:
            return None
        value = scalar(resolved(self.context, (struct,), scope))
        types = types_in(self.context, Project(self.rows, (("value", value),)))
        names = field_names(types[0].type) if types else None
        if names is None:
            return None
        every = ((*struct.parts, name) for name in names)
        pieces = (replace(struct, parts=parts, texts=(*texts, quote(parts[-1]))) for parts in every)
        return [Item(each.parts[-1], resolved(self.context, (each,), scope)) for each in pieces]

    # grouping

    def _having_aggregates(self, within: Range) -> bool:
        return has_aggregate(pieces_of(self.context, within))

    def _grouped(self, relation: Relation, items: list[Item], scope: Scope) -> tuple[Relation, list[Item]]:
        sets = self._sets(items, scope)
        keys = self._keys(items, scope) if sets is None else list(sets.expressions)
        if sets is None or not any(map(has_subquery, keys)):
            relation, keys, items = self._below(relation, scope, keys, items)
        grouping = Grouping(keys, sets)
        grouping.place_of = self.context.place_of
        out = [replace(item, pieces=self.over(grouping, item.pieces)) for item in items]
        condition = self.having(scope, grouping)
        if not _understood(out, condition, grouping):
            return relation, items
        result: Relation = grouping.relation(relation)
        known = self._keyed(scope, grouping)
        result, out = self._valued(result, out, known)
        return (self.subqueries.filtered(result, known, condition) if condition else result), out

    @staticmethod
    def _keyed(scope: Scope, grouping: Grouping) -> Scope:
        """What subqueries over groups may read of these: columns that are grouped by."""
        if grouping.sets is not None:
            return Scope((), scope.case_sensitive)
        names = {each[0].parts[0]: grouping.key(each) for each in grouping.grouped if _plain_column(each)}
        own = (replace(c, internal=names[c.internal]) for c in scope.columns if c.internal in names)
        return Scope(tuple(own), scope.case_sensitive)

    def _below(
        self, relation: Relation, scope: Scope, keys: list[Pieces], items: list[Item]
    ) -> tuple[Relation, list[Pieces], list[Item]]:
        """The rows to group, with columns for the subqueries that belong below the grouping."""
        below = put_below(
            keys, [item.pieces for item in items], lambda parts: self.subqueries.valued(relation, scope, parts)
        )
        if below is None:
            return relation, keys, items
        rows, keys, over = below
        return rows, keys, [replace(item, pieces=pieces) for item, pieces in zip(items, over, strict=True)]

    def _outside_calls(self, grouping: Grouping, pieces: Pieces, over: Pieces) -> None:
        """Refuse subqueries that are left within aggregate calls and grouping expressions, in HAVING for instance."""
        inside = [piece for piece in _subqueries(pieces) if piece not in _subqueries(over)]
        for piece in [*inside, *(piece for key in grouping.grouped for piece in _subqueries(key))]:
            self.context.refuse(not_maintained(piece.parts[0], self.context.place_of(piece.at)))

    def _keys(self, items: list[Item], scope: Scope) -> list[Pieces]:
        group = self.select.group
        if group is None:
            return self._key_pieces()
        if group.all:
            return [item.pieces for item in items if not has_aggregate(item.pieces)]
        # GROUP BY () is one group over everything
        written = (unbracketed(pieces_of(self.context, within)) for within in group.items)
        return [*(self._key(pieces, items, scope) for pieces in written if pieces), *self._key_pieces()]

    def _key_pieces(self) -> list[Pieces]:
        return [(Piece(Role.INPUT, quote(name), 0, True, (name,)),) for name in self.keys]

    def _key(self, pieces: Pieces, items: list[Item], scope: Scope) -> Pieces:
        """A grouping expression: an ordinal, an alias, or an expression over the input."""
        if is_integer(pieces) and 0 < int(pieces[0].text) <= len(items):
            return items[int(pieces[0].text) - 1].pieces
        return unbracketed(resolved(self.context, pieces, scope, self.aliases, subqueries=True))

    def _sets(self, items: list[Item], scope: Scope) -> GroupingSets | None:
        """The grouping sets; None for a GROUP BY without them."""
        group = self.select.group
        if group is None or not group.extras:
            return None
        if trails(self.context.cursor, group):
            written = [unbracketed(pieces_of(self.context, within)) for within in group.items]
            pieces = pieces_of(self.context, group.extras[0].range)
            elements, first = [hive_sets(group.extras[0].construct, written, pieces)], written
        else:
            ranges = sorted((*group.items, *(extra.range for extra in group.extras)))
            first = []
            elements = [sets_of(pieces_of(self.context, within)) for within in ranges]
        keyed = [tuple(tuple(self._key(e, items, scope) for e in row) for row in element) for element in elements]
        found = grouping_sets(keyed, [self._key(each, items, scope) for each in first])
        if found is None:
            self.context.refuse_at("grouping set with a repeated expression", group.extras[0].at)
        return found

    def having(self, scope: Scope, grouping: Grouping) -> Pieces:
        """HAVING over the aggregate's columns; nothing without one."""
        within = self.select.having
        return () if within is None else self.over(grouping, self._having(within, scope, grouping))

    def _having(self, within: Range, scope: Scope, grouping: Grouping) -> Pieces:
        """HAVING, where a name means a column inside aggregates, else a column grouped by, else an alias."""
        pieces = pieces_of(self.context, within)
        alias_first: set[int] = set()
        at = 0
        while at < len(pieces):
            if pieces[at].role is Role.CALL and has_aggregate(pieces[at : at + 1]):
                at = call_at(pieces, at).end
                continue
            if pieces[at].role is Role.NAME and self._means_alias(pieces[at], scope, grouping):
                alias_first.add(at)
            at += 1
        return resolved(self.context, pieces, scope, self.aliases, frozenset(alias_first), subqueries=True)

    def _means_alias(self, piece: Piece, scope: Scope, grouping: Grouping) -> bool:
        """Return whether a name in HAVING, outside aggregates, is an alias although a column has that name too."""
        if self.context.fold(piece.parts[0]) not in self.aliases:
            return False
        try:
            found = scope.resolve(piece.parts)
        except AmbiguousNameError:
            return True
        if found is None or found.parts > 1:
            return False
        as_column = keys((input_piece(found.column.internal, piece),))
        if any(keys(grouped) == as_column for grouped in grouping.grouped):
            return False
        if any(as_column[0] in keys(grouped) for grouped in grouping.grouped):
            message = f"{piece.text} is an alias and a column that is grouped by inside an expression."
            place = self.context.place_of(piece.at)
            refusal = not_maintained("ambiguous name in HAVING", place, message, "Choose another alias.")
            self.context.refuse(refusal)
        return True

    def over(self, grouping: Grouping, pieces: Pieces) -> Pieces:
        """An expression over the aggregate's columns; nothing where that cannot be, which is taken down."""
        try:
            out = grouping.over(pieces)
            self._outside_calls(grouping, pieces, out)
            return out
        except UnsupportedCallError as error:
            place = self.context.place_of(error.piece.at)
            if error.unordered:
                self.context.refuse(not_deterministic(error.construct, place, "depends on the order of its rows"))
            else:
                self.context.refuse(not_maintained(error.construct, place))
        except UngroupedError as error:
            name = error.piece.parts[0]
            message = (
                f"{name} is read outside an aggregate, and the grouping expressions do not give it as they are spelled."
            )
            self.context.doubt(name, message, error.piece.at, "Spell the expression as in GROUP BY, or use its alias.")
        return ()


def _subqueries(pieces: Pieces) -> list[Piece]:
    return [piece for piece in pieces if piece.role is Role.SUBQUERY]


def _understood(items: list[Item], condition: Pieces, grouping: Grouping) -> bool:
    """Return whether every expression could be put over the aggregate; otherwise the tree is thrown away."""
    expressions = [*(item.pieces for item in items), *grouping.grouped]
    return all(expressions) and all(p.role is not Role.NAME for pieces in (*expressions, condition) for p in pieces)


def _plain_column(pieces: Pieces) -> bool:
    """Return whether an expression is a column."""
    return len(pieces) == 1 and pieces[0].role is Role.INPUT


def _own_name(pieces: Pieces) -> str | None:
    return pieces[0].parts[-1] if len(pieces) == 1 and pieces[0].role is Role.NAME else None


def _shown(column: Visible) -> str | None:
    return None if column.name.startswith("\0") else column.name
