"""A tree as indented text, for `explain` and for failing tests."""

from __future__ import annotations

from headrace.algebra.relations import (
    Aggregate,
    AggregateCall,
    Empty,
    Existence,
    Filter,
    Generate,
    Join,
    LookupJoin,
    OuterJoin,
    Project,
    Recursive,
    Relation,
    Replicate,
    Round,
    Scan,
    SemiJoin,
    Stored,
    TopK,
    Values,
    Window,
    WindowCall,
)
from headrace.algebra.scalar import as_column


def text(relation: Relation, indent: int = 0) -> str:
    """Render a tree, one node a line, inputs indented below it.

    Args:
        relation: The tree.
        indent: Levels of indentation of the first line.
    """
    lines = ["  " * indent + label(relation)]
    lines += [text(node, indent + 1) for node in relation.inputs]
    return "\n".join(lines)


def label(relation: Relation) -> str:
    """Return one node in one line."""
    details = _details(relation)
    return f"{type(relation).__name__} {details}" if details else type(relation).__name__


def _details(relation: Relation) -> str:
    match relation:
        case Scan():
            return f"{relation.source} {relation.moment.value} [{', '.join(_field(*f) for f in relation.fields)}]"
        case Stored():
            return f"{relation.name} [{', '.join(relation.names)}]"
        case Empty() | Values():
            return f"[{', '.join(relation.columns)}]"
        case Project():
            items = (name if as_column(e) == name else f"{e} AS {name}" for name, e in relation.items)
            return f"[{', '.join(items)}]"
        case Filter():
            return str(relation.condition)
        case Generate():
            return f"{relation.generator} AS {', '.join(relation.names)}"
        case TopK():
            rows = "all" if relation.limit is None else relation.limit
            order = f" by {', '.join(map(str, relation.order))}" if relation.order else ""
            return f"{rows} after {relation.offset}{order}"
        case Round():
            return f"{relation.name} [{', '.join(relation.columns)}]"
        case Recursive():
            return relation.name if relation.levels is None else f"{relation.name}, at most {relation.levels} rounds"
        case Replicate():
            return f"times {relation.copies}"
        case Join():
            return f"on {relation.condition}" if relation.condition else "cross"
        case OuterJoin():
            return f"{'full' if relation.full else 'left'} on {relation.condition}{_partners(relation.unique)}"
        case Existence():
            return f"{'anti ' if relation.anti else ''}on {relation.condition}{_partners(relation.unique)}"
        case SemiJoin() | LookupJoin():
            kind = "anti " if isinstance(relation, SemiJoin) and relation.anti else ""
            kind = "full " if isinstance(relation, LookupJoin) and relation.whole else kind
            return kind + "on " + (" and ".join(f"{a} <=> {b}" for a, b in relation.on) or "anything")
        case Aggregate():
            calls = ", ".join(f"{call_text(c)} AS {c.name}" for c in relation.calls)
            return f"by [{', '.join(relation.keys)}] [{calls}]"
        case Window():
            calls = ", ".join(f"{window_text(c)} AS {c.name}" for c in relation.calls)
            return f"by [{', '.join(relation.partition)}] [{calls}]"
    return ""


def _partners(unique: bool) -> str:
    return " (one partner at most)" if unique else ""


def _field(name: str, source: str) -> str:
    return name if name == source else f"{source} AS {name}"


def call_text(call: AggregateCall) -> str:
    """Return an aggregate call in SQL, over the columns of its input."""
    return call.written(str)


def window_text(call: WindowCall) -> str:
    """Return a window function in SQL, over the columns of its input, without its PARTITION BY."""
    order = ", ".join(map(str, call.order))
    return f"{call.call} OVER ({' '.join(part for part in (order and f'ORDER BY {order}', call.frame) if part)})"
