"""The pipeline's core on a cluster whose lake is in an object store: five tables, and a source in PostgreSQL."""

from __future__ import annotations

import psycopg
from kit.logical import logical_server
from kit.object_store import ObjectStore

from headrace.api.facade import Headrace
from headrace.results.refresh_results import Mode
from headrace.spark.session_kind import SessionKind, kind_of

TABLES = {
    "revenue": "SELECT region, sum(amount) AS total FROM {ns}.orders GROUP BY region",
    "rich": "SELECT region, total FROM {ns}.revenue WHERE total > 15",
    "poor": "SELECT region FROM {ns}.revenue WHERE total < 45",
    "both": "SELECT r.region, r.total FROM {ns}.rich r LEFT JOIN {ns}.poor p ON r.region = p.region",
    "visits": "SELECT r.region, r.total, count(v.id) AS visits FROM {ns}.both r JOIN {ns}_shop.visits v "
    "ON r.region = v.region GROUP BY r.region, r.total",
}


def test_a_graph_of_stream_tables_is_refreshed_in_both_modes_verified_and_maintained(
    hr: Headrace, ns: str, store: ObjectStore
) -> None:
    assert kind_of(hr.spark) is SessionKind.CLUSTER
    with logical_server() as server, psycopg.connect(server.fresh(), autocommit=True) as db:
        db.execute("CREATE TABLE visits (id int PRIMARY KEY, region text, tags text[])")
        db.execute(
            "INSERT INTO visits SELECT g, CASE g % 2 WHEN 0 THEN 'EU' END, '{a,NULL}' FROM generate_series(1, 1000) g"
        )
        hr.sources.create(f"{ns}_shop", db.info.dsn, ["visits"])
        for name, query in TABLES.items():
            hr.create_stream_table(f"{ns}.{name}", query.format(ns=ns), refresh_mode="DIFFERENTIAL")
        names = [f"{ns}.{name}" for name in TABLES]
        hr.sql(f"INSERT INTO lake.{ns}.orders VALUES (4, 'EU', 5)")
        db.execute("UPDATE visits SET region = 'EU' WHERE id < 800")
        modes = [result.mode for result in hr.refresh(names)]
        assert set(modes) <= {Mode.DIFFERENTIAL, Mode.NO_CHANGE}
        assert modes.count(Mode.DIFFERENTIAL) >= 3
        assert [tuple(row) for row in hr.spark.table(f"lake.{ns}.visits").collect()] == [("EU", 45, 900)]
        hr.sql(f"DELETE FROM lake.{ns}.orders WHERE region = 'US'")
        assert hr.refresh(f"{ns}.revenue", full=True).mode is Mode.FULL
        hr.refresh(names)
        assert all(result.ok for result in hr.verify(names))
        assert [tuple(row) for row in hr.spark.table(f"lake.{ns}.rich").collect()] == [("EU", 45)]
        actions = {one.action for one in hr.maintain(f"{ns}.revenue")}
        assert "remove_orphans" in actions
        assert store.objects("lake")
        assert hr.verify(f"{ns}.revenue").ok
        hr.drop_stream_table(f"{ns}.visits")
        hr.sources.drop(f"{ns}_shop")
