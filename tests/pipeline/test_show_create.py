"""What SHOW CREATE STREAM TABLE prints makes the table again: dropped and run, the definition is the same."""

from __future__ import annotations

from kit.definitions import defined

from headrace.api.facade import Headrace
from headrace.names import TableName

OPTIONS = {
    "tier": "warm",
    "pool": "it's a 'pool'; \\",
    "timeout": "10 minutes",
    "diamond_consistency": "aligned",
    "diamond_schedule_policy": "slowest",
    "refresh_group": "a [b] group",
    "fuse_ceiling": "100000",
    "fuse_factor": "2.5",
}


def test_what_is_shown_makes_the_same_table_again(hr: Headrace, ns: str) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.`or ders` (id BIGINT, `a``b` STRING) USING iceberg")
    hr.spark.sql(f"INSERT INTO lake.{ns}.`or ders` VALUES (1, 'x;y'), (2, NULL)")
    query = """
      -- orders that count; see [docs]
      SELECT id, `a``b` /* quoted */, ';' AS `semi;colon`
        FROM `or ders` -- without a namespace
       WHERE id > 0 -- the end"""
    odd = TableName("lake", (ns,), "1 odd`name")
    try:
        hr.spark.sql(f"USE lake.{ns}")
        hr.spark.sql("SET spark.sql.session.timeZone = Europe/Vienna")
        hr.create_stream_table(str(odd), query + ";\n", "0 6 * * *", "DIFFERENTIAL", options=OPTIONS)
    finally:
        hr.spark.sql("RESET spark.sql.session.timeZone")
        hr.spark.sql("USE lake")
    plain = TableName("lake", (ns,), "plain")
    hr.sql(
        f"CREATE STREAM TABLE {ns}.plain INITIALIZE FALSE AS\n  SELECT count(*) AS n -- rows\n FROM {odd} -- of it\n;"
    )
    before = [defined(hr, name) for name in (odd, plain)]
    shown = hr.show_create([str(plain), str(odd)])
    assert hr.sql(f"SHOW CREATE STREAM TABLE {plain}, {odd}") == shown
    assert hr.show_create(str(plain)) in shown
    hr.drop_stream_table(str(odd), cascade=True)
    hr.sql(shown)
    assert [defined(hr, name) for name in (odd, plain)] == before
    assert hr.show_create([str(odd), str(plain)]) == shown
    hr.refresh(str(plain))
    assert all(found.ok for found in hr.verify([str(odd), str(plain)]))


def test_what_is_set_can_be_read_back(hr: Headrace, ns: str) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t (k INT) USING iceberg")
    for name, read in (("b", "t"), ("c", "t"), ("d", "b JOIN x.c USING (k)")):
        query = f"SELECT k FROM x.{read}".replace("x.", f"{ns}.")
        hr.create_stream_table(f"{ns}.{name}", query, "5 minutes", options={"Pool": "finance"} if name == "b" else None)
    found = {info.name: info for info in hr.status([f"{ns}.b", f"{ns}.d"])}
    b, d = found[f"{ns}.b"], found[f"{ns}.d"]
    assert (b.properties, b.pool, b.group, b.policy) == ({"pool": "finance"}, "finance", f"{ns}.d", "fastest")
    assert (d.properties, d.pool, d.group, d.schedule) == ({}, None, f"{ns}.d", "5 minutes")
    explained = hr.explain(f"{ns}.b")
    assert explained.as_dict()["settings"] == {
        "schedule": "5 minutes",
        "refresh_mode": "AUTO",
        "properties": {"pool": "finance"},
        "pool": "finance",
        "group": f"{ns}.d",
        "members": [f"{ns}.b", f"{ns}.c", f"{ns}.d"],
        "policy": "fastest",
    }
    assert "pool = finance" in dict(explained.sections)["settings"]
