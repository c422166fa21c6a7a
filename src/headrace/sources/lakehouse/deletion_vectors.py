"""Deletion vectors of Iceberg format v3: the deleted positions of a data file.

A vector is a blob of a Puffin file. Its layout, and the 64-bit Roaring bitmap within, are those of the Puffin
specification, blob type `deletion-vector-v1`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.lake.metadata import read_bytes

if TYPE_CHECKING:
    from pyroaring import BitMap64

_MAGIC = b"\xd1\xd3\x39\x64"


@dataclass(frozen=True, slots=True)
class Vector:
    """The place of a deletion vector in a file.

    Args:
        file: The Puffin file.
        offset: Where the blob begins, in bytes.
        size: Length of the blob, in bytes.
        deleted: How many positions it marks.
    """

    file: str
    offset: int
    size: int
    deleted: int


def positions_moved(
    old: Vector | None, new: Vector | None, read: Callable[[str], bytes] = read_bytes
) -> tuple[BitMap64, BitMap64]:
    """Return the positions that only `new` marks and those that only `old` does.

    Args:
        old: A vector; None for one that marks nothing.
        new: Another one, alike.
        read: Reads a file; several vectors may share one.

    Raises:
        ValueError: A blob is damaged, or is no deletion vector.
        OSError: A file cannot be read.
    """
    from pyroaring import BitMap64

    before, after = (BitMap64() if v is None else BitMap64.deserialize(_bitmap(v, read)) for v in (old, new))
    return after - before, before - after


def _bitmap(vector: Vector, read: Callable[[str], bytes]) -> bytes:
    """Return the serialized bitmap within a blob.

    After its length and magic, before its checksum.
    """
    blob = read(vector.file)[vector.offset : vector.offset + vector.size]
    if len(blob) != vector.size or len(blob) < 12:
        raise ValueError(f"{vector.file} ends within a deletion vector")
    (length,), (checksum,) = struct.unpack(">i", blob[:4]), struct.unpack(">I", blob[-4:])
    body = blob[4:-4]
    if body[:4] != _MAGIC or length != len(body) or zlib.crc32(body) != checksum:
        raise ValueError(f"{vector.file} holds no whole deletion vector at {vector.offset}")
    return body[4:]
