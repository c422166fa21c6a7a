"""The pipeline's core on a cluster whose lake is in an object store."""

from __future__ import annotations

from kit.object_store import ObjectStore

from headrace.api.facade import Headrace
from headrace.results.refresh_results import Mode
from headrace.spark.session_kind import SessionKind, kind_of


def test_stream_tables_are_refreshed_in_both_modes_verified_and_maintained(
    hr: Headrace, ns: str, store: ObjectStore
) -> None:
    assert kind_of(hr.spark) is SessionKind.CLUSTER
    hr.create_stream_table(
        f"{ns}.revenue",
        f"SELECT region, sum(amount) AS total FROM {ns}.orders GROUP BY region",
        refresh_mode="DIFFERENTIAL",
    )
    hr.create_stream_table(
        f"{ns}.rich", f"SELECT region, total FROM {ns}.revenue WHERE total > 15", refresh_mode="DIFFERENTIAL"
    )
    hr.sql(f"INSERT INTO lake.{ns}.orders VALUES (4, 'EU', 5)")
    assert {result.mode for result in hr.refresh()} == {Mode.DIFFERENTIAL}
    hr.sql(f"DELETE FROM lake.{ns}.orders WHERE region = 'US'")
    assert hr.refresh(f"{ns}.revenue", full=True).mode is Mode.FULL
    hr.refresh()
    assert all(result.ok for result in hr.verify())
    assert [tuple(row) for row in hr.spark.table(f"lake.{ns}.rich").collect()] == [("EU", 45)]
    actions = {one.action for one in hr.maintain(f"{ns}.revenue")}
    assert "remove_orphans" in actions
    assert store.objects("lake")
    assert hr.verify(f"{ns}.revenue").ok
