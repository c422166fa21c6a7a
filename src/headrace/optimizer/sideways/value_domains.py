"""Derives a cheap relation with all values columns can have, if they come from a change.

Every row that a rule asks for has a key of a change: it is in a column of the change itself, or of a step computed
from it. Following columns back through joins and semi-joins finds where a key comes from: π_a(L ⋈_{a=b} R) ⊆ π_b(R).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field

from headrace.algebra.properties.equalities import equalities
from headrace.algebra.relations import (
    Aggregate,
    Empty,
    Existence,
    Filter,
    Generate,
    Join,
    LookupJoin,
    Moment,
    OuterJoin,
    Project,
    Relation,
    Replicate,
    Scan,
    SemiJoin,
    Stored,
    TopK,
    Union,
    Values,
    Window,
)
from headrace.algebra.scalar import as_column, column
from headrace.algebra.tree import identity

MOST_LOOKS, MOST_LEVELS, MOST_TERMS = 3_000, 60, 12
"""Limits of the search for where values come from: relations looked at, depth, and places."""

Names = tuple[str, ...]
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Domains:
    """Follows columns to where their values come from.

    Args:
        steps: The relation of each step, by name.
        kept: Steps that may be read; others are looked into.
        always: Those among them that are computed in any case, so that they have all rows of their relations.
        types: Types of columns by name, as far as known.
        found: What was found out so far, by node and columns.
    """

    steps: Mapping[str, Relation]
    kept: Set[str]
    types: Mapping[str, str]
    always: Set[str] = frozenset()
    found: dict[tuple[int, Names], Relation | None] = field(default_factory=dict)
    _above: list[Relation] = field(default_factory=list)
    _computed: dict[Relation, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._computed.update((self.steps[name], name) for name in sorted(self.always, reverse=True))

    def of(self, node: Relation, columns: Names) -> Relation | None:
        """Return a relation with at least all combinations of columns' values, else None.

        Args:
            node: The relation.
            columns: Columns of it, each once.
        """
        # a step may be read in many places, each of them by steps that are read in many places
        key = (id(node), columns)
        if key not in self.found:
            if len(self.found) >= MOST_LOOKS or len(self._above) >= MOST_LEVELS:
                return None
            self._above.append(node)
            self.found[key] = self._traced(node, columns)
            self._above.pop()
        return self.found[key]

    def _traced(self, node: Relation, columns: Names) -> Relation | None:
        if self._small(node):
            return Project(node, identity(columns))
        if isinstance(node, Join | Project) and (step := self._step(node)) is not None:
            return Project(step, identity(columns))
        match node:
            case Stored() if node.name in self.steps:
                return self.of(self.steps[node.name], columns)
            case Project():
                values = dict(node.items)
                own = tuple(name for c in columns if (name := as_column(values[c])) is not None)
                return self.of(node.input, own) if len(set(own)) == len(columns) else None
            case Filter() | Replicate() | TopK():
                return self.of(node.inputs[0], columns)
            case Generate() | Window() if set(columns) <= set(node.inputs[0].columns):
                return self.of(node.inputs[0], columns)
            case Aggregate() if set(columns) <= set(node.keys):
                return self.of(node.input, columns)
            case Union():
                return self._union(node, columns)
            case Join() | OuterJoin() | Existence() | SemiJoin() | LookupJoin():
                return self._join(node, columns)
        return None

    def _step(self, node: Relation) -> Stored | None:
        """Return the step with the rows of a relation, which are fewer than those of its inputs."""
        name = self._computed.get(node)
        return None if name is None else Stored(name, node.columns)

    def _small(self, node: Relation) -> bool:
        """Return whether a relation is only a selection from a change or a kept step."""
        match node:
            case Scan():
                return node.moment is Moment.CHANGE
            case Stored():
                return node.name in self.kept
            case Project() | Filter():
                return self._small(node.input)
        return isinstance(node, Values | Empty)

    def _union(self, union: Union, columns: Names) -> Relation | None:
        places = [union.columns.index(name) for name in columns]
        found = [self.of(each, tuple(each.columns[i] for i in places)) for each in union.branches]
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            return None
        values = united(known)
        return None if isinstance(values, Union) and len(values.branches) > MOST_TERMS else values

    def _join(self, join: Join | OuterJoin | Existence | SemiJoin | LookupJoin, columns: Names) -> Relation | None:
        """Return values of either side.

        Of one side alone where the other one's columns equal its own.
        """
        full = keeps_all(join)
        equal = self.linked(join)
        if set(columns) <= set(join.left.columns) and not full and (found := self.of(join.left, columns)) is not None:
            return found
        for side, pairs in ((0, tuple((r, a) for a, r in equal)), (1, equal)):
            if not _says(join, side):
                continue
            partner = dict(pairs)
            own = tuple(c if c in join.inputs[side].columns else partner.get(c) for c in columns)
            names = tuple(name for name in own if name is not None)
            if len(set(names)) == len(columns) and (found := self.of(join.inputs[side], names)) is not None:
                return found
        return None

    def linked(self, join: Join | OuterJoin | Existence | SemiJoin | LookupJoin) -> Pairs:
        """Return columns of both sides, of one type, that are equal in every pair of partners."""
        if isinstance(join, SemiJoin | LookupJoin):
            pairs = join.on
        else:
            condition = join.condition
            both = () if condition is None else equalities(condition, join.left.columns, join.right.columns)
            pairs = tuple((a, b) for a, b, _ in both)
        # a chain of comparisons that cast is no equality
        return tuple((a, b) for a, b in pairs if a == b or (a in self.types and self.types[a] == self.types.get(b)))


def keeps_all(join: Relation) -> bool:
    """Return whether rows of either side of a join stay without a partner."""
    return (isinstance(join, OuterJoin) and join.full) or (isinstance(join, LookupJoin) and join.whole)


def _says(join: Relation, side: int) -> bool:
    """Return whether every row of a join has a partner's values on one of its sides."""
    if isinstance(join, Join):
        return True
    return side == 1 and isinstance(join, SemiJoin | Existence) and not join.anti


def united(values: Iterable[Relation]) -> Relation:
    """Return the union of domains without repeated terms.

    Args:
        values: Relations with equally many columns.
    """
    found = tuple(dict.fromkeys(_named(term) for each in values for term in terms(each)))
    return found[0] if len(found) == 1 else Union(found)


def terms(values: Relation) -> Iterator[Relation]:
    """Yield the relations whose union a relation is."""
    match values:
        case Union():
            for branch in values.branches:
                yield from terms(branch)
        case Project(input=Union() as below):
            places = [below.columns.index(as_column(scalar) or "") for _, scalar in values.items]
            for branch in below.branches:
                yield from terms(Project(branch, identity(tuple(branch.columns[i] for i in places))))
        case _:
            yield values


def _named(values: Relation) -> Relation:
    """Return keys under canonical names, so that equal ones compare equal."""
    names, count = values.columns, len(values.columns)
    while isinstance(values, Project) and None not in (read := [as_column(dict(values.items)[n]) for n in names]):
        values, names = values.input, tuple(filter(None, read))
    return Project(values, tuple((f"__hr_key{i}", column(names[i])) for i in range(count)))
