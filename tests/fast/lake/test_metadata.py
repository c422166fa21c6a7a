import datetime as dt
import gzip
import json

import pytest

from headrace.algebra.schema import Column
from headrace.errors import EnvironmentFault
from headrace.lake.metadata import local_path, read_metadata

FIELDS = [
    {"id": 1, "name": "id", "required": True, "type": "long"},
    {"id": 2, "name": "amount", "required": False, "type": "decimal(12, 2)"},
    {
        "id": 3,
        "name": "tags",
        "required": False,
        "type": {
            "type": "map",
            "key-id": 4,
            "key": "string",
            "value-id": 5,
            "value-required": False,
            "value": {
                "type": "list",
                "element-id": 6,
                "element-required": False,
                "element": {
                    "type": "struct",
                    "fields": [
                        {"id": 7, "name": "at", "required": False, "type": "timestamptz"},
                        {"id": 8, "name": "raw", "required": False, "type": "fixed[16]"},
                    ],
                },
            },
        },
    },
]


def snapshot(id_, parent, **summary):
    return {
        "snapshot-id": id_,
        "parent-snapshot-id": parent,
        "sequence-number": id_,
        "timestamp-ms": id_ * 1000,
        "schema-id": 0,
        "manifest-list": f"/m/{id_}.avro",
        "summary": {"operation": "append"} | {k.replace("_", "-"): str(v) for k, v in summary.items()},
    }


def table(version=3, snapshots=(), current=None):
    return {
        "format-version": version,
        "table-uuid": "u-1",
        "location": "/w/t",
        "current-schema-id": 1,
        "schemas": [
            {"schema-id": 0, "type": "struct", "fields": FIELDS[:1]},
            {"schema-id": 1, "type": "struct", "fields": FIELDS},
        ],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "properties": {"a": "b"},
        "current-snapshot-id": current,
        "refs": {"main": {"snapshot-id": current, "type": "branch"}} if current else {},
        "snapshots": list(snapshots),
    }


@pytest.fixture
def written(tmp_path):
    def write(data, *, zipped=False):
        path = tmp_path / f"v{len(list(tmp_path.iterdir()))}.metadata.json"
        text = json.dumps(data).encode()
        path.write_bytes(gzip.compress(text) if zipped else text)
        return str(path)

    return write


@pytest.mark.parametrize("zipped", [False, True])
def test_columns_have_spark_types(written, zipped):
    meta = read_metadata(written(table(), zipped=zipped))
    assert meta.columns == (
        Column("id", "bigint", False),
        Column("amount", "decimal(12,2)"),
        Column("tags", "map<string,array<struct<at:timestamp,raw:binary>>>"),
    )
    assert meta.field_ids[1] == (1, 2, 3)
    assert (meta.uuid, meta.location) == ("u-1", "/w/t")


def test_a_table_without_a_snapshot_has_no_rows(written):
    for current in (None, -1):
        meta = read_metadata(written(table(current=None) | {"current-snapshot-id": current}))
        assert (meta.current, meta.row_count) == (None, 0)


@pytest.mark.parametrize(
    ("version", "summary", "rows"),
    [
        (3, {"total_records": 10, "total_position_deletes": 3}, 7),
        (2, {"total_records": 10, "total_position_deletes": 0}, 10),
        (2, {"total_records": 10, "total_position_deletes": 3}, None),
        (2, {"total_records": 10, "total_equality_deletes": 1}, None),
        (1, {}, None),
    ],
)
def test_rows_are_told_only_when_the_counters_can(written, version, summary, rows):
    meta = read_metadata(written(table(version, [snapshot(1, None, **summary)], 1)))
    assert meta.row_count == rows


def test_ancestors_end_where_history_expired(written):
    meta = read_metadata(written(table(3, [snapshot(3, 2), snapshot(2, 1), snapshot(9, 2)], 3)))
    assert [s.id for s in meta.ancestors(3)] == [3, 2]


def test_a_time_finds_the_snapshot_of_then_on_the_current_line(written):
    meta = read_metadata(written(table(3, [snapshot(1, None), snapshot(4, 1), snapshot(5, 1)], 5)))
    found = [meta.snapshot_at(dt.datetime.fromtimestamp(second, dt.UTC)) for second in (0, 1, 4, 5)]
    assert [s.id if s else None for s in found] == [None, 1, 1, 5]


def test_an_old_snapshot_has_the_schema_of_then(written):
    meta = read_metadata(written(table(3, [snapshot(1, None)], 1)))
    assert meta.schemas[meta.schema_at(1)] == (Column("id", "bigint", False),)


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"\x1f\x8bnot gzip"])
def test_a_damaged_file_is_a_plain_error(tmp_path, content):
    path = tmp_path / "x.metadata.json"
    path.write_bytes(content)
    with pytest.raises(EnvironmentFault, match="METADATA_UNREADABLE"):
        read_metadata(str(path))


def test_a_missing_file_is_a_plain_error(tmp_path):
    with pytest.raises(EnvironmentFault, match="METADATA_UNREADABLE"):
        read_metadata(str(tmp_path / "gone.metadata.json"))


def test_local_locations_need_no_file_io():
    assert str(local_path("file:///a/b%20c")) == "/a/b c"
    assert str(local_path("file:/a/b")) == "/a/b"
    assert local_path("s3://bucket/a") is None


def test_a_file_url_is_read(written):
    assert read_metadata(f"file://{written(table())}").uuid == "u-1"
