"""Reads Avro container files, as Iceberg writes its manifests.

A general library would do, but importing PyIceberg's costs a second per process, more than the whole reading.
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

Decoder = Callable[[io.BytesIO], Any]

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
"""Length of the marker between two blocks, by Avro's specification."""


def read_avro(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the records of a container file, as dicts.

    Raises:
        ValueError: It is no Avro file, is cut short, or has a compression other than none or deflate.
    """
    stream = io.BytesIO(data)
    if stream.read(4) != _MAGIC:
        raise ValueError("not an Avro file")
    meta = {key: value for key, value in _entries(stream, _text, _bytes)}
    codec = meta.get("avro.codec", b"null").decode()
    if codec not in ("null", "deflate"):
        raise ValueError(f"Avro codec {codec} is not supported")
    decode = _decoder(json.loads(meta["avro.schema"]), {})
    stream.read(_SYNC_BYTES)
    while stream.tell() < len(data):
        count = _long(stream)
        block = _bytes(stream)
        records = io.BytesIO(zlib.decompress(block, -15) if codec == "deflate" else block)
        for _ in range(count):
            yield decode(records)
        stream.read(_SYNC_BYTES)


def _long(stream: io.BytesIO) -> int:
    """Return a zigzag variable-length integer."""
    shift = number = 0
    while True:
        byte = stream.read(1)
        if not byte:
            raise ValueError("Avro file ends early")
        number |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return (number >> 1) ^ -(number & 1)
        shift += 7


def _bytes(stream: io.BytesIO) -> bytes:
    return stream.read(_long(stream))


def _text(stream: io.BytesIO) -> str:
    return _bytes(stream).decode()


def _entries(stream: io.BytesIO, *decoders: Decoder) -> Iterator[tuple[Any, ...]]:
    """Yield the items of an array or map.

    Blocks of them, each after its count, until an empty one.
    """
    while count := _long(stream):
        if count < 0:  # then the block's size in bytes follows
            _long(stream)
        for _ in range(abs(count)):
            yield tuple(decode(stream) for decode in decoders)


_PRIMITIVES: dict[str, Decoder] = {
    "null": lambda stream: None,
    "boolean": lambda stream: stream.read(1) == b"\x01",
    "int": _long,
    "long": _long,
    "float": lambda stream: struct.unpack("<f", stream.read(4))[0],
    "double": lambda stream: struct.unpack("<d", stream.read(8))[0],
    "bytes": _bytes,
    "string": _text,
}


def _decoder(schema: Any, named: dict[str, Decoder]) -> Decoder:
    if isinstance(schema, list):
        options = [_decoder(option, named) for option in schema]
        return lambda stream: options[_long(stream)](stream)
    if isinstance(schema, str):
        return _PRIMITIVES[schema] if schema in _PRIMITIVES else named[schema]
    kind = schema["type"]
    if kind == "record":
        return _record(schema, named)
    if kind == "array":
        item = _decoder(schema["items"], named)
        return lambda stream: [value for (value,) in _entries(stream, item)]
    if kind == "map":
        value = _decoder(schema["values"], named)
        return lambda stream: dict(_entries(stream, _text, value))
    if kind == "fixed":
        size = schema["size"]
        named[schema["name"]] = decode = lambda stream: stream.read(size)
        return decode
    return _decoder(kind, named)


def _record(schema: dict[str, Any], named: dict[str, Decoder]) -> Decoder:
    fields: list[tuple[str, Decoder]] = []

    def decode(stream: io.BytesIO) -> dict[str, Any]:
        return {name: read(stream) for name, read in fields}

    named[schema["name"]] = decode
    fields += [(field["name"], _decoder(field["type"], named)) for field in schema["fields"]]
    return decode
