"""Metadata files that were read: most never change, so that each is read once.

The file of a table that is written every second names thousands of snapshots after an hour, and the next one names the
same and one more. So only the newest few of each table are kept, and what two of them have in common is kept once.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict

from headrace.lake.metadata import TableMeta, read_metadata

EACH = 4
"""Files of a table: what is published, what is staged instead, and what is being made of it."""

MOST = 4096
"""Tables."""

_NUMBERED = re.compile(r"v\d+(\.gz)?\.metadata\.json(\.gz)?")
"""Names of files in Iceberg's Hadoop catalogs: a table that is made in the place of a dropped one uses them again."""


class Remembered:
    """Reads metadata files; safe to use from several threads.

    Args:
        each: How many files of a table are kept.
        most: Of how many tables.
    """

    def __init__(self, each: int = EACH, most: int = MOST) -> None:
        self._each = each
        self._most = most
        self._lock = threading.Lock()
        self._tables: OrderedDict[str, OrderedDict[str, TableMeta]] = OrderedDict()

    def __call__(self, location: str) -> TableMeta:
        """Return the metadata at a location.

        Raises:
            EnvironmentFault: `METADATA_UNREADABLE`.
        """
        with self._lock:
            kept = self._of(location)
            if location in kept and not _NUMBERED.fullmatch(location.rpartition("/")[2]):
                kept.move_to_end(location)
                return kept[location]
            former = next(reversed(kept.values()), None)
        meta = read_metadata(location, former=former)
        with self._lock:
            kept[location] = meta
            while len(kept) > self._each:
                kept.popitem(last=False)
        return meta

    def _of(self, location: str) -> OrderedDict[str, TableMeta]:
        """Return the cached metadata of the table in whose folder a file is."""
        folder = location.rpartition("/")[0]
        kept = self._tables.setdefault(folder, OrderedDict())
        self._tables.move_to_end(folder)
        if len(self._tables) > self._most:
            self._tables.popitem(last=False)
        return kept
