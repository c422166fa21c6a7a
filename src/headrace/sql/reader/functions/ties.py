"""Decides if window functions are deterministic where ORDER BY leaves ties.

`rank` and sums over peers give equal rows equal results. `row_number`, `lag`, ROWS frames go by position, and rows that
ORDER BY does not tell apart have no fixed position. That does not show in two cases: the rows are unique by the columns
of PARTITION BY and ORDER BY (as after a GROUP BY these columns), or rows that agree in these columns agree in
everything the query reads, so that exchanging them changes nothing. In the second case functions with different ORDER
BYs must not meet: which number of one goes with which of the other is open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Join,
    Project,
    Relation,
    Replicate,
    TopK,
    Window,
    WindowCall,
)
from headrace.algebra.scalar import as_column
from headrace.algebra.schema import Column
from headrace.algebra.tree import walk
from headrace.algebra.types import mentions
from headrace.sql.reader.refusals import Refusal, not_deterministic
from headrace.sql.reader.syntax.tokens import words

POSITIONAL = words(
    """
    row_number lag lead first first_value last last_value any_value nth_value ntile collect_list array_agg max_by min_by
    """
)
"""Functions that go by the position of rows, whatever the frame."""

_PEERS = words("rank dense_rank percent_rank cume_dist")

SETTLED = _PEERS | words(
    """
    any avg bit_and bit_or bit_xor bool_and bool_or corr count count_if covar_pop covar_samp every kurtosis max mean
    median min percentile regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
    skewness some std stddev stddev_pop stddev_samp sum try_avg try_sum var_pop var_samp variance
    """
)
"""Functions of a bag of rows: by position only in a frame that is."""

Names = frozenset[str]
Dependency = tuple[Names, Names]
"""Rows that agree in the first columns agree in the second."""

TypesOf = Callable[[Relation], tuple[Column, ...]]

Known = Callable[[Relation], Iterable[Names]]
"""Keys of a relation that follow from those of sources."""


def nothing_known(_: Relation) -> tuple[Names, ...]:
    """No source has a key."""
    return ()


def undetermined(tree: Relation, types_of: TypesOf, known: Known = nothing_known) -> tuple[Refusal, ...]:
    """Return the window functions of a query that may give other results for the same rows.

    Args:
        tree: The query, reading no column that it does not use.
        types_of: Spark's column types of a relation.
        known: What is known of keys besides what the query itself tells.
    """
    inner = {id(node.input) for node in walk(tree) if isinstance(node, Window)}
    stacks = (_stack(node) for node in walk(tree) if isinstance(node, Window) and id(node) not in inner)
    found = [refusal for stack in stacks for refusal in _refusals(stack, types_of, known)]
    cuts = [node for node in walk(tree) if isinstance(node, TopK) and not _total(node, types_of, known)]
    return (*found, *map(_cut_refusal, cuts))


def _total(topk: TopK, types_of: TypesOf, known: Known) -> bool:
    """Return whether ORDER BY leaves no tie between different rows."""
    pins = frozenset(name for key in topk.order if (name := as_column(key.scalar)) is not None)
    keys = [*unique(topk.input), *known(topk.input)]
    if any(key <= pins for key in keys):
        return True
    exact = frozenset(column.name for column in types_of(topk.input) if equal_means_same(column.type))
    fixed = closure(pins & exact, dependencies(topk.input))
    return set(topk.columns) <= fixed or any(key <= pins | fixed for key in keys)


def _cut_refusal(topk: TopK) -> Refusal:
    why = "cuts between rows that its ORDER BY does not tell apart"
    hint = "Order by more columns, until no two rows of the result are equal in them and different in others."
    return not_deterministic("LIMIT" if topk.limit is not None else "OFFSET", topk.place, why, hint)


def _stack(window: Window) -> tuple[Window, ...]:
    below = window.input
    return (window, *(_stack(below) if isinstance(below, Window) else ()))


def positional(call: WindowCall) -> bool:
    """Return whether a function's result depends on the order of rows that tie."""
    frame = call.frame.upper().split()
    if call.function in _PEERS or call.function in POSITIONAL:
        return call.function in POSITIONAL
    whole = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    return bool(frame) and frame[0] == "ROWS" and " ".join(frame) != whole


def _refusals(stack: tuple[Window, ...], types_of: TypesOf, known: Known) -> Iterator[Refusal]:
    """Refusals for windows one below the other."""
    if not any(positional(call) for window in stack for call in window.calls):
        return
    base = stack[-1].input
    exact = frozenset(column.name for column in types_of(base) if equal_means_same(column.type))
    follows = [*dependencies(base), *(each for window in stack for each in _of_calls(window))]
    keys = [*unique(base), *known(base)]
    for window in stack:
        for call in window.calls:
            pins = _pins(window, call)
            if not positional(call) or any(key <= pins for key in keys):
                continue
            others = {other.name for w in stack for other in w.calls if not _moves_with(w, other, window, call)}
            fixed = closure(pins & (exact | others), follows)
            if not set(base.columns) | others <= fixed and not any(key <= pins | fixed for key in keys):
                yield _refusal(call)


def _refusal(call: WindowCall) -> Refusal:
    why = "goes by the position of rows, and its ORDER BY does not tell all of them apart"
    hint = "Order by more columns, until no two rows are equal in them and different in others that the query reads."
    return not_deterministic(call.written or f"{call.function}() OVER", call.place, why, hint)


def _moves_with(window: Window, other: WindowCall, own: Window, call: WindowCall) -> bool:
    """Return whether two functions share an order, so that ties affect both alike."""
    return window is own and positional(other) and other.order == call.order


def _pins(window: Window, call: WindowCall) -> Names:
    ordered = {name for key in call.order if (name := as_column(key.scalar)) is not None}
    return frozenset(window.partition) | ordered


def equal_means_same(type_: str) -> bool:
    """Return whether equal values are identical, unlike 0.0 and −0.0 or collated texts."""
    return not mentions(type_, "float", "double", "real", "map", "variant") and "collate" not in type_.lower()


def closure(names: Names, known: list[Dependency]) -> Names:
    """Return the columns in which rows agree that agree in some."""
    grown = names
    for _ in known:
        grown = names.union(*(right for left, right in known if left <= names))
        if grown == names:
            break
        names = grown
    return grown


def _of_calls(window: Window) -> Iterator[Dependency]:
    """Functions of peers are the same for all rows that agree in PARTITION BY and ORDER BY."""
    for call in window.calls:
        if not positional(call) and all(as_column(key.scalar) for key in call.order):
            yield _pins(window, call), frozenset({call.name})


def dependencies(relation: Relation) -> list[Dependency]:
    """Return the functional dependencies between a relation's columns."""
    match relation:
        case Aggregate():
            return [(frozenset(relation.keys), frozenset(relation.columns))]
        case Project():
            return [*_projected(relation)]
        case Window():
            return [*dependencies(relation.input), *_of_calls(relation)]
        case Filter() | Replicate() | TopK():
            return dependencies(relation.input)
        case Existence():
            return dependencies(relation.left)
        case Join():
            return [*dependencies(relation.left), *dependencies(relation.right)]
    return []


def _projected(project: Project) -> Iterator[Dependency]:
    names: dict[str, list[str]] = {}
    for name, scalar in project.items:
        if (source := as_column(scalar)) is not None:
            names.setdefault(source, []).append(name)
    shown = {source: found[0] for source, found in names.items()}
    for found in names.values():
        yield from ((frozenset({name}), frozenset(found)) for name in found if len(found) > 1)
    for left, right in dependencies(project.input):
        if left <= shown.keys():
            yield frozenset(shown[n] for n in left), frozenset(each for n in right for each in names.get(n, ()))
    for name, scalar in project.items:
        if as_column(scalar) is None and scalar.deterministic and scalar.columns <= shown.keys():
            yield frozenset(shown[n] for n in scalar.columns), frozenset({name})
        if _STRUCT.fullmatch(scalar.sql):
            # a struct of columns tells what each of them is
            yield frozenset({name}), frozenset(each for n in scalar.columns for each in names.get(n, ()))


_FIELD = r"(?:'(?:[^'\\]|\\.)*'\s*,\s*)?`(?:``|[^`])*`"
_STRUCT = re.compile(rf"(?:named_)?struct\(\s*{_FIELD}(?:\s*,\s*{_FIELD})*\s*\)", re.IGNORECASE)


def unique(relation: Relation) -> list[Names]:
    """Return columns that no two rows of a relation agree in."""
    match relation:
        case Aggregate():
            return [frozenset(relation.keys)]
        case Project():
            shown = {as_column(scalar): name for name, scalar in reversed(relation.items)}
            return [frozenset(shown[n] for n in key) for key in unique(relation.input) if key <= shown.keys()]
        case Window():
            return [*unique(relation.input), *_numbered(relation)]
        case Filter() | TopK():
            return unique(relation.input)
        case Existence():
            return unique(relation.left)
        case Join():
            return [a | b for a in unique(relation.left) for b in unique(relation.right)]
    return []


def _numbered(window: Window) -> Iterator[Names]:
    for call in window.calls:
        if call.function == "row_number":
            yield frozenset(window.partition) | {call.name}
