"""Functional dependencies: rows that agree in some columns agree in others."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.algebra.facts import Call, Constant, Named
from headrace.algebra.properties.order import positional
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
from headrace.algebra.scalar import Scalar, as_column

Names = frozenset[str]
Dependency = tuple[Names, Names]
"""Rows that agree in the first columns agree in the second."""


def closure(names: Names, known: list[Dependency]) -> Names:
    """Return all columns in which two rows agree that agree in some.

    Args:
        names: Columns in which they agree.
        known: Functional dependencies.
    """
    grown = names
    for _ in known:
        grown = names.union(*(right for left, right in known if left <= names))
        if grown == names:
            break
        names = grown
    return grown


def dependencies(relation: Relation) -> list[Dependency]:
    """Return the functional dependencies between a relation's columns."""
    match relation:
        case Aggregate():
            return [(frozenset(relation.keys), frozenset(relation.columns))]
        case Project():
            return [*_projected(relation)]
        case Window():
            return [*dependencies(relation.input), *of_calls(relation)]
        case Filter() | Replicate() | TopK():
            return dependencies(relation.input)
        case Existence():
            return dependencies(relation.left)
        case Join():
            return [*dependencies(relation.left), *dependencies(relation.right)]
    return []


def pins(window: Window, call: WindowCall) -> Names:
    """Return the columns of PARTITION BY, and those of ORDER BY that are nothing but columns."""
    ordered = {name for key in call.order if (name := as_column(key.scalar)) is not None}
    return frozenset(window.partition) | ordered


def of_calls(window: Window) -> Iterator[Dependency]:
    """Return the columns of PARTITION BY and ORDER BY that window functions depend on."""
    for call in window.calls:
        if not positional(call) and all(as_column(key.scalar) for key in call.order):
            yield pins(window, call), frozenset({call.name})


def _projected(project: Project) -> Iterator[Dependency]:
    names = _names_of_columns(project)
    shown = {source: found[0] for source, found in names.items()}
    for found in names.values():
        yield from ((frozenset({name}), frozenset(found)) for name in found if len(found) > 1)
    for left, right in dependencies(project.input):
        if left <= shown.keys():
            yield frozenset(shown[n] for n in left), frozenset(each for n in right for each in names.get(n, ()))
    for name, scalar in project.items:
        if as_column(scalar) is None and scalar.deterministic and scalar.columns <= shown.keys():
            yield frozenset(shown[n] for n in scalar.columns), frozenset({name})
    yield from struct_fields(project)


def _names_of_columns(project: Project) -> dict[str, list[str]]:
    """Return under which names a projection shows each column of its input."""
    names: dict[str, list[str]] = {}
    for name, scalar in project.items:
        if (source := as_column(scalar)) is not None:
            names.setdefault(source, []).append(name)
    return names


def struct_fields(relation: Relation) -> Iterator[Dependency]:
    """Yield what structs of columns tell: these columns, as exactly as they compare."""
    if not isinstance(relation, Project):
        return
    names = _names_of_columns(relation)
    for name, scalar in relation.items:
        if _is_struct(scalar):
            yield frozenset({name}), frozenset(each for n in scalar.columns for each in names.get(n, ()))


def _is_struct(scalar: Scalar) -> bool:
    form = scalar.form
    return (
        isinstance(form, Call)
        and form.function in ("struct", "named_struct")
        and all(isinstance(each, Named | Constant) for each in form.arguments)
    )
