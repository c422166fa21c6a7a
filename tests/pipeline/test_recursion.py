"""WITH RECURSIVE through the whole pipeline: followed, verified, and stopped by a cycle."""

from __future__ import annotations

import pytest
from kit.long_tests import LONG

from headrace.api.facade import Headrace
from headrace.errors import UserError
from headrace.results.refresh_results import Mode

WAYS = (
    "WITH RECURSIVE ways(n, depth) MAX RECURSION LEVEL 5 AS (SELECT a, 0 FROM {ns}.edges WHERE a = 1"
    " UNION ALL SELECT e.b, depth + 1 FROM ways JOIN {ns}.edges e ON e.a = ways.n)"
)


def test_a_recursion_follows_what_comes_and_goes_and_stops_at_a_cycle(hr: Headrace, ns: str) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.edges (a INT, b INT) USING iceberg")
    hr.spark.sql(f"INSERT INTO lake.{ns}.edges VALUES (1, 2), (3, 4)")
    whole = f"{ns}.whole"
    hr.create_stream_table(whole, f"{WAYS} SELECT * FROM ways".format(ns=ns), refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO lake.{ns}.edges VALUES (2, 3), (2, 3)")
    assert hr.refresh(whole).mode is Mode.DIFFERENTIAL
    hr.spark.sql(f"DELETE FROM lake.{ns}.edges WHERE a = 3")
    assert hr.refresh(whole).mode is Mode.DIFFERENTIAL
    assert hr.verify(whole).ok
    before = hr.spark.table(f"lake.{whole}").count()
    hr.spark.sql(f"INSERT INTO lake.{ns}.edges VALUES (3, 3)")
    with pytest.raises(UserError) as caught:
        hr.refresh(whole)
    assert caught.value.code == "RECURSION_LIMIT"
    assert hr.spark.table(f"lake.{whole}").count() == before


if LONG:  # a recursion takes Spark many jobs

    def test_a_recursion_below_a_group_follows_what_comes_and_goes(hr: Headrace, ns: str) -> None:
        hr.spark.sql(f"CREATE TABLE lake.{ns}.edges (a INT, b INT) USING iceberg")
        hr.spark.sql(f"INSERT INTO lake.{ns}.edges VALUES (1, 2), (2, 3), (3, 4), (5, 6)")
        counted = f"{ns}.counted"
        grouped = f"{WAYS} SELECT n, count(*) AS c FROM ways GROUP BY n".format(ns=ns)
        hr.create_stream_table(counted, grouped, refresh_mode="DIFFERENTIAL")
        for change in (
            f"INSERT INTO lake.{ns}.edges VALUES (2, 4), (2, 4), (4, 5)",
            f"DELETE FROM lake.{ns}.edges WHERE a = 2 AND b = 4",
        ):
            hr.spark.sql(change)
            assert hr.refresh(counted).mode is Mode.DIFFERENTIAL
            assert hr.verify(counted).ok, change
