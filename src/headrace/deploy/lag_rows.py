"""Counts rows by which second generations are behind, from counters of snapshots."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice

from headrace.catalog import Version
from headrace.catalog.state.reader import Reader
from headrace.deploy.root_versions import Roots
from headrace.errors import HeadraceError
from headrace.lake.metadata import TableMeta
from headrace.names import LAKE, TableName
from headrace.refresh.cut.cut import metadata
from headrace.sources.lakehouse.change_plan import ChangePlan, plan_changes


def lag_rows(reader: Reader, green: Roots, blue: Roots, lag: dict[TableName, int]) -> dict[TableName, int | None]:
    """Return by how many changed rows of which root sources one generation is behind another.

    At most, as an update counts twice, and so do rows that a copy on write left as they are. No Spark job runs.

    Args:
        reader: The state of the catalog.
        green: Versions of root sources that it reflects.
        blue: Those that the other one does.
        lag: By how many versions of which it is behind.

    Returns:
        By root source; None where history does not tell any more, or the table is in another catalog.
    """
    logs = {m.name: m.log for source in reader.sources() for m in source.mirrors} if lag else {}
    found: dict[TableName, int | None] = {}
    for root in lag:
        found[root] = None
        seen, wanted = (reader.version_at(root, v) for v in (green[root].oldest, blue[root].newest))
        pointer = reader.pointers(LAKE, [logs.get(root, root)]).get(logs.get(root, root))
        if seen is None or wanted is None or pointer is None or root.catalog != LAKE:
            continue
        with suppress(HeadraceError):  # a metadata file that is gone
            meta = metadata(pointer.metadata_location)
            newest = reader.newest_version(root) or wanted
            found[root] = logged_rows(meta, seen, wanted, newest) if root in logs else _changed(meta, seen, wanted)
    return found


def logged_rows(log: TableMeta, seen: Version, wanted: Version, newest: Version) -> int | None:
    """Return rows of a change log between two versions, each of which is one appended snapshot.

    Args:
        log: The change log.
        seen: The version after which they count.
        wanted: The version up to which they count.
        newest: The newest version, whose rows were appended last.
    """
    appended = (s.count("added-records") for s in log.ancestors(log.current_snapshot_id) if s.operation == "append")
    newer = newest.version - wanted.version
    counted = list(islice(appended, newer, newer + wanted.version - seen.version))
    return sum(counted) if len(counted) == wanted.version - seen.version else None


def _changed(meta: TableMeta, seen: Version, wanted: Version) -> int | None:
    """Return rows that changed between two snapshots of a table."""
    plan = plan_changes(meta, seen.snapshot_id, wanted.snapshot_id, uuid=seen.table_uuid)
    return plan.rows if isinstance(plan, ChangePlan) else None
