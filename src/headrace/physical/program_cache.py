"""Caches derived programs by definition; refreshes of a table need the same few."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock

from headrace.compiler.compiled_view import CompiledView, DeltaProgram
from headrace.definitions.table_memory import PerTable, TableMemory
from headrace.ivm.program import Key, Need
from headrace.names import TableName

EACH = 8
"""Programs that are kept of a definition: for what changes together, and which semi-joins are shared."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The key of a cached program: everything it depends on besides the definition.

    Args:
        changed: Sources that changed.
        appended: Those among them that only gained rows.
        sizes: Rows in each source, in two digits.
        companion_rows: Rows in the companion, likewise.
        barred: Semi-joins with a change that are too large to be kept: sources, and the columns that have the keys.
        shared_semijoins: Those that several stream tables read: key, what is followed, fields and their types.
        whole: Whether all rows of the companion may be held.
    """

    changed: frozenset[TableName]
    appended: frozenset[TableName]
    sizes: frozenset[tuple[TableName, int]]
    companion_rows: int
    barred: frozenset[Key]
    shared_semijoins: frozenset[tuple[Key, frozenset[Key], tuple[tuple[str, str], ...]]]
    whole: bool = False

    def of(self, view: CompiledView) -> DeltaProgram | None:
        """Return the program of a definition; None when nothing can have changed."""
        return view.delta_program(
            self.changed,
            self.appended,
            dict(self.sizes),
            self.companion_rows,
            self.barred,
            {key: Need(follows, dict(fields)) for key, follows, fields in self.shared_semijoins},
            whole=self.whole,
        )


def rounded(rows: int) -> int:
    """Return a number of rows in two digits.

    It decides between equal ways only, and tables that grow ask for the same.
    """
    unit = int(10 ** max(0, len(str(rows)) - 2))
    return rows // unit * unit


class Programs:
    """Derives programs and remembers them; safe to use from several threads.

    Args:
        memory: Forgets the programs of tables that are gone.
    """

    def __init__(self, memory: TableMemory | None = None) -> None:
        self._lock = Lock()
        self._known = PerTable[tuple[CompiledView, OrderedDict[Asked, DeltaProgram | None]]](memory)

    def delta(self, name: TableName, view: CompiledView, what: Asked) -> DeltaProgram | None:
        """Derive how a stream table follows a change; None when nothing can have changed.

        Args:
            name: The stream table.
            view: Its definition; another one than last time starts anew.
            what: What happened.
        """
        with self._lock:
            known = self._known.get(name)
            if known is None or known[0] is not view:
                known = view, OrderedDict[Asked, DeltaProgram | None]()
                self._known.put(name, known)
            programs = known[1]
            if what in programs:
                programs.move_to_end(what)
                return programs[what]
        program = what.of(view)
        with self._lock:
            programs[what] = program
            while len(programs) > EACH:
                programs.popitem(last=False)
        return program
