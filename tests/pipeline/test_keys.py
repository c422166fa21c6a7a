"""Declared keys: checked, used, told when they break, and taken back."""

from __future__ import annotations

import pytest

from headrace.api.facade import Headrace
from headrace.errors import EnvironmentFault, UserError


@pytest.fixture
def tables(hr: Headrace, ns: str) -> str:
    orders = "VALUES (1L, 1L, 10L), (2L, 2L, 20L), (3L, NULL, 30L), (4L, 1L, 40L) AS t(Id, customer, amount)"
    customers = "VALUES (1L, 'ann'), (2L, 'bob'), (NULL, 'nobody') AS t(id, name)"
    hr.sql(f"CREATE TABLE lake.{ns}.o USING iceberg AS SELECT * FROM {orders}")
    hr.sql(f"CREATE TABLE lake.{ns}.c USING iceberg AS SELECT * FROM {customers}")
    return ns


def test_a_key_that_is_none_is_refused(hr: Headrace, tables: str) -> None:
    with pytest.raises(UserError, match="KEY_VIOLATED") as caught:
        hr.declare_key(f"{tables}.o", "customer")
    assert "1 values are in several rows" in caught.value.message
    with pytest.raises(UserError, match="COLUMN_NOT_FOUND"):
        hr.declare_key(f"{tables}.o", ["id", "nothing"])
    with pytest.raises(UserError, match="TABLE_NOT_FOUND"):
        hr.declare_key(f"{tables}.nothing", "id")
    with pytest.raises(UserError, match="KEY_NOT_DECLARED"):
        hr.drop_key(f"{tables}.o", "id")
    declared = hr.keys()
    assert not [k for k in declared if k.source.startswith(f"{tables}.")]


def test_keys_save_work_and_their_loss_is_seen(hr: Headrace, tables: str) -> None:
    ns = tables
    hr.create_stream_table(f"{ns}.d", f"SELECT DISTINCT id, amount FROM {ns}.o")
    left = f"SELECT o.id, o.amount, c.name FROM {ns}.o LEFT JOIN {ns}.c ON o.customer = c.id"
    hr.create_stream_table(f"{ns}.l", left)
    info = hr.sql(f"DECLARE KEY (ID) ON {ns}.o")
    assert info.columns == ("Id",)
    assert info.to_recompute == (f"{ns}.d", f"{ns}.l")
    hr.declare_key(f"{ns}.c", "id")
    results = {r.name: r.reason for r in hr.refresh() if r.name.startswith(f"{ns}.")}
    assert results == dict.fromkeys((f"{ns}.d", f"{ns}.l"), "DEFINITION_CHANGED")
    assert not hr.keys()[0].to_recompute
    sections = dict(hr.explain(f"{ns}.l", refresh_mode="DIFFERENTIAL").sections)
    assert "one partner at most" in sections["algebra"]
    assert "the plan rests on them" in sections["keys"]
    assert "Aggregate" not in dict(hr.explain(f"{ns}.d").sections)["algebra"]

    for table in ("d", "l"):
        hr.alter_stream_table(f"{ns}.{table}", refresh_mode="DIFFERENTIAL")
    hr.sql(f"UPDATE lake.{ns}.c SET name = 'bea' WHERE id = 2")
    hr.sql(f"INSERT INTO lake.{ns}.c VALUES (7, 'eve')")
    hr.sql(f"DELETE FROM lake.{ns}.c WHERE id = 1")
    hr.sql(f"INSERT INTO lake.{ns}.o VALUES (5, 7, 50), (6, 8, 60)")
    assert {r.mode for r in hr.refresh([f"{ns}.d", f"{ns}.l"])} == {"DIFFERENTIAL"}
    assert all(r.ok for r in hr.verify([f"{ns}.d", f"{ns}.l"]))

    hr.sql(f"INSERT INTO lake.{ns}.o VALUES (5, 7, 50)")
    hr.refresh([f"{ns}.d", f"{ns}.l"])
    broken = hr.verify(f"{ns}.d")
    assert not broken.ok
    assert broken.broken_keys == (f"key (Id) of {ns}.o does not hold: 1 values are in several rows",)
    hr.drop_key(f"{ns}.o", "iD")
    assert hr.refresh(f"{ns}.d").reason == "DEFINITION_CHANGED"
    assert hr.verify(f"{ns}.d").ok


def test_keys_of_stream_tables_follow_from_their_queries(hr: Headrace, tables: str) -> None:
    ns = tables
    hr.create_stream_table(f"{ns}.g", f"SELECT customer, sum(amount) AS total FROM {ns}.o GROUP BY customer")
    hr.create_stream_table(f"{ns}.n", f"SELECT DISTINCT customer, total FROM {ns}.g", refresh_mode="DIFFERENTIAL")
    assert "Aggregate" not in dict(hr.explain(f"{ns}.n").sections)["algebra"]
    hr.sql(f"INSERT INTO lake.{ns}.o VALUES (7, 1, 5), (8, 9, 6)")
    hr.refresh([f"{ns}.g", f"{ns}.n"])
    with pytest.raises(UserError, match="INVALID_OPTION"):
        hr.declare_key(f"{ns}.g", "customer")
    # another query, without that key: what rests on it is defined again
    several = f"SELECT customer, CAST(amount AS decimal(38,0)) AS total FROM {ns}.o"
    hr.create_stream_table(f"{ns}.g", several, or_replace=True)
    assert hr.refresh(f"{ns}.n").reason == "DEFINITION_CHANGED"
    assert hr.verify(f"{ns}.n").ok


def test_a_key_that_goes_while_a_lease_is_waited_for(hr: Headrace, tables: str) -> None:
    """What is computed by it then is not published."""
    ns = tables
    hr.create_stream_table(f"{ns}.p", f"SELECT customer, count(*) AS n FROM {ns}.o GROUP BY customer")
    query = f"SELECT c.id, c.name FROM {ns}.c WHERE EXISTS (SELECT 1 FROM {ns}.p WHERE p.customer = c.id)"
    hr.create_stream_table(f"{ns}.r", query)
    creator, name = hr._engine().creator, hr._name(f"{ns}.r")
    hr.sql(f"INSERT INTO {ns}.o VALUES (5, 1, 50)")
    group = creator.plan_group((name,), hr._heads())
    hr.sql(f"CREATE OR REPLACE STREAM TABLE {ns}.p AS SELECT customer, amount AS n FROM {ns}.o")
    with pytest.raises(EnvironmentFault, match="CUT_OVERTAKEN"):
        group.run()
    assert hr.verify(f"{ns}.r").ok
    hr.refresh(f"{ns}.r")
    assert hr.verify(f"{ns}.r").ok
