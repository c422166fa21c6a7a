"""Facts that a refresh is planned from, gathered before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headrace.definitions.details import Details
from headrace.definitions.read_columns import held_to
from headrace.frontier import Frontier
from headrace.ivm.program import Key, Need, Step
from headrace.names import STAGING, TableName
from headrace.physical.leaves import Leaves
from headrace.reasons import FullReason
from headrace.results.refresh_results import RefreshMode
from headrace.statistics.calibration import Calibration


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The reason why a source (or the whole table) cannot be refreshed DIFFERENTIAL this time.

    Args:
        reason: The code.
        detail: What it is about, in words.
    """

    reason: FullReason
    detail: str


@dataclass(frozen=True, slots=True)
class Common:
    """A change that several stream tables read, and how it is kept for them.

    Args:
        view: Temporary name; the same for everyone who reads this change with these columns.
        sql: The change, with every column that any of them reads.
        own: What this table reads of `view`.
        waiting: Who else has yet to read it.
        columns: The columns it has.
        readers: How many tables read it, those that have read it already included.
    """

    view: str
    sql: str
    own: str
    waiting: frozenset[TableName]
    columns: frozenset[str] = frozenset()
    readers: int = 1


@dataclass(frozen=True, slots=True)
class SharedSemijoin:
    """A semi-join of a source with changes, kept for several stream tables.

    Args:
        need: What is read.
        common: How it is kept.
        step: The step that computes it.
        leaves: Where that step's leaves are read from, the same for all who read it.
        hints: Whether it is known how large the changes are that it follows.
    """

    need: Need
    common: Common
    step: Step
    leaves: Leaves
    hints: bool = False


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """A source between the table's frontier and the cut.

    Args:
        name: The source.
        before: Table expression of its rows at the frontier; None before the first load.
        after: Table expression of its rows at the cut.
        version: Version at the cut.
        change: SQL of the rows that changed in between, with their weights; None when nothing did.
        change_rows: Estimated number of changed rows.
        carried: Whether that may count rows that were only carried over into other files.
        rows: Rows at the cut, if known.
        obstacle: Why the change cannot be read.
        appended: Whether the change is known to add rows only, each listed with weight 1.
        logged: Whether the change is read from a change log: nothing else has to be read to find it.
        columns: The columns to which the user's own text is held, where the table has gained others since.
        common: The change as it is kept for several readers, where that is better.
        names: Names of all its columns.
    """

    name: TableName
    before: str | None
    after: str
    version: int
    change: str | None = None
    change_rows: int | None = None
    carried: bool = False
    rows: int | None = None
    obstacle: Obstacle | None = None
    appended: bool = False
    logged: bool = False
    columns: tuple[str, ...] | None = None
    common: Common | None = None
    names: frozenset[str] = frozenset()

    @property
    def as_defined(self) -> str:
        """Return a table expression of its rows at the cut, with the columns of the definition."""
        return held_to(self.after, self.columns)


@dataclass(frozen=True, slots=True)
class Facts:
    """One stream table, about to be refreshed.

    Args:
        name: The stream table.
        details: Its facts from the catalog.
        refresh_mode: What the user asked for.
        sources: Its sources, in the definition's order.
        state_rows: Rows in the state; None when unknown or not loaded.
        companion: The companion's name, if it has one.
        state_at: Table expression of the published state, which is `lake`'s: results kept by Spark are dropped when
            a table they were computed from is written, and `staging` is written.
        companion_at: Table expression of the published companion.
        companion_rows: Rows in the companion, 0 when unknown.
        companion_behind: Whether the companion is of an earlier state of the table, and nothing can follow from it.
        log: The change log's name, if it has consumers.
        readers: The consumers that will read the change from the table as it is.
        version: The newest version of the table; None before the first load.
        calibration: How its refreshes compare with their estimates.
        recomputed: How many refreshes in a row have been FULL because that was expected to be cheaper.
        refused: What Spark said of a statement that follows a change, where the last refresh met that.
        forced: The user asked for a FULL refresh.
        obstacle: Why the whole table must be recomputed.
        renewed: The details with the tables that sources are now, where the definition was made over earlier ones.
        tag: Suffix that makes temporary names unique to this refresh.
        shared_semijoins: Semi-joins with changes that are kept for several readers.
        broadcast: Whether Spark may be asked to broadcast what comes from a small change.
    """

    name: TableName
    details: Details
    refresh_mode: RefreshMode
    sources: tuple[SourceFacts, ...]
    state_rows: int | None
    companion: TableName | None
    log: TableName | None
    version: int | None
    readers: frozenset[TableName] = frozenset()
    state_at: str | None = None
    companion_at: str | None = None
    companion_rows: int = 0
    companion_behind: bool = False
    calibration: Calibration = field(default_factory=Calibration)
    recomputed: int = 0
    refused: str | None = None
    forced: bool = False
    obstacle: Obstacle | None = None
    renewed: Details | None = None
    tag: str = ""
    shared_semijoins: Mapping[Key, SharedSemijoin] = field(default_factory=dict)
    broadcast: bool = True

    @property
    def first_load(self) -> bool:
        """Return whether the table has never been loaded."""
        return self.version is None

    @property
    def next_version(self) -> int:
        """Return the version this refresh would publish."""
        return 0 if self.version is None else self.version + 1

    @property
    def state(self) -> TableName:
        """Return where the state is written."""
        return self.name.within(STAGING)

    @property
    def changed(self) -> frozenset[TableName]:
        """Return the sources with changes."""
        return frozenset(s.name for s in self.sources if s.change is not None)

    @property
    def frontier(self) -> Frontier:
        """Return the frontier this refresh would reach."""
        return Frontier({s.name: s.version for s in self.sources})

    @property
    def by_name(self) -> Mapping[TableName, SourceFacts]:
        """Return sources by name."""
        return {s.name: s for s in self.sources}


def in_few_tasks(facts: Facts, tasks: int) -> Facts:
    """Return facts by which each source is read by few tasks at once.

    All that is computed while it is read, is computed by these.

    Args:
        facts: The stream table.
        tasks: How many.
    """
    read = "(SELECT /*+ COALESCE({}) */ * FROM {})"
    return replace(facts, sources=tuple(replace(s, after=read.format(tasks, s.after)) for s in facts.sources))
