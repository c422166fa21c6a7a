"""Plans how to read what changed between two snapshots of an Iceberg table.

Planning looks at snapshot summaries only. Every stretch of history is read the cheapest way that is exact:

- `append`: the appended files, by Iceberg's incremental scan;
- copy-on-write: the files added and removed, by Iceberg's changelog;
- merge-on-read, for which Iceberg has no changelog: the difference of two snapshots by file and position;
- `replace` (compaction): nothing, because it moves rows without changing them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headrace.lake.metadata import Snapshot, TableMeta
from headrace.reasons import FullReason


@dataclass(frozen=True, slots=True)
class AllRows:
    """All rows of a snapshot with one weight, where the table was empty before or is empty now.

    Args:
        snapshot: Its id.
        weight: 1 for rows that came, −1 for rows that went.
    """

    snapshot: int
    weight: int


@dataclass(frozen=True, slots=True)
class AppendRange:
    """Rows of data files appended in (start, end], where no snapshot deletes anything.

    Args:
        start: Id of the snapshot before the range.
        end: Id of its last snapshot.
    """

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ChangelogRange:
    """Iceberg's changelog over (start, end], of data files added and removed.

    Args:
        start: Id of the snapshot before the range.
        end: Id of its last snapshot.
    """

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PositionDiff:
    """Difference of two snapshots by file and position.

    Args:
        before: Id of the former snapshot.
        after: Id of the later one.
        linear: Whether no row can have been undeleted in between.
    """

    before: int
    after: int
    linear: bool


Part = AllRows | AppendRange | ChangelogRange | PositionDiff


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """Ways to read the changes between two snapshots; `parts` are summed.

    Args:
        parts: In order of history; may be empty: nothing changed.
        rows: How many rows changed at most (an update counts twice), from snapshot counters; carried-over rows of
            copy-on-write included. None where a summary has no counters.
        carried: Whether some of these rows may have been carried over only.
    """

    parts: tuple[Part, ...]
    rows: int | None
    carried: bool = False


@dataclass(frozen=True, slots=True)
class NotIncremental:
    """The reason why changes cannot be read and the reader must recompute.

    Args:
        reason: The code.
        detail: The circumstances, one sentence.
    """

    reason: FullReason
    detail: str


def plan_changes(
    meta: TableMeta, start: int | None, end: int | None, *, uuid: str | None = None
) -> ChangePlan | NotIncremental:
    """Plan the reading of the changes in (start, end].

    Args:
        meta: The table's metadata, at or after `end`.
        start: Snapshot the reader has seen; None for a table that had none.
        end: Snapshot to move to; None for a table that has none.
        uuid: The table's identity when `start` was read; None skips that check.
    """
    if uuid is not None and uuid != meta.uuid:
        return NotIncremental(FullReason.SOURCE_RECREATED, "The table was dropped and created again.")
    for snapshot in (start, end):
        if snapshot is not None and snapshot not in meta.snapshots:
            return NotIncremental(FullReason.HISTORY_EXPIRED, f"Snapshot {snapshot} has expired.")
    if start == end:
        return ChangePlan((), 0)
    if start is None or end is None:
        snapshot, weight = (end, 1) if start is None else (start, -1)
        assert snapshot is not None
        only = meta.snapshots[snapshot]
        rows = only.count("total-records") if "total-records" in only.summary else None
        return ChangePlan((AllRows(snapshot, weight),), rows)
    line = _line(meta, start, end)
    return _jump(meta, start, end) if line is None else _along(meta, start, line)


def _line(meta: TableMeta, start: int, end: int) -> list[Snapshot] | None:
    """Return the snapshots after `start` up to `end`, oldest first.

    None if no known line leads from one to the other.
    """
    line: list[Snapshot] = []
    for snapshot in meta.ancestors(end):
        if snapshot.id == start:
            return line[::-1]
        line.append(snapshot)
    return None


def _jump(meta: TableMeta, start: int, end: int) -> ChangePlan | NotIncremental:
    """Rolled back, or moved to another branch: compare the two states."""
    before, after = meta.snapshots[start], meta.snapshots[end]
    if any(map(_has_equality_deletes, (before, after))):
        return _equality()
    if any("total-records" not in s.summary for s in (before, after)):
        return ChangePlan((PositionDiff(start, end, linear=False),), None)
    rows = abs(after.count("total-records") - before.count("total-records"))
    rows += abs(after.count("total-position-deletes") - before.count("total-position-deletes"))
    return ChangePlan((PositionDiff(start, end, linear=False),), max(1, rows))


def _along(meta: TableMeta, start: int, line: list[Snapshot]) -> ChangePlan | NotIncremental:
    if any(_equality_deletes(s) for s in line if s.operation != "replace"):
        return _equality()
    parts: list[Part] = []
    stretch: list[Snapshot] = []
    base = meta.snapshots[start]
    for snapshot in line:
        if snapshot.operation == "replace":  # never compared across: all its files are new, none of its rows
            parts += _stretch(base, stretch)
            base, stretch = snapshot, []
        else:
            stretch.append(snapshot)
    parts += _stretch(base, stretch)
    moving = [s for s in line if s.operation != "replace"]
    sizes = {s.id: _touched(s) for s in moving}
    carried = any(s.count("added-records") and s.count("deleted-records") for s in moving)
    read = _one_range_each(parts, meta, sizes)
    # Spark marks as deleted whatever a delete file of either kind removed, and tells former ones by position only
    if any(isinstance(part, PositionDiff) and _has_equality_deletes(meta.snapshots[part.before]) for part in read):
        return _equality()
    return ChangePlan(read, _sum(sizes.values()), carried)


_OF_CHANGELOG = frozenset({"_change_type", "_change_ordinal", "_commit_snapshot_id"})
"""Columns that Iceberg's changelog adds to those of the table."""


def _one_range_each(parts: list[Part], meta: TableMeta, sizes: Mapping[int, int | None]) -> tuple[Part, ...]:
    """Leave one range of each kind, the biggest, and read the others as differences.

    Spark resolves a name once per query and forgets that its second mention came with other options, so that a second
    range of the same table would read the first one's rows. The changelog cannot be read of a table that has a column
    of the changelog's own, as tables that take up the changes of others do.
    """

    def size(part: AppendRange | ChangelogRange) -> int:
        line = _line(meta, part.start, part.end) or ()
        return sum(sizes.get(s.id) or 0 for s in line)

    kept = set()
    names = {column.name.lower() for columns in meta.schemas.values() for column in columns}
    for kind in (AppendRange, ChangelogRange) if names.isdisjoint(_OF_CHANGELOG) else (AppendRange,):
        ranges = [part for part in parts if isinstance(part, kind)]
        kept |= {max(ranges, key=size)} if ranges else set()
    return tuple(
        PositionDiff(part.start, part.end, linear=True)
        if isinstance(part, AppendRange | ChangelogRange) and part not in kept
        else part
        for part in parts
    )


def _stretch(base: Snapshot, stretch: list[Snapshot]) -> list[Part]:
    """Return the parts for consecutive snapshots without a compaction.

    Appends before or after a core that deletes are read by themselves, unless the changelog can take all in one go.
    """
    core = [i for i, s in enumerate(stretch) if not _pure_append(s)]
    if not core:
        return _append(base, stretch)
    first, last = core[0], core[-1]
    before = stretch[first - 1] if first else base
    middle = _core(before, stretch[first : last + 1])
    if isinstance(middle, ChangelogRange):
        return [ChangelogRange(base.id, stretch[-1].id)]
    return [*_append(base, stretch[:first]), middle, *_append(stretch[last], stretch[last + 1 :])]


def _append(base: Snapshot, stretch: list[Snapshot]) -> list[Part]:
    told = all(map(_added_nothing, stretch, [base, *stretch]))
    return [] if told else [AppendRange(base.id, stretch[-1].id)]


def _core(before: Snapshot, stretch: list[Snapshot]) -> Part:
    """Return a stretch that begins and ends with a snapshot that deletes.

    The changelog prunes to the touched files but reads each version of a file that was rewritten again and again; the
    difference scans both states, but only once, and is the only way when delete files are around.
    """
    after = stretch[-1]
    difference = PositionDiff(before.id, after.id, linear=True)
    if any(s.count("total-delete-files") or "total-delete-files" not in s.summary for s in (before, *stretch)):
        return difference
    changelog = _sum(map(_touched, stretch))
    if changelog is None:
        return difference
    both = before.count("total-records") + after.count("total-records")
    return ChangelogRange(before.id, after.id) if changelog <= both else difference


def _pure_append(snapshot: Snapshot) -> bool:
    removes = ("deleted-data-files", "added-delete-files", "removed-delete-files", "deleted-records")
    return snapshot.operation == "append" and not any(map(snapshot.count, removes))


def _added_nothing(append: Snapshot, before: Snapshot) -> bool:
    """Return whether an append tells that it added no rows.

    Iceberg's own writers leave a counter out that is zero, but give the totals; other writers give neither.
    """
    if "added-records" in append.summary:
        return append.count("added-records") == 0
    totals = [s.summary.get("total-records") for s in (before, append)]
    return totals[0] is not None and totals[0] == totals[1] and not append.count("added-data-files")


def _equality_deletes(snapshot: Snapshot) -> bool:
    counters = ("added-equality-deletes", "added-equality-delete-files", "removed-equality-delete-files")
    return any(map(snapshot.count, counters))


def _has_equality_deletes(snapshot: Snapshot) -> bool:
    """Return whether rows of a snapshot are deleted by their values, by it or one before it."""
    total = "total-equality-deletes"
    return snapshot.count(total) > 0 if total in snapshot.summary else _equality_deletes(snapshot)


def _equality() -> NotIncremental:
    return NotIncremental(
        FullReason.SOURCE_NOT_INCREMENTAL,
        "It has equality deletes (as Flink writes them), which do not say which rows they remove.",
    )


def _touched(snapshot: Snapshot) -> int | None:
    """Return rows a snapshot adds and removes; None where its summary does not tell.

    Of a deletion vector that replaces another only what it has more.
    """
    # a counter that is zero may be left out, so one of them tells that there are counters
    if not any(name in snapshot.summary for name in ("added-records", "deleted-records", "total-records")):
        return None
    rows = snapshot.count("added-records") + snapshot.count("deleted-records")
    return rows + abs(snapshot.count("added-position-deletes") - snapshot.count("removed-position-deletes"))


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Return a sum; None where a number is not known."""
    known = list(numbers)
    return None if None in known else sum(n for n in known if n is not None)
