"""Captures a source of several nodes; its position is the vector of theirs.

A landing has what all nodes gave. A node that gave nothing (it is down, or its table was altered before the others') is
held back: its position stays where it is, and so does what its server keeps for it. Publishing moves the whole vector
at once; only then each node is acknowledged.
"""

from __future__ import annotations

import copy
import datetime as dt
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from headrace.algebra.schema import Column
from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.names import TableName
from headrace.sources.capture import Capture, Json, LandedTable, Landing, SharedKey
from headrace.sources.interruption import side_by_side
from headrace.sources.nodes.mirror_shapes import NODES, Shape, merged_details, misfits, otherwise_renamed
from headrace.sources.nodes.nodes_table import Unread, together

T = TypeVar("T")

NODES_DIFFER = "NODES_DIFFER"

AT_ONCE = 4
"""Nodes that are read at the same time; together they hold as many changes in memory as a source of one node."""

Read = Mapping[str, "Landing | HeadraceError"]
"""The landing that each node gave, or its error."""


@dataclass(frozen=True, slots=True)
class _Given:
    """The parts that a landing was made of; see `NodesCapture._merged`."""

    position: Json
    read: Read
    required: Collection[str]
    begins: bool


Require = Callable[[Collection[TableName], Collection[str]], None]
"""Raises where the nodes' tables of some mirrors do not fit together; some of the nodes begin."""

TablesAgain = Callable[[str, Collection[TableName]], Collection[TableName]]
"""Finds which mirrors, whose table is gone on a node, have one again there."""


def _none_again(node: str, gone: Collection[TableName]) -> Collection[TableName]:
    """Find no table again."""
    return ()


def _nothing(mirrors: Collection[TableName], begins: Collection[str]) -> None:
    """Require nothing."""


def _same_remedy(_: str, hint: str) -> str:
    """Leave a hint as it is."""
    return hint


def _no_shapes(_: str) -> Mapping[TableName, Shape]:
    """Look at nothing."""
    return {}


@dataclass(frozen=True, slots=True)
class NodeSet:
    """A source of several nodes, as the catalog keeps it.

    Args:
        captures: The capture of each node, by its name.
        mirrors: The details of each mirror; None before its first landing.
        stopping: Codes of errors after which a node must be copied anew.
        column: The column that says of which node a row is; None: the nodes' rows are not told apart.
        unique: The same key on two nodes is an error; else the node is part of the key.
        strict: Nothing is landed unless all nodes give something.
        word: What a node is called, in messages.
        anew: Nodes that `renew` copies; None for all.
        differing: Nodes that were held back last because their tables were not like the others'.
        look: Gives the present shapes of a node's tables, by mirror.
        ended: Set when what is being read on the nodes is for nobody any more: reading ends then.
        require: Called before anything is installed.
        tables_again: Called before tables are copied again.
        remedy: Gives the hint of a node's error as it is for one of several nodes.
    """

    captures: Mapping[str, Capture]
    mirrors: Mapping[TableName, Json | None]
    stopping: frozenset[str] = frozenset()
    column: str | None = None
    unique: bool = True
    strict: bool = False
    word: str = "Node"
    anew: Collection[str] | None = None
    differing: Collection[str] = ()
    look: Callable[[str], Mapping[TableName, Shape]] = field(default=_no_shapes)
    ended: threading.Event = field(default_factory=threading.Event)
    require: Require = field(default=_nothing)
    tables_again: TablesAgain = field(default=_none_again)
    remedy: Callable[[str, str], str] = field(default=_same_remedy)


class NodesCapture:
    """Captures one source of several nodes; see `Capture`.

    `held` has why nodes gave nothing to the last landing, also where for that nothing at all could be landed; `resting`
    those that `land` does not even read, and why they gave nothing before.
    """

    def __init__(self, nodes: NodeSet) -> None:
        self._nodes = nodes
        self.held: Mapping[str, HeadraceError] = {}
        self.resting: Mapping[str, HeadraceError] = {}
        self._taken: tuple[str, ...] = ()
        self._restarts = False
        self._last: _Given = _Given({}, {}, (), False)

    @property
    def installed(self) -> bool:
        """Return whether something may be installed on a server."""
        return any(capture.installed for capture in self._nodes.captures.values())

    @property
    def nodes(self) -> Collection[str]:
        """Return the names of all nodes."""
        return self._nodes.captures.keys()

    @property
    def strict(self) -> bool:
        """Return whether nothing is landed unless all nodes give something."""
        return self._nodes.strict

    # ---- the protocol

    def begin(self) -> Landing:
        """Install capture on all nodes and take their first snapshots."""
        self._nodes.require(self._nodes.mirrors, self._nodes.captures)
        read = self._each(lambda name: self._nodes.captures[name].begin())
        return self._merged({}, read, required=self._nodes.captures, begins=True)

    def land(self, position: Json) -> Landing:
        """Read what was committed on each node since its position."""
        return self._merged(position, self.read(position))

    def read(self, position: Json) -> Read:
        """Read each node; whoever coordinates nodes otherwise overrides this."""

        def one(name: str) -> Landing:
            at = position.get(NODES, {}).get(name)
            capture = self._nodes.captures[name]
            return capture.begin() if at is None else capture.land(at)

        if self.strict and self.resting:
            return self.resting
        left = {**self._still_differing(), **self.resting}
        return {**left, **self._each(one, [name for name in self._nodes.captures if name not in left])}

    def renew(self, position: Json, mirrors: Collection[TableName]) -> Landing:
        """Copy some mirrors again on every wanted node; a node without a position begins.

        A node on which a table was dropped goes on without it, as long as another one has it.

        Args:
            position: What is landed.
            mirrors: The mirrors that are taken anew; none only lands, and begins new nodes.
        """
        at = position.get(NODES, {})
        fresh = [mirror for mirror in mirrors if self._nodes.mirrors.get(mirror) is None]
        begins = self._nodes.captures.keys() - at.keys()
        if begins or fresh:
            self._nodes.require(self._nodes.mirrors if begins else fresh, begins)

        def one(name: str) -> Landing:
            capture = self._nodes.captures[name]
            if name in begins:
                return capture.begin()
            if not mirrors or (self._nodes.anew is not None and name not in self._nodes.anew):
                return capture.land(at[name])
            try:
                present = self._present_mirrors(name, mirrors)
                return capture.renew(at[name], present) if present else capture.land(at[name])
            except UserError as error:
                if fresh or error.code not in self._nodes.stopping:
                    raise
                return capture.begin()

        required = self._nodes.captures if fresh else {*begins, *(self._nodes.anew or ())}
        return self._merged(position, self._each(one), required=required, begins=self._restarts)

    def _present_mirrors(self, node: str, mirrors: Collection[TableName]) -> Collection[TableName]:
        """Return the mirrors that a node has tables of, as far as others have them."""
        gone = set()
        for mirror in mirrors:
            details = (self._nodes.mirrors.get(mirror) or {}).get(NODES, {})
            others = any(details.get(other) is not None for other in self._nodes.captures)
            if others and node in details and details[node] is None:
                gone.add(mirror)
        again = self._nodes.tables_again(node, gone) if gone else ()
        return [mirror for mirror in mirrors if mirror not in gone or mirror in again]

    def only(self, names: Collection[str], *, restarts: bool = False) -> NodesCapture:
        """Have `renew` copy these nodes only.

        Args:
            names: The nodes.
            restarts: The source was stopped, and goes on with what is landed.
        """
        self._nodes = replace(self._nodes, anew=frozenset(names))
        self._restarts = restarts
        return self

    def without(self, node: str, error: HeadraceError) -> Landing:
        """Return the last landing without a node, of which nothing can be landed.

        Args:
            node: The node.
            error: Why.

        Raises:
            HeadraceError: This one, where the node must be landed, or nothing is left.
        """
        given = self._last
        read = {**given.read, node: self._named(error, node)}
        return self._merged(given.position, read, required=given.required, begins=given.begins)

    def tidy(self) -> None:
        """Stop capturing tables without a mirror, on every node that can be reached."""
        self._all(lambda name: self._nodes.captures[name].tidy())

    def acknowledge(self, position: Json) -> None:
        """Allow each node that was landed to discard what is published."""
        self._all(lambda name: self._nodes.captures[name].acknowledge(position[NODES][name]), self._taken)

    def remove(self) -> None:
        """Take away what was installed, on every node; tells of the first that failed."""
        self._all(lambda name: self._nodes.captures[name].remove())

    def clear(self) -> None:
        """Remove the files of this landing."""
        for capture in self._nodes.captures.values():
            capture.clear()

    def sweep(self, age: dt.timedelta | None) -> None:
        """Remove the files of landings that did not end."""
        for capture in self._nodes.captures.values():
            capture.sweep(age)

    # ---- nodes

    def _each(self, one: Callable[[str], Landing], names: Iterable[str] | None = None) -> Read:
        def attempt(name: str) -> Landing | HeadraceError:
            try:
                return one(name)
            except HeadraceError as error:
                return self._named(error, name)

        return self._parallel(attempt, self._nodes.captures if names is None else names)

    def _all(self, one: Callable[[str], None], names: Iterable[str] | None = None) -> None:
        """Do something on every node, then raise the first failure."""

        def attempt(name: str) -> HeadraceError | None:
            try:
                one(name)
            except HeadraceError as error:
                return self._named(error, name)
            return None

        failures = self._parallel(attempt, self._nodes.captures if names is None else names)
        if failed := [error for error in failures.values() if error is not None]:
            raise failed[0]

    def _named(self, error: HeadraceError, node: str) -> HeadraceError:
        """Return a node's error that says whose it is, and what to do about that node alone."""
        told = named(error, f"{self._nodes.word} {node}")
        if told.hint:
            told.hint = self._nodes.remedy(node, told.hint)
        return told

    def _parallel(self, one: Callable[[str], T], names: Iterable[str]) -> dict[str, T]:
        return side_by_side(one, names, AT_ONCE, self._nodes.ended)

    # ---- one landing of all

    def _merged(self, position: Json, read: Read, *, required: Collection[str] = (), begins: bool = False) -> Landing:
        """Join what nodes gave.

        Args:
            position: What is landed.
            read: What each node gave.
            required: Nodes that must give something.
            begins: The source begins here.

        Raises:
            HeadraceError: A required node's failure, or one where nothing can be landed: one that may pass, if there
                is any, as the source stops only where nothing else is left.
        """
        held, landings = self._fitting(read)
        if again := self._otherwise_renamed(landings):
            at = position[NODES]
            read = {**read, **self._each(lambda name: self._nodes.captures[name].renew(at[name], again[name]), again)}
            held, landings = self._fitting(read)
        self.held, self._last = held, _Given(position, read, required, begins)
        failed = [error for name, error in held.items() if self._nodes.strict or not landings or name in required]
        if failed:
            raise min(failed, key=lambda error: error.code in self._nodes.stopping)
        self._taken = tuple(name for name, of in landings.items() if of.keep_position)
        gone = tuple(n for n in self._nodes.mirrors if self._gone(n, landings))
        tables = self._tables(landings, gone)
        gone = tuple(dict.fromkeys((*gone, *(t.name for t in tables if not any(t.details[NODES].values())))))
        at = {n: of for n, of in position.get(NODES, {}).items() if n in self._nodes.captures}
        moved = {**at, **{name: landings[name].position for name in self._taken}}
        notices = [f"{self._nodes.word} {name}: {text}" for name, of in landings.items() for text in of.notices]
        return Landing(
            tables=tuple(tables),
            position={NODES: moved},
            keep_position=bool(self._taken) or bool(tables),
            transactions=sum(of.transactions for of in landings.values()),
            rows=sum(of.rows for of in landings.values()),
            caught_up=all(of.caught_up for of in landings.values()),
            gone=gone,
            begins=begins,
            notices=tuple(notices),
            shared_keys=self._shared_keys(tables),
            held=held,
        )

    def _fitting(self, read: Read) -> tuple[dict[str, HeadraceError], dict[str, Landing]]:
        """Return why nodes are held back, and the landings of the others, which agree."""
        held = {name: of for name, of in read.items() if isinstance(of, HeadraceError)}
        landings = {name: of for name, of in read.items() if not isinstance(of, HeadraceError)}
        while odd := self._misfits(landings, held):
            held |= odd
            landings = {name: of for name, of in landings.items() if name not in odd}
        return held, landings

    def _otherwise_renamed(self, landings: Mapping[str, Landing]) -> dict[str, list[TableName]]:
        """Return mirrors, by node, whose columns got their names otherwise than on the others."""
        again: dict[str, list[TableName]] = {}
        if self._nodes.column is None:  # the nodes' rows cannot be told apart; they were altered as one
            return again
        for mirror in self._nodes.mirrors:
            shaped = {name: part for name, of in landings.items() if (part := _last_shaped(mirror, of)) is not None}
            for name in otherwise_renamed(shaped):
                again.setdefault(name, []).append(mirror)
        return again

    def _tables(self, landings: Mapping[str, Landing], gone: Collection[TableName]) -> list[LandedTable]:
        tables: list[LandedTable] = []  # in the order of mirrors
        for mirror, former in self._nodes.mirrors.items():
            parts = {n: own for n, of in landings.items() if (own := [t for t in of.tables if t.name == mirror])}
            details = dict((former or {}).get(NODES, {}))
            departed = details.keys() - self._nodes.captures.keys()
            details = {name: of for name, of in details.items() if name not in departed}
            for name, of in landings.items():
                if mirror in of.gone:
                    details[name] = None
                for part in parts.get(name, ()):
                    if part.replaced or part.reshaped:
                        details[name] = dict(part.details)
            altered = former is not None and details != former.get(NODES) and mirror not in gone
            if not parts and not altered:
                continue
            shape = self._shape(mirror, parts)
            merged = merged_details(former, details, shape, self._key(shape))
            leaves = {n: [self._unread(mirror, shape, emptied=True)] for n in sorted(departed)}
            if not parts and not leaves:  # a table was dropped on one node: only the details change
                leaves = {next(iter(details)): [self._unread(mirror, shape)]}
            tables += together({**parts, **leaves}, self._nodes.column, merged, altered=altered)
        return tables

    def _unread(self, mirror: TableName, shape: Shape, *, emptied: bool = False) -> LandedTable:
        columns = tuple(Column(name, type_) for name, type_ in sorted(shape.columns))
        return Unread(mirror, columns, shape.key, emptied)

    def _shape(self, mirror: TableName, parts: Mapping[str, list[LandedTable]]) -> Shape:
        for part in (part for of in parts.values() for part in of):
            return Shape.of(part)  # they all agree
        former = self._nodes.mirrors[mirror]
        assert former is not None, "a mirror that changes without a part was landed before"
        return Shape.kept(former)

    def _key(self, shape: Shape) -> tuple[str, ...]:
        """Return the columns that no two rows of a mirror agree in."""
        if shape.key is None:
            return ()
        return shape.key if self._nodes.unique or self._nodes.column is None else (*shape.key, self._nodes.column)

    def _shared_keys(self, tables: Iterable[LandedTable]) -> dict[TableName, SharedKey]:
        column = self._nodes.column
        if column is None or not self._nodes.unique or len(self._nodes.captures) < 2:
            return {}
        return {t.name: SharedKey(tuple(k for k in t.key if k != column), column) for t in tables if t.key is not None}

    def _gone(self, mirror: TableName, landings: Mapping[str, Landing]) -> bool:
        """Return whether the last node has dropped a mirror's table just now."""
        if not any(mirror in of.gone for of in landings.values()):
            return False
        former = (self._nodes.mirrors[mirror] or {}).get(NODES, {})
        return not any(
            former.get(name) is not None for name in self._nodes.captures if mirror not in _gone_on(name, landings)
        )

    def _misfits(self, landings: Mapping[str, Landing], held: Collection[str]) -> dict[str, HeadraceError]:
        found: dict[str, HeadraceError] = {}
        for mirror, former in self._nodes.mirrors.items():
            before = None if former is None else Shape.kept(former)
            now: dict[str, Shape] = {}
            for name in self._nodes.captures:
                part = _last_shaped(mirror, landings[name]) if name in landings else None
                kept = before if (former or {}).get(NODES, {}).get(name) is not None else None
                if name in landings and mirror in landings[name].gone:
                    continue
                if part is not None:
                    now[name] = Shape.of(part)
                elif kept is not None:
                    now[name] = kept
            for odd in misfits(now, before, held):
                found.setdefault(odd.node, self._differs(mirror, odd.node, odd.other, odd.difference))
        return {name: error for name, error in found.items() if name in landings}

    def _still_differing(self) -> dict[str, HeadraceError]:
        """Return nodes whose tables still differ; to land them may be to copy tables for nothing."""
        if not self._nodes.differing:
            return {}

        def look(name: str) -> Mapping[TableName, Shape] | None:
            with suppress(HeadraceError):  # it is told when it is landed
                return None if name in self.resting else self._nodes.look(name)
            return None

        seen = self._parallel(look, self._nodes.captures)
        found: dict[str, HeadraceError] = {}
        for mirror, former in self._nodes.mirrors.items():
            if former is None:
                continue
            before, now = Shape.kept(former), dict[str, Shape]()
            for name, shapes in seen.items():
                if shapes is None and former[NODES].get(name) is not None:
                    now[name] = before
                elif shapes is not None and mirror in shapes:
                    now[name] = shapes[mirror]
            for odd in misfits(now, before, ()):
                if odd.node in self._nodes.differing:
                    found.setdefault(odd.node, self._differs(mirror, odd.node, odd.other, odd.difference))
        return found

    def _differs(self, mirror: TableName, node: str, other: str, how: str) -> HeadraceError:
        word = self._nodes.word.lower()
        return EnvironmentFault(
            NODES_DIFFER,
            f"The table of mirror {mirror} on {word} {node} is not like that on {word} {other}: {how}.",
            detail=f"Nothing of {word} {node} is landed until they agree; what it commits meanwhile is kept there.",
            hint=f"Make the tables alike: run the same ALTER TABLE on {word} {other}, or undo it on {node}.",
            retryable=True,
        )


def _gone_on(name: str, landings: Mapping[str, Landing]) -> Collection[TableName]:
    return landings[name].gone if name in landings else ()


def _last_shaped(mirror: TableName, landing: Landing) -> LandedTable | None:
    """Return the last part of a landing that gives a mirror a shape."""
    shaped = [t for t in landing.tables if t.name == mirror and (t.replaced or t.reshaped)]
    return shaped[-1] if shaped else None


def named(error: HeadraceError, who: str) -> HeadraceError:
    """Return an error that says whose it is."""
    if error.message.startswith(f"{who}: "):
        return error
    told: Any = copy.copy(error)
    told.message = f"{who}: {error.message}"
    told.__cause__ = error.__cause__
    return told  # type: ignore[no-any-return]
