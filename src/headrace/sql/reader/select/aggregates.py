"""Splits a grouped SELECT into keys, aggregate calls, and expressions over both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from headrace.algebra.relations import Aggregate, AggregateCall, Project, Relation, SortKey
from headrace.algebra.scalar import Scalar, cast, column
from headrace.algebra.tree import identity
from headrace.errors import Place
from headrace.sql.reader.functions.aggregate_functions import (
    ACCUMULATED,
    COLLECTING,
    COPIES_DO_NOT_MATTER,
    OF_CONDITIONS,
    ORDER_TAKERS,
    ORDERED,
    RECOMPUTED,
    settled_mode,
)
from headrace.sql.reader.functions.builtin_functions import AGGREGATES
from headrace.sql.reader.functions.determinism import ORDER_DEPENDENT
from headrace.sql.reader.names.column_names import Names, plain_name
from headrace.sql.reader.scalars.lexemes import (
    Lexeme,
    Lexemes,
    Role,
    bracketed,
    closing_bracket,
    input_lexeme,
    keys,
    render,
    scalar,
    split_arguments,
    unbracketed,
)
from headrace.sql.reader.scalars.matching import COMPARISON, binding, match_at
from headrace.sql.reader.select.alike_keys import may_have_another, unclear
from headrace.sql.reader.select.grouping_sets import Copies, GroupingSets
from headrace.sql.reader.select.windows import directed


@dataclass(frozen=True, slots=True)
class Call:
    """An aggregate call found in an expression.

    Args:
        function: Its lower-case name.
        arguments: Its arguments.
        distinct: Whether DISTINCT was written.
        filter: The FILTER condition.
        end: Index after its last lexeme.
        within: What stands after ORDER BY in WITHIN GROUP.
    """

    function: str
    arguments: tuple[Lexemes, ...]
    distinct: bool
    filter: Lexemes | None
    end: int
    within: Lexemes = ()


def has_aggregate(lexemes: Lexemes) -> bool:
    """Return whether an expression calls an aggregate function."""
    return any(lexeme.role is Role.CALL and lexeme.parts[0] in AGGREGATES for lexeme in lexemes)


def grouped_by_all(lexemes: Lexemes) -> bool:
    """Return whether GROUP BY ALL groups by an expression: it calls no aggregate at all."""
    return not any(lexeme.role in (Role.CALL, Role.WINDOW) and lexeme.parts[0] in AGGREGATES for lexeme in lexemes)


def call_at(lexemes: Lexemes, at: int) -> Call:
    """Return the aggregate call whose name stands at `at`."""
    closing = closing_bracket(lexemes, at + 1)
    inside = lexemes[at + 2 : closing]
    distinct = bool(inside) and inside[0].role is Role.OPERATOR and inside[0].text.upper() == "DISTINCT"
    if distinct or (inside and inside[0].role is Role.OPERATOR and inside[0].text.upper() == "ALL"):
        inside = inside[1:]
    condition, end = None, closing + 1
    within: Lexemes = ()
    if end + 2 < len(lexemes) and lexemes[end].role is Role.OPERATOR and lexemes[end].text.upper() == "WITHIN":
        last = closing_bracket(lexemes, end + 2)
        within, end = lexemes[end + 5 : last], last + 1
    if end < len(lexemes) and lexemes[end].role is Role.OPERATOR and lexemes[end].text.upper() == "FILTER":
        last = closing_bracket(lexemes, end + 1)
        condition, end = lexemes[end + 3 : last], last + 1
    return Call(lexemes[at].parts[0], split_arguments(inside), distinct, condition, end, within)


class UnsupportedCallError(Exception):
    """An aggregate call that is not maintained.

    Args:
        construct: Its name in SQL words.
        lexeme: Where it stands.
        unordered: Whether the reason is that rows have no order.
    """

    def __init__(self, construct: str, lexeme: Lexeme, *, unordered: bool = False) -> None:
        super().__init__(construct)
        self.construct = construct
        self.lexeme = lexeme
        self.unordered = unordered


class UngroupedError(Exception):
    """A column that is neither grouped by nor inside an aggregate, as far as can be seen."""

    def __init__(self, lexeme: Lexeme) -> None:
        super().__init__(lexeme.text)
        self.lexeme = lexeme


@dataclass
class Grouping:
    """Collects what one grouped SELECT needs from its input.

    Args:
        grouped: The grouping expressions.
        sets: Grouping sets over them; None for a plain GROUP BY.
        names: Hands out column names.
        place_of: Where an offset of the text is; None where nobody asks.
        any_order: Whether calls may depend on the order of rows, as they may where only origins are asked for.
    """

    grouped: list[Lexemes]
    sets: GroupingSets | None = None
    names: Names = field(default_factory=Names)
    place_of: Callable[[int], Place] | None = None
    any_order: bool = False
    _key_names: list[str] = field(default_factory=list)
    _arguments: dict[tuple[tuple[str, ...], ...], tuple[str, Scalar]] = field(default_factory=dict)
    _calls: dict[tuple[object, ...], AggregateCall] = field(default_factory=dict)
    _bits: dict[str, Scalar] = field(default_factory=dict)
    _unclear: tuple[str, Lexeme] | None = None

    def __post_init__(self) -> None:
        unique = {keys(lexemes): lexemes for lexemes in self.grouped}
        self.grouped = list(unique.values())
        for i, lexemes in enumerate(self.grouped, 1):
            self._key_names.append(self.names.take(plain_name(lexemes) or f"key_{i}"))
        self._copies = None if self.sets is None else Copies.named(self.sets, self.names)
        self._unclear = None if self.sets is None else unclear(self.sets)

    def over(self, lexemes: Lexemes) -> Lexemes:
        """Return an expression of the SELECT list or HAVING, over the aggregate's columns.

        Raises:
            UnsupportedCallError: It calls an aggregate that is not maintained.
            UngroupedError: It reads a column that is gone after grouping.
        """
        if self._unclear is not None:
            raise UnsupportedCallError(*self._unclear)
        out: list[Lexeme] = []
        at = 0
        while at < len(lexemes):
            lexeme = lexemes[at]
            if (key := self._key_at(lexemes, at)) is not None:
                whole = len(unbracketed(lexemes)) == len(unbracketed(self.grouped[key]))
                if self.sets is not None and not whole and may_have_another(self.sets, self.grouped[key], lexemes):
                    raise UnsupportedCallError("expression over a column of GROUPING SETS", lexeme)
                out.append(input_lexeme(self._key_names[key], lexeme))
                at += len(self.grouped[key])
            elif (taken := order_taken(lexemes, at)) is not None:
                end, inside = taken
                out.append(input_lexeme(self._call(call_at(lexemes, at + 2), lexemes[at + 2], inside), lexeme))
                at = end
            elif lexeme.role is Role.CALL and lexeme.parts[0] in ("grouping", "grouping_id"):
                call = call_at(lexemes, at)
                out.append(input_lexeme(self._grouping(call, lexeme), lexeme))
                at = call.end
            elif lexeme.role is Role.CALL and lexeme.parts[0] in AGGREGATES:
                call = call_at(lexemes, at)
                if call.end < len(lexemes) and lexemes[call.end].text.upper() in ("IGNORE", "RESPECT"):
                    raise UnsupportedCallError(f"{lexeme.parts[0]}() {lexemes[call.end].text.upper()} NULLS", lexeme)
                out.append(input_lexeme(self._call(call, lexeme), lexeme))
                at = call.end
            elif lexeme.role is Role.INPUT:
                raise UngroupedError(lexeme)
            else:
                out.append(lexeme)
                at += 1
        return tuple(out)

    def key(self, lexemes: Lexemes) -> str:
        """Return the column of a grouping expression."""
        return self._key_names[[keys(each) for each in self.grouped].index(keys(lexemes))]

    @property
    def calls(self) -> tuple[AggregateCall, ...]:
        """Return the aggregates that expressions have been found to call so far."""
        return tuple(self._calls.values())

    def relation(self, source: Relation) -> Relation:
        """Return the aggregate over its input, once every expression has been through `over`."""
        items = [(name, scalar(lexemes)) for name, lexemes in zip(self._key_names, self.grouped, strict=True)]
        items += self._arguments.values()
        calls = self.calls
        if not self._key_names and not calls:
            calls = (AggregateCall(self.names.take("rows"), "count"),)
        rows = Project(source, tuple(items))
        if self._copies is None:
            return Aggregate(rows, tuple(self._key_names), calls)
        keys = (*self._key_names, *self._copies.columns)
        grouped = Aggregate(self._copies.of(rows, self._key_names), keys, calls)
        return Project(grouped, (*identity(grouped.columns), *self._bits.items()))

    def _grouping(self, call: Call, lexeme: Lexeme) -> str:
        """Return the column that `grouping(x)` or `grouping_id(…)` reads."""
        asked = [keys(each) for each in call.arguments]
        own = [keys(each) for each in self.grouped]
        if self._copies is None or (asked and call.function == "grouping_id" and asked != own):
            raise UnsupportedCallError(f"{call.function}()", lexeme)
        if call.function == "grouping_id":
            return self._copies.number
        if len(asked) != 1 or asked[0] not in own:
            raise UnsupportedCallError("grouping()", lexeme)
        at = own.index(asked[0])
        name = f"grouping.{at}"
        self._bits[name] = cast(self._copies.bit(at), "tinyint")
        return name

    def _key_at(self, lexemes: Lexemes, at: int) -> int | None:
        """Return the longest grouping expression that stands here."""
        fitting = [i for i, key in enumerate(self.grouped) if match_at(lexemes, at, key) and _reads(key)]
        return max(fitting, key=lambda i: len(self.grouped[i]), default=None)

    def _call(self, call: Call, lexeme: Lexeme, inside: str = "{}") -> str:
        function = _supported(call, lexeme, ordered=inside != "{}", any_order=self.any_order)
        if call.function in OF_CONDITIONS:
            call = replace(call, arguments=tuple(_as_condition(each) for each in call.arguments))
        if function in ("count_if", "count") and (call.function == "count_if" or len(call.arguments) > 1):
            call, function = _counting(call, lexeme)
        argument = self._first(call)
        condition = None if call.filter is None else self._argument(call.filter, "filter")
        more = tuple(self._argument(each, "arg") if _reads(each) else scalar(each) for each in call.arguments[1:])
        distinct = call.distinct and function not in COPIES_DO_NOT_MATTER
        order = (directed(each) for each in split_arguments(call.within))
        within = tuple(SortKey(self._argument(each, "order"), direction) for each, direction in order)
        identity = (function, argument, condition, more, distinct, inside, within)
        if identity not in self._calls:
            stem = f"{function}_{argument.sql.strip('`')}" if argument and argument.columns else function
            stem = "count_all" if argument is None and not within else stem
            name = self.names.take(stem)
            self._calls[identity] = AggregateCall(
                name,
                function,
                argument,
                condition,
                more=more,
                distinct=distinct,
                inside=inside,
                within=within,
                place=None if self.place_of is None else self.place_of(lexeme.at),
            )
        return self._calls[identity].name

    def _first(self, call: Call) -> Scalar | None:
        """Return the first argument; a constant beside WITHIN GROUP must stay one."""
        if not call.arguments or call.arguments[0][0].role is Role.STAR:
            return None
        first = call.arguments[0]
        return scalar(first) if call.within and not _reads(first) else self._argument(first, "arg")

    def _argument(self, lexemes: Lexemes, stem: str) -> Scalar:
        """Return a column of the projection below the aggregate that holds the argument."""
        same = keys(lexemes)
        for name, grouped in zip(self._key_names, self.grouped, strict=True):
            # with grouping sets an argument means the value, also where the set leaves the key out
            if keys(grouped) == same and self.sets is None:
                return column(name)
        if same not in self._arguments:
            self._arguments[same] = (self.names.take(plain_name(lexemes) or f"{stem}_1"), scalar(lexemes))
        return column(self._arguments[same][0])


def _reads(key: Lexemes) -> bool:
    return any(lexeme.role is Role.INPUT for lexeme in key)


def _supported(call: Call, lexeme: Lexeme, *, ordered: bool, any_order: bool) -> str:
    """Return the canonical function name.

    Raises:
        UnsupportedCallError: It is not maintained.
    """
    function = ACCUMULATED.get(call.function, call.function)
    found = _arguments_of(call, ordered=ordered)
    if found is None and any_order and call.function in ORDER_DEPENDENT:
        found = (0, MANY)
    if found is None:
        raise UnsupportedCallError(f"{call.function}()", lexeme, unordered=call.function in ORDER_DEPENDENT)
    least, most = found
    if not least <= len(call.arguments) <= most or not all(call.arguments):
        raise UnsupportedCallError(f"{call.function}() with {len(call.arguments)} arguments", lexeme)
    if call.within and function not in ORDERED and not any_order:
        raise UnsupportedCallError(f"{call.function}() WITHIN GROUP", lexeme)
    first = call.arguments[0] if call.arguments else (lexeme,)
    if first[0].role is Role.STAR and (call.function != "count" or len(first) != 1 or first[0].text != "*"):
        raise UnsupportedCallError(f"{call.function}({first[0].text})", lexeme)
    if any(p.role is Role.CALL and p.parts[0] in AGGREGATES for each in call.arguments for p in each):
        raise UnsupportedCallError("aggregate of an aggregate", lexeme)
    if any(p.role is Role.WINDOW for each in call.arguments for p in each):
        raise UnsupportedCallError("aggregate of a window function", lexeme)
    return function


def _arguments_of(call: Call, *, ordered: bool) -> tuple[int, int] | None:
    """Return the least and greatest number of arguments; None for a call that is not maintained."""
    if call.within:
        return ORDERED.get(call.function, (0, MANY))
    if call.function == "count":
        return 1, MANY
    if call.function in ACCUMULATED or (call.function == "count_if" and not call.distinct):
        return 1, 1
    if call.function in COLLECTING and ordered:
        return 1, 1
    if call.function == "mode" and settled_mode(call.arguments):
        return 2, 2
    return RECOMPUTED.get(call.function)


MANY = 1000
"""More arguments than anybody writes."""


def _counting(call: Call, lexeme: Lexeme) -> tuple[Call, str]:
    """Rewrite `count_if(x)` and `count(a, b)` as counts of rows with a filter."""
    if call.distinct:
        return call, "count"
    if call.function == "count_if":
        wanted = [call.arguments[0]]
    else:
        wanted = [(*bracketed(each, lexeme), *_words(lexeme, "IS", "NOT", "NULL")) for each in call.arguments]
    wanted += [call.filter] if call.filter else []
    condition = list(bracketed(wanted[0], lexeme))
    for each in wanted[1:]:
        condition += [*_words(lexeme, "AND"), *bracketed(each, replace(lexeme, spaced=True))]
    star = Lexeme(Role.STAR, "*", lexeme.at, False)
    return Call("count", ((star,),), False, tuple(condition), call.end), "count"


def _as_condition(argument: Lexemes) -> Lexemes:
    """Return an argument as a truth value."""
    if 0 < binding(argument) <= COMPARISON:
        return argument
    first = argument[0]
    cast = Lexeme(Role.CALL, "CAST", first.at, False, ("cast",))
    opening = Lexeme(Role.OPERATOR, "(", first.at, False)
    as_type = (Lexeme(Role.OPERATOR, "AS", first.at, True), Lexeme(Role.LITERAL, "BOOLEAN", first.at, True))
    return (cast, opening, replace(first, spaced=False), *argument[1:], *as_type, replace(opening, text=")"))


def _words(like: Lexeme, *texts: str) -> Lexemes:
    roles = {"NULL": Role.LITERAL}
    return tuple(Lexeme(roles.get(text, Role.OPERATOR), text, like.at, True) for text in texts)


def order_taken(lexemes: Lexemes, at: int) -> tuple[int, str] | None:
    """Return the function around an aggregate that ignores its array's order, if any.

    Returns:
        The end of the outer call, and its text with `{}` in the place of the aggregate; None when it is not so.
    """
    outer = lexemes[at]
    inner = at + 2
    if outer.role is not Role.CALL or outer.parts[0] not in ORDER_TAKERS or inner >= len(lexemes):
        return None
    if lexemes[inner].role is not Role.CALL or lexemes[inner].parts[0] not in COLLECTING:
        return None
    closing = closing_bracket(lexemes, at + 1)
    arguments = split_arguments(lexemes[inner:closing])
    least, most = ORDER_TAKERS[outer.parts[0]]
    whole = call_at(lexemes, inner).end - inner == len(arguments[0])
    if not (whole and least <= len(arguments) <= most) or any(_reads(each) for each in arguments[1:]):
        return None
    rest = "".join(f", {render(each)}" for each in arguments[1:])
    return closing + 1, f"{outer.text}({{}}{rest})"
