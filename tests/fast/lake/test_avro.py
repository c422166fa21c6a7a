import pytest
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from headrace.lake.files.avro import read_avro

SCHEMA = Schema(
    NestedField(1, "n", LongType(), required=True),
    NestedField(2, "text", StringType(), required=False),
    NestedField(3, "raw", BinaryType(), required=False),
    NestedField(4, "list", ListType(5, IntegerType(), element_required=True), required=False),
    NestedField(6, "map", MapType(7, IntegerType(), 8, BinaryType(), value_required=True), required=False),
    NestedField(9, "inner", StructType(NestedField(10, "yes", BooleanType(), required=True)), required=False),
    NestedField(11, "f", FloatType(), required=True),
    NestedField(12, "d", DoubleType(), required=True),
    NestedField(13, "fixed", FixedType(3), required=True),
)


def test_reading_gives_what_another_library_wrote(tmp_path):
    rows = [
        Record(
            n, None if n % 2 else f"t{n}", b"\x00" * n, list(range(n)), {n: b"v"}, Record(n > 0), 0.5, -n / 2, b"abc"
        )
        for n in (0, 1, -1, 2, 63, 64, 2**40)
        if n < 100
    ]
    path = str(tmp_path / "x.avro")
    with AvroOutputFile[Record](PyArrowFileIO().new_output(path), SCHEMA, "thing") as file:
        file.write_block(rows)
    found = list(read_avro((tmp_path / "x.avro").read_bytes()))
    assert len(found) == len(rows)
    for row, got in zip(rows, found, strict=True):
        n = row[0]
        assert got["n"] == n
        assert got["text"] == row[1]
        assert got["list"] == list(range(n))
        assert [(e["key"], e["value"]) for e in got["map"]] == [(n, b"v")]
        assert got["inner"] == {"yes": n > 0}
        assert (got["f"], got["d"], got["fixed"], got["raw"]) == (0.5, -n / 2, b"abc", b"\x00" * n)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"Obj\x01"])
def test_what_is_no_avro_file_is_refused(data):
    with pytest.raises(ValueError, match=r"Avro|avro"):
        list(read_avro(data))
