"""Describes a step's operators in the words of the query, without maintenance columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from headrace.algebra.moving import is_moving
from headrace.algebra.relations import (
    Aggregate,
    AggregateCall,
    Empty,
    Existence,
    Filter,
    Generate,
    Join,
    LookupJoin,
    Moment,
    OuterJoin,
    Recursive,
    Relation,
    Round,
    Scan,
    SemiJoin,
    Stored,
    TopK,
    Union,
    Values,
    Window,
)
from headrace.algebra.text import call_text, window_text
from headrace.ivm.program import COMPANION, STATE
from headrace.names import NOW, RESERVED_PREFIX

MOST_CHARACTERS = 100
MOST_NAMES = 4

_QUALIFIED = re.compile(rf"{RESERVED_PREFIX}(?:old|new|key)\.")
_QUOTED = re.compile(r"`([A-Za-z_][\w.]*)`")


def operators(relation: Relation, steps: Mapping[str, str]) -> Iterator[str]:
    """Yield the operators of a relation, inputs indented below.

    Renaming, and counting how often rows occur, is left out: every step does that.

    Args:
        relation: The relation.
        steps: Words for the steps that it reads, by name.
    """
    yield from _lines(relation, steps, 0)


def _lines(node: Relation, steps: Mapping[str, str], depth: int) -> Iterator[str]:
    words = _words(node, steps)
    if words is not None:
        yield "  " * depth + words
        depth += 1
    for each in node.inputs:
        yield from _lines(each, steps, depth)


def _words(node: Relation, steps: Mapping[str, str]) -> str | None:
    """Return an operator in words; None of those that are left out."""
    match node:
        case Scan():
            kinds = {Moment.CHANGE: "change of {}", Moment.BEFORE: "{} as it was", Moment.AFTER: "{}"}
            return kinds[node.moment].format(node.source)
        case Stored():
            return {STATE: "the stored result", COMPANION: "the companion"}.get(node.name) or steps.get(
                node.name, node.name
            )
        case Values() | Empty():
            return f"{len(node.rows) if isinstance(node, Values) else 0} literal rows"
        case Filter():
            return _after("filter", node.condition.sql)
        case Join():
            return "cross join" if node.condition is None else _after("join on", node.condition.sql) or "join"
        case OuterJoin():
            kind = "full join" if node.full else "left join"
            return _after(f"{kind} on", node.condition.sql) or kind
        case Existence() if is_moving(node):
            return _after("filter by time", node.condition.sql.replace(NOW, "now"))
        case Existence():
            kind = "rows without a partner" if node.anti else "rows with a partner"
            return _after(f"{kind} on", node.condition.sql) or kind
        case SemiJoin():
            keys = _names(a for a, _ in node.on)
            if not keys:
                return "rows without a match among" if node.anti else "rows with a match among"
            return f"rows whose {keys} {'are not' if node.anti else 'are'} among"
        case LookupJoin():
            keys = _names(a for a, _ in node.on)
            if node.whole:
                return f"full join by {keys}"
            return f"look up by {keys}" if keys else "look up"
        case Union():
            return "all rows of"
        case Aggregate():
            return _group(node)
        case Window():
            calls = ", ".join(filter(None, (_plain(window_text(call)) for call in node.calls)))
            by = f"window by {_names(node.partition) or 'all rows'}"
            return f"{by}: {_short(calls)}" if calls else by
        case TopK():
            order = _short(", ".join(filter(None, (_plain(str(key)) for key in node.order))))
            by = f" by {order}" if order else ""
            return f"all after {node.offset}{by}" if node.limit is None else f"first {node.limit}{by}"
        case Generate():
            return _after("generate", node.generator.sql)
        case Recursive() | Round():
            return f"recursion {node.name}" if isinstance(node, Recursive) else f"rows of the last round of {node.name}"
        case _:
            return None


def _group(node: Aggregate) -> str:
    keys = _names(node.keys)
    if not node.calls:
        return f"distinct {keys or 'rows'}"
    calls = [words for call in node.calls if (words := _call(call)) is not None]
    if calls:
        by = f"group by {keys}" if keys else "group" if node.keys else "one group"
        return f"{by}: {_short(', '.join(calls))}"
    return f"add up changes by {keys}" if keys else "add up changes"


def _call(call: AggregateCall) -> str | None:
    return _plain(call_text(call))


def _after(word: str, sql: str) -> str | None:
    text = _plain(sql)
    return None if text is None else f"{word} {_short(text)}"


def _names(names: Iterable[str]) -> str:
    shown = [name for each in names if (name := _plain(each)) is not None]
    more = len(shown) - MOST_NAMES
    return ", ".join(shown[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _plain(sql: str) -> str | None:
    """Return SQL without unneeded quotes; None where it is about maintenance columns."""
    text = _QUOTED.sub(r"\1", _QUALIFIED.sub("", sql))
    return None if RESERVED_PREFIX in text else " ".join(text.split())


def _short(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"
