"""The rows of a source that have some keys, as they are and as they were.

Of a source S that changed to S′, and keys K, the rows as they were follow from the change: S ⋉ K = (S′ ⋉ K) − (ΔS ⋉ K).
So each different row is told once, with how often it is there now and how often it was.

Often the change itself has all rows with its keys: new orders come with their line items, and orders that leave take
theirs along. That can be told from the keys alone. Whatever did not change is there before and after, so that
S′ ⋉ K = (ΔS ⋉ K)⁺ + U and S ⋉ K = (ΔS ⋉ K)⁻ + U; and U is empty where S′ ⋉ K has no more rows than (ΔS ⋉ K)⁺.
Source: the subtraction is that of Z-sets: Budiu et al., DBSP, VLDB 2023, section 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.algebra.relations import Aggregate, Filter, Moment, Project, Relation, Scan, SemiJoin, Union
from headrace.algebra.scalar import Scalar, column, compose, literal
from headrace.algebra.tree import identity
from headrace.algebra.types import is_integer
from headrace.ivm.change import total
from headrace.ivm.program import DeltaCoverage, Key, Step
from headrace.names import WEIGHT, TableName

AFTERWARDS, BEFOREHAND = "__hr_after", "__hr_before"
"""Columns: how often a row is there now, and how often it was."""

_REMOVED, _NET = "__hr_removed", "__hr_net"


def semijoin_step(
    name: str,
    key: Key,
    keys: Relation,
    fields: Mapping[str, str],
    *,
    changed: bool,
    condition: Scalar | None = None,
    follows: frozenset[TableName] = frozenset(),
) -> Step:
    """Return the step with a source's rows of some keys, distinct ones counted.

    Args:
        name: The step's name.
        key: The source, and the columns that have the keys.
        keys: The keys, in the order of these columns.
        fields: The source's columns that are wanted besides those of the key, and types of columns as far as known.
        changed: Whether the source has changed; then it is told how often each row is there now, and how often it was.
            Rows that changed are among these whatever keys they have.
        condition: What else the rows must satisfy.
        follows: What `Step.follows` is to be.
    """
    rows = _Rows(key, keys, fields, condition)
    relation = rows.both() if changed else rows.now()
    coverage = rows.coverage() if changed else None
    return Step(
        name, relation, semijoin=key, follows=follows, integer_key=_integer_key(key, keys, fields), coverage=coverage
    )


def identity_fields(names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return fields of a scan under the source's own names."""
    return tuple((name, name) for name in names)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows that have some keys; arguments as of `semijoin_step`."""

    key: Key
    keys: Relation
    fields: Mapping[str, str]
    condition: Scalar | None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.key[1], *self.fields)))

    def now(self) -> Relation:
        """Return the present rows, one by one."""
        return self._having(self._all(Moment.AFTER))

    def both(self) -> Relation:
        """Return present and former rows, each with how often it is and was there."""
        now = Project(self.now(), (*identity(self.names), (AFTERWARDS, literal(1)), (_REMOVED, literal(0))))
        minus = compose("-{w}", w=column(WEIGHT))
        # what changed and has none of the keys is there as well: nobody asks for it
        changed = self._all(Moment.CHANGE)
        gone = Project(changed, (*identity(self.names), (AFTERWARDS, literal(0)), (_REMOVED, minus)))
        sums = (total(AFTERWARDS), total(_REMOVED))
        before = compose("{a} + {r}", a=column(AFTERWARDS), r=column(_REMOVED))
        summed = Aggregate(Union((now, gone)), self.names, sums)
        return Project(summed, (*identity(self.names), (AFTERWARDS, column(AFTERWARDS)), (BEFOREHAND, before)))

    def coverage(self) -> DeltaCoverage:
        """Return the relations that tell whether the change has all rows of the semi-join."""
        changed = Project(self._all(Moment.CHANGE), (*identity(self.names), (_NET, column(WEIGHT))))
        net = Aggregate(changed, self.names, (total(_NET),))
        after, before = (compose(f"greatest({sign}{{n}}, 0L)", n=column(_NET)) for sign in ("", "-"))
        moved = Project(net, (*identity(self.names), (AFTERWARDS, after), (BEFOREHAND, before)))
        return DeltaCoverage(self.now(), self._having(moved), AFTERWARDS, moved)

    def _all(self, moment: Moment) -> Relation:
        scan = Scan(self.key[0], identity_fields(self.names), moment)
        return scan if self.condition is None else Filter(scan, self.condition)

    def _having(self, rows: Relation) -> Relation:
        """Return the rows with one of the keys."""
        numbers = frozenset(name for name in self.key[1] if is_integer(self.fields.get(name)))
        return SemiJoin(rows, self.keys, tuple(zip(self.key[1], self.keys.columns, strict=True)), numbers=numbers)


def _integer_key(key: Key, keys: Relation, fields: Mapping[str, str]) -> tuple[str, Relation] | None:
    """Return an integer key column and its values, for `Step.integer_key`, if there is one."""
    for name, own in zip(key[1], keys.columns, strict=True):
        if is_integer(fields.get(name)):
            return name, Project(keys, ((own, column(own)),))
    return None
