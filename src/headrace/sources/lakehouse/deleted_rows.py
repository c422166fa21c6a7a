"""Rows deleted in files that stay: those since a snapshot, as opposed to those before.

A scan shows the deleted rows of the files, of whatever age. Which of them are new is told in one of three ways:

- few positions stand in the query as a list, and are joined;
- many stand in it as bitmaps, one per file, in which each row looks itself up;
- where deletion vectors did not tell them, or the files are too large, Spark reads what was deleted before.

Only the last one costs with all that was ever deleted: of 10 M rows of which 5 M had been, 85,000 more were read in
5.2 s so, in 1.0 s as a list and in 1.0 s as bitmaps; of 1 M rows beside 1.3 M dead ones, 424,000 in 1.0 s and in 0.5 s.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from headrace.lake.metadata import TableMeta
from headrace.lake.tables import string_literal
from headrace.names import TableName

if TYPE_CHECKING:
    from pyroaring import BitMap64

SCAN = "__hr_s"
"""Alias of the scan."""
_SAME_FILE = f"{SCAN}.__hr_file = __hr_d.__hr_file"
_SAME_POSITION = f"{SCAN}.__hr_pos = __hr_d.__hr_pos"
_IN_BITMAP = (
    f"{_SAME_FILE} AND bit_get(get(__hr_d.__hr_words, "
    f"CAST(shiftright({SCAN}.__hr_pos, 6) AS INT)), CAST({SCAN}.__hr_pos & 63 AS INT)) = 1"
)
FEW_FILES = 64
"""Up to here a number stands for a file where rows are looked up by place.

To find a file's number its path is compared with others, yet that is less than to join by paths: of a table of a
million rows with some three million dead ones, in more than 16 files, changes of 1 % were read in 0.9 s instead of 2.7
to 3.8 s.
"""
FEW_POSITIONS = 50_000
"""Up to here positions are listed."""
MOST_WORDS = 200_000
"""Bitmaps of up to so many words of 64 positions are written into the query: files of 12.8 M rows, 4 MB of text."""
FEW_DELETED, FEW_NUMBERS = 500_000, 2_000_000
"""More deleted positions are not sent to every task, with paths or as numbers: a hash table of three million once took
all of a task's memory."""


@dataclass(frozen=True, slots=True)
class Scattered:
    """Rows deleted here and there.

    Args:
        files: The files they are in, as what stands inside IN (…).
        few: The same as a list, where it is known.
        positions: Where in each file, where that is known.
        read: All files that are read for it, where they are known.
    """

    files: str
    few: Sequence[str] = ()
    positions: Mapping[str, BitMap64] | None = None
    read: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Sifting:
    """SQL that separates wanted rows from other deleted ones.

    Args:
        place: Columns that the scan has to show for it: `__hr_pos`, and `__hr_file` unless the former tells it.
        told: A query, of what is wanted or of what is not.
        where: When one of its rows, `__hr_d`, is about a row of the scan.
        wanted: Whether it tells what is wanted.
        hint: What to tell Spark's planner.
    """

    place: str
    told: str
    where: str
    wanted: bool = True
    hint: str = ""

    def clause(self, deleted: str | None) -> str:
        """Return the clause to put after the scan.

        Args:
            deleted: What is true of its deleted rows, if there are others, all of which are wanted.
        """
        if self.wanted and deleted is not None:
            return f"WHERE NOT {deleted} OR EXISTS (SELECT 1 FROM ({self.told}) AS __hr_d WHERE {self.where})"
        return f"LEFT {'SEMI' if self.wanted else 'ANTI'} JOIN ({self.told}) AS __hr_d ON {self.where}"


def sifting(table: TableName, meta: TableMeta, gone: Scattered, kept_at: int) -> Sifting:
    """Return the cheapest way to separate wanted rows from others.

    Args:
        table: The table.
        meta: Its metadata.
        gone: The rows wanted.
        kept_at: The snapshot that still had them.
    """
    place = _place(gone.few, "_file", "_pos")
    same = _SAME_POSITION if _are_few(gone.few) else f"{_SAME_POSITION} AND {_SAME_FILE}"
    if gone.positions is not None:
        marked = {file: found for file, found in gone.positions.items() if found}
        if sum(map(len, marked.values())) <= FEW_POSITIONS:
            return Sifting(place, _listed(gone.few, marked), same)
        if sum(found.max() // 64 + 1 for found in marked.values()) <= MOST_WORDS:
            maps = _bitmaps(tuple((file, found.serialize()) for file, found in marked.items()))
            return Sifting("_file AS __hr_file, _pos AS __hr_pos", maps, _IN_BITMAP)
    few = FEW_NUMBERS if _are_few(gone.few) else FEW_DELETED
    hint = "" if meta.snapshots[kept_at].count("total-position-deletes") <= few else "/*+ MERGE(__hr_d) */ "
    deletes = f"{table.sql}.position_deletes VERSION AS OF {kept_at} WHERE file_path IN ({gone.files})"
    before = f"SELECT {_place(gone.few, 'file_path', 'pos')} FROM {deletes}"
    return Sifting(place, before, same, wanted=False, hint=hint)


def _are_few(files: Sequence[str]) -> bool:
    return 0 < len(files) <= FEW_FILES


def _place(few: Sequence[str], file: str, position: str) -> str:
    """Return where a row is stored, as columns.

    Among a few files the position tells the file too: one number per row instead of a path of a hundred letters is what
    the join has to hold and to compare. Rows of other files have numbers of their own, that are nobody's place.
    """
    if not _are_few(few):
        return f"{file} AS __hr_file, {position} AS __hr_pos"
    places = (f"WHEN {string_literal(path)} THEN {position} * {FEW_FILES} + {n}" for n, path in enumerate(few))
    return f"CASE {file} {' '.join(places)} ELSE -1 - {position} END AS __hr_pos"


def _listed(few: Sequence[str], positions: Mapping[str, BitMap64]) -> str:
    """Return a query of the places of rows, as one literal, which Spark reads fastest."""
    if _are_few(few):
        numbers = [p * FEW_FILES + number for number, file in enumerate(few) for p in positions.get(file, ())]
        return f"SELECT explode(from_json('{json.dumps(numbers)}', 'array<bigint>')) AS __hr_pos"
    listed = _map_of({file: list(found) for file, found in positions.items()})
    return f"SELECT __hr_file, explode(__hr_list) AS __hr_pos FROM (SELECT {listed} AS (__hr_file, __hr_list))"


@lru_cache(maxsize=4)  # every reader of a change asks for the same
def _bitmaps(positions: tuple[tuple[str, bytes], ...]) -> str:
    """Return a row per file with its bitmap, as a query.

    There is no row to find for each position.
    """
    from pyroaring import BitMap64

    words = _map_of({file: _words(BitMap64.deserialize(found)) for file, found in positions})
    return f"SELECT {words} AS (__hr_file, __hr_words)"


def _map_of(numbers: Mapping[str, list[int]]) -> str:
    return f"explode(from_json({string_literal(json.dumps(numbers))}, 'map<string,array<bigint>>'))"


def _words(positions: BitMap64) -> list[int]:
    """Return a bitmap as numbers of 64 bits, the lowest position first."""
    import numpy as np  # takes a tenth of a second that few commands need

    bits = np.zeros((positions.max() // 64 + 1) * 64, dtype=bool)
    bits[np.fromiter(positions, dtype=np.int64, count=len(positions))] = True
    words: list[int] = np.packbits(bits, bitorder="little").view("<i8").tolist()
    return words
