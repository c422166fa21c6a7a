"""Sources whose files are Avro or ORC: what is known of files' ranges and positions differs, the rows do not."""

from __future__ import annotations

import pytest

from headrace.api.facade import Headrace

JOINED = """
SELECT o.region, count(*) AS n, sum(o.amount) AS total, max(c.name) AS last
FROM {ns}.orders o JOIN {ns}.customers c ON c.id = o.customer
GROUP BY o.region"""

CHANGES = (
    "INSERT INTO lake.{ns}.orders SELECT 5000 + id, id % 40, 'west', 1.5 FROM range(30)",
    "DELETE FROM lake.{ns}.orders WHERE id BETWEEN 100 AND 140",
    "UPDATE lake.{ns}.customers SET name = 'renamed' WHERE id IN (3, 17)",
    "MERGE INTO lake.{ns}.orders t USING (SELECT 7 AS id UNION ALL SELECT 9999) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET amount = NULL "
    "WHEN NOT MATCHED THEN INSERT (id, customer, region, amount) VALUES (9999, 1, 'east', 7.0)",
    "DELETE FROM lake.{ns}.customers WHERE id = 5",
)


@pytest.mark.parametrize(("orders", "customers", "version"), [("avro", "orc", 3), ("orc", "avro", 2)])
def test_they_are_followed(hr: Headrace, ns: str, orders: str, customers: str, version: int) -> None:
    modes = ", ".join(f"'write.{m}.mode'='merge-on-read'" for m in ("delete", "update", "merge"))
    for name, form, rows in (
        ("orders", orders, "id, id % 50 AS customer, if(id % 3 = 0, 'east', 'west') AS region, id / 4.0 AS amount"),
        ("customers", customers, "id, concat('c', id) AS name"),
    ):
        hr.spark.sql(
            f"CREATE TABLE lake.{ns}.{name} USING iceberg TBLPROPERTIES ('format-version'='{version}', "
            f"'write.format.default'='{form}', {modes}) AS SELECT {rows} FROM range(2000)"
        )
    joined, listed = f"{ns}.joined", f"{ns}.listed"
    read = f"SELECT id, amount FROM {ns}.orders WHERE customer IN (SELECT id FROM {ns}.customers)"
    for name, query in ((joined, JOINED.format(ns=ns)), (listed, read)):
        hr.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
    for change in CHANGES:
        hr.spark.sql(change.format(ns=ns))
        assert {r.mode.value for r in hr.refresh([joined, listed])} <= {"DIFFERENTIAL", "NO_CHANGE"}
        assert all(result.ok for result in hr.verify([joined, listed]))
    files = hr.spark.sql(f"SELECT DISTINCT file_format FROM lake.{ns}.orders.files WHERE content = 0").collect()
    assert [row[0].lower() for row in files] == [orders]
