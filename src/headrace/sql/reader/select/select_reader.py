"""One SELECT block: expressions, grouping, HAVING, DISTINCT."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.algebra.relations import Aggregate, Project, Relation, Values
from headrace.algebra.types import field_names
from headrace.names import quote
from headrace.sql.reader.context import Context, Ctes, Output
from headrace.sql.reader.names.column_names import Names
from headrace.sql.reader.names.resolve import lexemes_of, of_one_row, prepared_lexemes, resolved, window_lexemes
from headrace.sql.reader.names.scope import AmbiguousNameError, Scope, Visible
from headrace.sql.reader.refusals import not_deterministic, not_maintained
from headrace.sql.reader.scalars.booleans import has_subquery
from headrace.sql.reader.scalars.lexemes import (
    Lexeme,
    Lexemes,
    Role,
    bracketed,
    input_lexeme,
    is_integer,
    keys,
    scalar,
    split_alias,
    unbracketed,
    unquoted,
)
from headrace.sql.reader.scalars.own_names import own_name
from headrace.sql.reader.select.aggregates import (
    Grouping,
    UngroupedError,
    UnsupportedCallError,
    call_at,
    grouped_by_all,
    has_aggregate,
)
from headrace.sql.reader.select.below_grouping import put_below
from headrace.sql.reader.select.group_by_all import without_all
from headrace.sql.reader.select.grouping_sets import GroupingSets, grouping_sets, hive_sets, sets_of, trails
from headrace.sql.reader.select.order_clauses import texts_of, written
from headrace.sql.reader.select.sessions import SessionWindow, session_window
from headrace.sql.reader.select.time_windows import TimeWindow, time_window
from headrace.sql.reader.select.windows import Definitions, Windowing, has_window, named_window, with_definitions
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
        lexemes: The expression.
        names: For a generator: the names of its columns.
    """

    name: str | None
    lexemes: Lexemes
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
        self.aliases: dict[str, Lexemes] = {}
        self.subqueries = SubqueryReader(context, ctes)
        self.shown: list[Lexemes] = []
        self.called: dict[str, list[Lexemes]] = {}
        self.scope = Scope((), context.case_sensitive)
        self.rows: Relation | None = None
        self.texts: dict[str, str] = {}
        self.span: TimeWindow | None = None
        self.session: SessionWindow | None = None

    def read(self, ordering: Sequence[Lexemes] = ()) -> Output:
        """Return the block as algebra.

        Args:
            ordering: What its rows are ordered by before some are cut off.
        """
        select = self.select
        for extra in select.extras:
            if extra.construct != VIEW:
                self.context.refuse_at(extra.construct, extra.at)
        joined = self._source()
        self.rows, self.texts = joined.relation, texts_of(joined.scope)
        select = self.select = without_all(self.context, select, joined.scope)
        relation = self.subqueries.where(joined, select.where)
        self.span = time_window(self.context, select, relation, joined.scope)
        if self.span is None and self.given is None:
            self.session = session_window(self.context, select, relation, joined.scope)
            self.span = None if self.session is None else self.session.span
        if self.span is not None:
            relation, joined = self.span.relation, replace(joined, scope=self.span.scope)
        items = [item for within in select.items for item in self.items_of(within, joined.scope)]
        self.shown, self.scope = [item.lexemes for item in items], joined.scope
        for item in items:
            if item.name is not None:
                self.called.setdefault(self.context.fold(item.name), []).append(item.lexemes)
        first, hidden = len(items), self._hidden(ordering)
        self.shown += hidden
        items += [Item(None, lexemes) for lexemes in hidden]
        items += [Item(None, lexemes) for lexemes in self._key_lexemes()]
        grouped = select.group is not None or any(has_aggregate(item.lexemes) for item in items)
        if grouped or (select.having is not None and self._having_aggregates(select.having)):
            relation, items = self._grouped(relation, items, joined.scope)
        elif select.having is not None:
            self.context.refuse_at("HAVING without grouping", select.having[0] - 1)
        else:
            relation, items = self._valued(relation, items, joined.scope)
            # windows see the rows that a generator gives, but over groups they come before it
            relation, items = self._generated(relation, items)
        if any(has_window(item.lexemes) for item in items):
            relation, items = self._windowed(relation, items)
        relation, items = self._generated(relation, items)
        output = self._project(relation, items, joined.scope)
        if not select.distinct:
            columns = output.relation.columns
            return replace(output, hidden=columns[first : first + len(hidden)], written=self._written(columns))
        return Output(Aggregate(output.relation, output.relation.columns), output.names, output.opaque)

    def _written(self, columns: tuple[str, ...]) -> dict[str, str]:
        """Return how an expression in ORDER BY can say what columns of the result show."""
        if any(map(is_generator, self.shown)):
            return {}
        texts = texts_of(self.scope)
        said = ((name, written(lexemes, texts)) for name, lexemes in zip(columns, self.shown, strict=False))
        return {name: text for name, text in said if text is not None}

    def place(self, lexemes: Lexemes) -> int | None:
        """Return the position of the select item that an expression of ORDER BY repeats.

        None when there is none.
        """
        if any(is_generator(shown) for shown in self.shown):
            return None
        found = self._ordering(lexemes)
        if found is None:
            return None
        return next((i for i, shown in enumerate(self.shown) if keys(shown) == keys(found)), None)

    def _hidden(self, ordering: Sequence[Lexemes]) -> list[Lexemes]:
        """Return the expressions of ORDER BY that no select item shows."""
        groups = self.select.group is not None or any(map(has_aggregate, self.shown))
        if self.select.distinct or self.scope.opaque or any(map(is_generator, self.shown)):
            return []
        hidden: list[Lexemes] = []
        for lexemes in ordering:
            name = lexemes[0].parts[0] if len(lexemes) == 1 and lexemes[0].role is Role.NAME else ""
            alone = self.context.fold(name) in self.called
            if not lexemes or is_integer(lexemes) or alone or has_window(lexemes) or has_subquery(lexemes):
                continue
            found = self._ordering(lexemes)
            known = [keys(each) for each in (*self.shown, *hidden)]
            if found is not None and keys(found) not in known and (groups or not has_aggregate(found)):
                hidden.append(found)
        return hidden

    def _ordering(self, lexemes: Lexemes) -> Lexemes | None:
        """Return an expression of ORDER BY over the columns of FROM.

        None where it is not certain what a name means.

        A name means a column of the result before one of FROM, but not within an aggregate.
        """
        aggregates = {
            i
            for at, lexeme in enumerate(lexemes)
            if lexeme.role is Role.CALL and has_aggregate(lexemes[at : at + 1])
            for i in range(at, call_at(lexemes, at).end)
        }
        out: list[Lexeme] = []
        for at, lexeme in enumerate(lexemes):
            meant = self.called.get(self.context.fold(lexeme.parts[0])) if lexeme.role is Role.NAME else None
            if meant is None or self._same_below(lexeme, meant):
                out.append(lexeme)
            elif at in aggregates or len(lexeme.parts) > 1 or len(meant) > 1:
                return None
            else:
                out += bracketed(meant[0], lexeme)
        return unbracketed(resolved(self.context, tuple(out), self.scope, self.aliases))

    def _same_below(self, lexeme: Lexeme, meant: list[Lexemes]) -> bool:
        """Return whether a name means the same column of FROM as of the result."""
        try:
            found = self.scope.resolve(lexeme.parts)
        except AmbiguousNameError:
            return False
        return found is not None and all(
            _plain_column(each) and each[0].parts[0] == found.column.internal for each in meant
        )

    def _generated(self, relation: Relation, items: list[Item]) -> tuple[Relation, list[Item]]:
        """Return the rows that a generator among the items gives, and its columns in its place."""
        at = next((i for i, item in enumerate(items) if is_generator(item.lexemes)), None)
        if at is None or any(lexeme.role is Role.NAME for lexeme in items[at].lexemes):
            return relation, items
        relation, columns = generated(relation, items[at].lexemes, items[at].names)
        like = items[at].lexemes[0]
        shown = [Item(n, (input_lexeme(c, like),)) for n, c in zip(items[at].names, columns, strict=True)]
        return relation, [*items[:at], *shown, *items[at + 1 :]]

    def _windowed(self, relation: Relation, items: list[Item]) -> tuple[Relation, list[Item]]:
        divided = tuple(lexeme.parts[0] for item in items[len(items) - len(self.keys) :] for lexeme in item.lexemes)
        windowing = Windowing(self.context, relation, divided, self.select.windows, self.texts)
        out = [replace(item, lexemes=windowing.over(item.lexemes)) for item in items]
        if any(lexeme.role is Role.NAME for item in out for lexeme in item.lexemes):
            return relation, out
        return windowing.windows(), out

    def _definitions(self) -> Definitions:
        lexemes = {name: window_lexemes(self.context, within) for name, within in self.select.windows}
        own = {self.context.fold(name): found for name, found in lexemes.items()}
        # one may be another's second name
        return {name: own.get(self.context.fold(named_window(found)), found) for name, found in own.items()}

    def _source(self) -> Joined:
        if self.select.source is None:
            scope = Scope((), self.context.case_sensitive)
            return Joined(Values((), ((),)), scope)
        return self.given or FromReader(self.context, self.ctes).block(self.select)

    def _project(self, relation: Relation, items: list[Item], scope: Scope) -> Output:
        names = Names()
        out = []
        for i, item in enumerate(items, 1):
            resolved_all = all(lexeme.role is not Role.NAME for lexeme in item.lexemes)
            # an unresolved name is in the findings already; the tree is thrown away
            out.append((names.take(item.name or f"col_{i}"), scalar(item.lexemes if resolved_all else ())))
        return Output(Project(relation, tuple(out)), tuple(item.name for item in items), scope.opaque)

    def _valued(self, relation: Relation, items: list[Item], scope: Scope) -> tuple[Relation, list[Item]]:
        """Return the values of subqueries in the select list."""
        if not any(has_subquery(item.lexemes) for item in items):
            return relation, items
        relation, over = self.subqueries.valued(relation, scope, [item.lexemes for item in items])
        return relation, [replace(item, lexemes=lexemes) for item, lexemes in zip(items, over, strict=True)]

    # the select list

    def items_of(self, within: Range, scope: Scope) -> list[Item]:
        """Return a select item, over the columns of FROM; several for a star."""
        star = self._star(within, scope)
        if star is not None:
            return star
        generator = self._generator(within, scope)
        if generator is not None:
            return [generator]
        lexemes, alias = self._without_alias(self._lexemes(within))
        lexemes = with_definitions(self.context, lexemes, self._definitions()) if has_window(lexemes) else lexemes
        name = alias or self._own_name(lexemes, scope)
        expression = unbracketed(resolved(self.context, lexemes, scope, self.aliases, subqueries=True))
        if alias is not None:
            # a second alias of one name would be ambiguous in Spark: the first one stays, Spark judges
            self.aliases.setdefault(self.context.fold(alias), expression)
        elif name is not None and unbracketed(lexemes)[0].role is Role.NAME and not _plain_column(expression):
            # the field of a struct is called by its last name
            self.aliases.setdefault(self.context.fold(name), expression)
        return [Item(name, expression)]

    def _lexemes(self, within: Range) -> Lexemes:
        """Cut a select item or a grouping expression, with the block's time window as a column."""
        lexemes = lexemes_of(self.context, within)
        return lexemes if self.span is None else self.span.over(lexemes)

    def _own_name(self, lexemes: Lexemes, scope: Scope) -> str | None:
        """Return the name of a column that has no alias."""
        if self.span is not None and _plain_column(unbracketed(lexemes)):
            return self.span.function
        return own_name(lexemes, scope.has_column)

    def _generator(self, within: Range, scope: Scope) -> Item | None:
        """Return a select item that is a generator with names for its columns; None for any other."""
        lexemes, alias = split_alias(lexemes_of(self.context, within))
        names = tuple(unquoted(p.text) for p in alias if p.text not in ("(", ",", ")"))
        call = as_generator(lexemes)
        if not names or not is_generator(call):
            return None
        return Item(names[0], resolved(self.context, call, scope, self.aliases), names)

    def _without_alias(self, lexemes: Lexemes) -> tuple[Lexemes, str | None]:
        lexemes, alias = split_alias(lexemes)
        if len(alias) > 1:
            place = self.context.place_of(alias[0].at)
            self.context.refuse(not_maintained("several aliases for one expression", place))
        return lexemes, unquoted(alias[0].text) if alias else None

    def _star(self, within: Range, scope: Scope) -> list[Item] | None:
        """Return the columns of `*`, `alias.*`, with or without EXCEPT.

        None when the item is no star.
        """
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
        excluded = [self.context.fold(t.name) for t in after[2:-1:2]]
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
        if Counter(excluded) - Counter(dict.fromkeys((self.context.fold(c.name) for c in columns), 1)):
            message = "EXCEPT names what is no column, or one column twice."
            self.context.doubt("EXCEPT", message, tokens[at].start)
        like = Lexeme(Role.INPUT, "", tokens[0].start, False)
        kept = [c for c in columns if self.context.fold(c.name) not in excluded]
        return [Item(_shown(c), (input_lexeme(c.internal, like),)) for c in kept]

    def _field_items(self, named: Sequence[Token], scope: Scope) -> list[Item] | None:
        """Return the fields of a struct as items, where Spark can list them.

        None for anything else.
        """
        texts = tuple(token.text for token in named)
        struct = Lexeme(Role.NAME, ".".join(texts), named[0].start, False, tuple(t.name for t in named), texts)
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
        lexemes = (replace(struct, parts=parts, written=(*texts, quote(parts[-1]))) for parts in every)
        return [Item(each.parts[-1], resolved(self.context, (each,), scope)) for each in lexemes]

    # grouping

    def _having_aggregates(self, within: Range) -> bool:
        return has_aggregate(lexemes_of(self.context, within))

    def _grouped(self, relation: Relation, items: list[Item], scope: Scope) -> tuple[Relation, list[Item]]:
        sets = self._sets(items, scope)
        keys = self._keys(items, scope) if sets is None else list(sets.expressions)
        if sets is None or not any(map(has_subquery, keys)):
            relation, keys, items = self._below(relation, scope, keys, items)
        if self.session is not None:
            relation = self.session.rows(self.context, relation, keys)
        grouping = Grouping(keys, sets, any_order=self.context.origins_only)
        grouping.place_of = self.context.place_of
        out = [replace(item, lexemes=self.over(grouping, item.lexemes)) for item in items]
        condition = self.having(scope, grouping)
        if self.session is not None:
            self.session.check_calls(self.context, grouping.calls)
        if not _understood(out, condition, grouping):
            return relation, items
        result: Relation = grouping.relation(relation)
        texts = ((grouping.key(each), written(each, self.texts)) for each in grouping.grouped)
        self.texts = {} if sets is not None else {key: text for key, text in texts if text is not None}
        known = self._keyed(scope, grouping)
        result, out = self._valued(result, out, known)
        return (self.subqueries.filtered(result, known, condition) if condition else result), out

    @staticmethod
    def _keyed(scope: Scope, grouping: Grouping) -> Scope:
        """Return the scope of subqueries over groups: the columns grouped by."""
        if grouping.sets is not None:
            return Scope((), scope.case_sensitive)
        names = {each[0].parts[0]: grouping.key(each) for each in grouping.grouped if _plain_column(each)}
        own = (replace(c, internal=names[c.internal]) for c in scope.columns if c.internal in names)
        return Scope(tuple(own), scope.case_sensitive)

    def _below(
        self, relation: Relation, scope: Scope, keys: list[Lexemes], items: list[Item]
    ) -> tuple[Relation, list[Lexemes], list[Item]]:
        """Return the rows to group, with columns for the subqueries that belong below the grouping."""
        below = put_below(
            keys, [item.lexemes for item in items], lambda parts: self.subqueries.valued(relation, scope, parts)
        )
        if below is None:
            return relation, keys, items
        rows, keys, over = below
        return rows, keys, [replace(item, lexemes=lexemes) for item, lexemes in zip(items, over, strict=True)]

    def _outside_calls(self, grouping: Grouping, lexemes: Lexemes, over: Lexemes) -> None:
        """Refuse subqueries left in aggregate calls and grouping expressions, as in HAVING."""
        inside = [lexeme for lexeme in _subqueries(lexemes) if lexeme not in _subqueries(over)]
        for lexeme in [*inside, *(lexeme for key in grouping.grouped for lexeme in _subqueries(key))]:
            self.context.refuse(not_maintained(lexeme.parts[0], self.context.place_of(lexeme.at)))

    def _keys(self, items: list[Item], scope: Scope) -> list[Lexemes]:
        group = self.select.group
        if group is None:
            return self._key_lexemes()
        if group.all:
            found = [item.lexemes for item in items if grouped_by_all(item.lexemes)]
            for key in found:
                of_one_row(self.context, key, "GROUP BY")
            return found
        # GROUP BY () is one group over everything
        written = (unbracketed(self._lexemes(within)) for within in group.items)
        return [*(self._key(lexemes, items, scope) for lexemes in written if lexemes), *self._key_lexemes()]

    def _key_lexemes(self) -> list[Lexemes]:
        return [(Lexeme(Role.INPUT, quote(name), 0, True, (name,)),) for name in self.keys]

    def _key(self, lexemes: Lexemes, items: list[Item], scope: Scope) -> Lexemes:
        """Return a grouping expression: an ordinal, an alias, or an expression over the input."""
        if is_integer(lexemes) and 0 < int(lexemes[0].text) <= len(items):
            key = items[int(lexemes[0].text) - 1].lexemes
        else:
            key = unbracketed(resolved(self.context, lexemes, scope, self.aliases, subqueries=True))
        of_one_row(self.context, key, "GROUP BY")
        return key

    def _sets(self, items: list[Item], scope: Scope) -> GroupingSets | None:
        """Return the grouping sets; None for a GROUP BY without them."""
        group = self.select.group
        if group is None or not group.extras:
            return None
        if trails(self.context.cursor, group):
            written = [unbracketed(lexemes_of(self.context, within)) for within in group.items]
            lexemes = lexemes_of(self.context, group.extras[0].range)
            elements, first = [hive_sets(group.extras[0].construct, written, lexemes)], written
        else:
            ranges = sorted((*group.items, *(extra.range for extra in group.extras)))
            first = []
            elements = [sets_of(lexemes_of(self.context, within)) for within in ranges]
        keyed = [tuple(tuple(self._key(e, items, scope) for e in row) for row in element) for element in elements]
        found = grouping_sets(keyed, [self._key(each, items, scope) for each in first])
        if found is None:
            self.context.refuse_at("grouping set with a repeated expression", group.extras[0].at)
        return found

    def having(self, scope: Scope, grouping: Grouping) -> Lexemes:
        """Return HAVING over the aggregate's columns; nothing without one."""
        within = self.select.having
        return () if within is None else self.over(grouping, self._having(within, scope, grouping))

    def _having(self, within: Range, scope: Scope, grouping: Grouping) -> Lexemes:
        """Read HAVING, resolving names to columns in aggregates, else keys, else aliases."""
        lexemes = prepared_lexemes(self.context, within)
        alias_first: set[int] = set()
        at = 0
        while at < len(lexemes):
            if lexemes[at].role is Role.CALL and has_aggregate(lexemes[at : at + 1]):
                at = call_at(lexemes, at).end
                continue
            if lexemes[at].role is Role.NAME and self._means_alias(lexemes[at], scope, grouping):
                alias_first.add(at)
            at += 1
        return resolved(
            self.context,
            lexemes,
            scope,
            self.aliases,
            frozenset(alias_first),
            prepared=True,
            subqueries=True,
            functions_first=False,
        )

    def _means_alias(self, lexeme: Lexeme, scope: Scope, grouping: Grouping) -> bool:
        """Return whether a name in HAVING is an alias in spite of a column of that name."""
        if self.context.fold(lexeme.parts[0]) not in self.aliases:
            return False
        try:
            found = scope.resolve(lexeme.parts)
        except AmbiguousNameError:
            return True
        if found is None or found.parts > 1:
            return False
        as_column = keys((input_lexeme(found.column.internal, lexeme),))
        if any(keys(grouped) == as_column for grouped in grouping.grouped):
            return False
        if any(as_column[0] in keys(grouped) for grouped in grouping.grouped):
            message = f"{lexeme.text} is an alias and a column that is grouped by inside an expression."
            place = self.context.place_of(lexeme.at)
            refusal = not_maintained("ambiguous name in HAVING", place, message, "Choose another alias.")
            self.context.refuse(refusal)
        return True

    def over(self, grouping: Grouping, lexemes: Lexemes) -> Lexemes:
        """Return an expression over the aggregate's columns.

        Nothing where that cannot be, which is taken down.
        """
        if self.session is not None:
            self.session.check_read(self.context, lexemes)
        try:
            out = grouping.over(lexemes)
            self._outside_calls(grouping, lexemes, out)
            return out
        except UnsupportedCallError as error:
            place = self.context.place_of(error.lexeme.at)
            if error.unordered:
                self.context.refuse(not_deterministic(error.construct, place, "depends on the order of its rows"))
            else:
                self.context.refuse(not_maintained(error.construct, place))
        except UngroupedError as error:
            name = error.lexeme.parts[0]
            message = (
                f"{name} is read outside an aggregate, and the grouping expressions do not give it as they are spelled."
            )
            self.context.doubt(name, message, error.lexeme.at, "Spell the expression as in GROUP BY, or use its alias.")
        return ()


def divided(
    context: Context, ctes: Ctes, select: Select, relation: Relation, scope: Scope, keys: tuple[str, ...]
) -> Output:
    """Return what a block gives over given rows, for each of their keys by itself."""
    return SelectReader(context, select, ctes, given=Joined(relation, scope), keys=keys).read()


def _subqueries(lexemes: Lexemes) -> list[Lexeme]:
    return [lexeme for lexeme in lexemes if lexeme.role is Role.SUBQUERY]


def _understood(items: list[Item], condition: Lexemes, grouping: Grouping) -> bool:
    """Return whether every expression is over the aggregate, else the tree is discarded."""
    expressions = [*(item.lexemes for item in items), *grouping.grouped]
    return all(expressions) and all(p.role is not Role.NAME for lexemes in (*expressions, condition) for p in lexemes)


def _plain_column(lexemes: Lexemes) -> bool:
    """Return whether an expression is a column."""
    return len(lexemes) == 1 and lexemes[0].role is Role.INPUT


def _shown(column: Visible) -> str | None:
    return None if column.name.startswith("\0") else column.name
