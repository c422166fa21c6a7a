"""In which way deleted rows are told from those deleted before."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from pyroaring import BitMap64

from headrace.lake.metadata import Snapshot, TableMeta
from headrace.names import TableName
from headrace.sources.lakehouse.deleted_rows import (
    FEW_DELETED,
    FEW_FILES,
    FEW_NUMBERS,
    FEW_POSITIONS,
    MOST_WORDS,
    Scattered,
    Sifting,
    _words,
    sifting,
)

T = TableName("lake", ("shop",), "t")
META = TableMeta(
    metadata_location="",
    uuid="u",
    location="",
    format_version=3,
    current_snapshot_id=1,
    snapshots={},
    schemas={},
    field_ids={},
    schema_id=0,
    refs={},
)


def sift(positions: dict[str, BitMap64] | None, *, files: int = 1, deleted: int = 0) -> Sifting:
    paths = sorted(positions or {"a": BitMap64()})[: None if positions else files]
    kept = Snapshot(1, None, 1, "append", 0, 0, {"total-position-deletes": str(deleted)})
    meta = replace(META, snapshots={1: kept})
    return sifting(T, meta, Scattered("'a'", paths, positions), 1)


def told(found: Sifting) -> object:
    text = re.search(r"from_json\('(.*)', '(?:map|array)", found.told)
    assert text is not None
    return json.loads(text[1].replace("\\'", "'").replace("\\\\", "\\"))


@pytest.mark.parametrize("positions", [[0], [63], [64], [0, 1, 63, 64, 127, 128, 1000], list(range(0, 5000, 3))])
def test_a_bitmap_has_a_bit_for_each_position(positions: list[int]) -> None:
    words = _words(BitMap64(positions))
    assert len(words) == positions[-1] // 64 + 1
    assert all(-(1 << 63) <= word < 1 << 63 for word in words), "they are numbers that Spark has"
    assert [64 * i + bit for i, word in enumerate(words) for bit in range(64) if word >> bit & 1] == positions


def test_few_positions_of_few_files_are_one_number_each() -> None:
    found = sift({"a": BitMap64([7]), "b": BitMap64([0, 7])})
    assert told(found) == [7 * FEW_FILES, 1, 7 * FEW_FILES + 1]
    assert found.clause(None).startswith("LEFT SEMI JOIN")
    assert found.clause("x").startswith("WHERE NOT x OR EXISTS (")
    assert "ELSE -1 - _pos END" in found.place, "rows of other files have no number of these"
    assert "__hr_file" not in found.where


def test_few_positions_of_many_files_are_listed_by_path() -> None:
    files = {f'it\'s "{n}" \\ ü': BitMap64([n]) for n in range(FEW_FILES + 1)}
    found = sift(files)
    assert told(found) == {file: list(positions) for file, positions in files.items()}
    assert "__hr_file" in found.where


def test_many_positions_are_bitmaps_while_the_text_is_not_too_long() -> None:
    many = BitMap64(range(FEW_POSITIONS + 1))
    found = sift({"a": many, "b": BitMap64()})
    assert told(found) == {"a": _words(many)}
    assert "bit_get" in found.where
    far = sift({"a": many | BitMap64([64 * MOST_WORDS])})
    assert "position_deletes" in far.told
    assert far.clause("x").startswith("LEFT ANTI JOIN"), "which keeps rows that are not deleted, too"


@pytest.mark.parametrize(
    ("files", "deleted", "hinted"),
    [(1, FEW_NUMBERS, False), (1, FEW_NUMBERS + 1, True), (0, FEW_DELETED, False), (0, FEW_DELETED + 1, True)],
)
def test_what_was_deleted_before_is_sorted_where_it_is_much(files: int, deleted: int, hinted: bool) -> None:
    found = sift(None, files=files, deleted=deleted)
    assert "position_deletes" in found.told
    assert ("MERGE" in found.hint) == hinted
