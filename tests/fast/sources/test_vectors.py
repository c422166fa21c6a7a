"""Deletion vectors; Spark's own are read in tests/spark/test_lakehouse.py."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest
from pyroaring import BitMap64

from headrace.sources.lakehouse import file_diff
from headrace.sources.lakehouse.deletion_vectors import Vector, positions_moved


def stored(folder: Path, name: str, positions: set[int], *, before: bytes = b"PFA1") -> Vector:
    body = b"\xd1\xd3\x39\x64" + BitMap64(positions).serialize()
    blob = struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    file = folder / name
    file.write_bytes(before + blob + b"footer")
    return Vector(str(file), len(before), len(blob), len(positions))


def test_what_a_vector_has_more_than_another(tmp_path):
    old = stored(tmp_path, "old", {1, 5, 1 << 40})
    new = stored(tmp_path, "new", {1, 5, 7, 3, 1 << 40, (1 << 40) + 2}, before=b"PFA1 and a blob before")
    more, all_, none = BitMap64([3, 7, (1 << 40) + 2]), BitMap64([1, 5, 1 << 40]), BitMap64()
    assert positions_moved(old, new) == (more, none)
    assert positions_moved(new, old) == (none, more)
    assert positions_moved(None, old) == (all_, none)
    assert positions_moved(old, None) == (none, all_)


@pytest.mark.parametrize("place", [5, 9, 20, -8])
def test_a_damaged_vector_is_not_believed(tmp_path, place):
    vector = stored(tmp_path, "new", {1, 2, 3})
    data = bytearray(Path(vector.file).read_bytes())
    data[place] ^= 1
    Path(vector.file).write_bytes(data)
    with pytest.raises(ValueError, match="deletion vector"):
        positions_moved(None, vector)


def test_a_file_that_ends_early_is_not_believed(tmp_path):
    vector = stored(tmp_path, "new", {1, 2, 3})
    file = Path(vector.file)
    file.write_bytes(file.read_bytes()[: vector.offset + 10])
    with pytest.raises(ValueError, match="ends within"):
        positions_moved(None, vector)


def test_an_older_delete_file_that_only_moved_between_manifests_makes_vectors_no_witness():
    """It is about several files, so it names none: what it deletes may be in the new vector, too."""
    moved = file_diff._Delete(None, None)
    new = file_diff._Delete("f", Vector("puffin", 4, 40, 3))
    left, right = file_diff._Side(deletes={"old": moved}), file_diff._Side(deletes={"old": moved, "new": new})
    assert file_diff._vectors(("f",), left, right, ()) is None
    assert file_diff._vectors(("f",), file_diff._Side(), file_diff._Side(deletes={"new": new}), ()) == {
        "f": (None, new.vector)
    }
