"""Landings of PostgreSQL are spooled where the warehouse is: in a store that only the project's settings reach."""

from __future__ import annotations

import pyarrow as pa
from kit.object_store import ObjectStore

from headrace.lake.files.file_access import reach_by
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.spool.spool import Spool


def test_a_spool_in_an_object_store(store: ObjectStore) -> None:
    store.make("spools")
    warehouse = "s3://spools/warehouse"
    reach_by(
        warehouse,
        {
            "s3.endpoint": store.endpoint,
            "s3.access-key-id": "writer",
            "s3.secret-access-key": "secret",
            "s3.region": "us-east-1",
        },
    )
    spool = Spool(f"{warehouse}/landings/1")
    batch = pa.RecordBatch.from_pydict({"id": ["1", "2"]})
    part = spool.part(RemoteTable(7, "public", "orders", "d", ("id",), ()))
    assert spool.fill(part, 0, [batch, batch]) == 4
    assert spool.folder_of(part).startswith(f"{warehouse}/landings/1/")
    assert Spool(f"{warehouse}/landings/1").size() > 0
    spool.clear()
    assert Spool(f"{warehouse}/landings/1").size() == 0
