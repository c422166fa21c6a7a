"""Deployments of a part of a group: the rest follows in the same publication, or nothing happens."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kit.random_deployments import left_behind, refusal

from headrace.api.facade import Headrace
from headrace.errors import HeadraceError

PIPELINE = """
CREATE TABLE {ns}.orders USING iceberg AS SELECT * FROM VALUES (1L, 10L), (2L, 20L) AS t(k, v);
CREATE STREAM TABLE {ns}.left AS SELECT k, v FROM {ns}.orders;
CREATE STREAM TABLE {ns}.right AS SELECT k, count(*) AS n FROM {ns}.orders GROUP BY k;
CREATE STREAM TABLE {ns}.middle AS SELECT k, IF(v > 900, raise_error('too large'), v) AS v FROM {ns}.left;
CREATE STREAM TABLE {ns}.bottom AS SELECT m.k, m.v, r.n FROM {ns}.middle m JOIN {ns}.right r ON m.k = r.k;
CREATE STREAM TABLE {ns}.outside AS SELECT sum(v) AS v FROM {ns}.bottom
"""


def rows(hr: Headrace, table: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in hr.spark.table(f"lake.{table}").collect())


def refused(hr: Headrace, ns: str) -> str:
    before = rows(hr, f"{ns}.bottom"), hr._catalog.greens()
    with pytest.raises(HeadraceError) as error:
        hr.promote_all_green()
    assert (rows(hr, f"{ns}.bottom"), hr._catalog.greens()) == before
    assert hr._catalog.dirty_staging() == ()
    return error.value.code


def check(hr: Headrace, ns: str) -> None:
    assert all(v.ok for v in hr.verify([t.name for t in hr.status() if t.name.startswith(ns)]))
    with hr._catalog.reading() as reader:
        assert left_behind(reader) == set()


def test_the_rest_of_a_group_follows_at_once(hr: Headrace, ns: str) -> None:
    hr.sql(PIPELINE.format(ns=ns))
    hr.create_green(f"{ns}.left", f"SELECT k, v + 1 AS v FROM {ns}.orders")
    hr.sql(f"INSERT INTO {ns}.orders VALUES (3, 30)")
    hr.refresh()
    assert hr.promote_all_green(dry_run=True).followed == (f"{ns}.middle", f"{ns}.bottom")

    done = hr.promote_all_green()
    assert done.followed == (f"{ns}.middle", f"{ns}.bottom")
    assert rows(hr, f"{ns}.bottom") == [(1, 11, 1), (2, 21, 1), (3, 31, 1)]
    assert rows(hr, f"{ns}.outside") == [(60,)]
    last = {name: hr.history(f"{ns}.{name}")[0] for name in ("left", "middle", "bottom")}
    assert {entry.publication for entry in last.values()} == {done.publication}
    assert {last["middle"].reason, last["bottom"].reason} <= {None, "COST"}, last
    hr.refresh()
    assert rows(hr, f"{ns}.outside") == [(63,)]

    back = hr.rollback_green(deployment="green")
    assert back.followed == (f"{ns}.middle", f"{ns}.bottom")
    assert rows(hr, f"{ns}.bottom") == [(1, 10, 1), (2, 20, 1), (3, 30, 1)]
    check(hr, ns)

    hr.create_green(f"{ns}.bottom")
    assert refused(hr, ns) == "GROUP_TORN"  # what lies between is left out
    hr.create_green(f"{ns}.middle")
    assert hr.promote_all_green(dry_run=True).followed == ()
    hr.cancel_green(deployment="green")

    hr.create_green(f"{ns}.left", f"SELECT k, v + 1000 AS v FROM {ns}.orders")
    assert refused(hr, ns) == "GROUP_CANNOT_FOLLOW"
    hr.pause([f"{ns}.middle"])
    assert hr.promote_all_green().followed == ()
    check(hr, ns)
    hr.cancel_green(deployment="green")


def test_a_promoted_member_that_holds_up_its_group_is_taken_back(hr: Headrace, ns: str) -> None:
    hr.sql(f"CREATE TABLE {ns}.o (id BIGINT, a INT) USING iceberg; INSERT INTO {ns}.o VALUES (1, 10), (2, 2)")
    hr.create_stream_table(f"{ns}.big", f"SELECT id, a FROM {ns}.o WHERE a >= 10")
    hr.create_stream_table(f"{ns}.small", f"SELECT id, a FROM {ns}.o WHERE a < 10")
    hr.create_stream_table(f"{ns}.both", f"SELECT * FROM {ns}.big UNION ALL SELECT * FROM {ns}.small")
    hr.create_green(f"{ns}.big", f"SELECT id, CAST(100 / (a - 30) AS INT) AS a FROM {ns}.o WHERE a >= 10")
    hr.promote_green(f"{ns}.big")
    hr.sql(f"INSERT INTO {ns}.o VALUES (3, 30), (4, 4)")
    hr.refresh(f"{ns}__green_previous.big")
    group = tuple(t.name for t in hr._catalog.stream_tables() if t.name.table in {"big", "small", "both"})
    public = [name for name in group if name.namespace == (ns,)]
    hr._catalog.note_failure(public, "DIVIDE_BY_ZERO", "no", lambda _: None)  # as a scheduler does for a group

    back = hr.rollback_green(f"{ns}.big")
    assert set(back.followed) == {f"{ns}.small", f"{ns}.both"}
    assert rows(hr, f"{ns}.both") == [(1, 10), (2, 2), (3, 30), (4, 4)]
    assert all(hr._catalog.scheduling_states()[name].held_up is None for name in public)
    check(hr, ns)

    hr.cancel_green(deployment="green")


@pytest.mark.long
def test_a_promotion_mends_the_member_that_holds_up_its_group(hr: Headrace, ns: str) -> None:
    hr.sql(f"CREATE TABLE {ns}.o (id BIGINT, a INT) USING iceberg; INSERT INTO {ns}.o VALUES (1, 10), (2, 2)")
    hr.create_stream_table(f"{ns}.big", f"SELECT id, IF(a = 30, raise_error('no'), a) AS a FROM {ns}.o WHERE a >= 10")
    hr.create_stream_table(f"{ns}.small", f"SELECT id, a FROM {ns}.o WHERE a < 10")
    hr.create_stream_table(f"{ns}.both", f"SELECT * FROM {ns}.big UNION ALL SELECT * FROM {ns}.small")
    hr.sql(f"INSERT INTO {ns}.o VALUES (3, 30), (4, 4)")
    assert code_of(lambda: hr.refresh(f"{ns}.both")) is not None
    assert rows(hr, f"{ns}.both") == [(1, 10), (2, 2)]
    hr.create_green(f"{ns}.big", f"SELECT id, a FROM {ns}.o WHERE a >= 10")
    done = hr.promote_green(f"{ns}.big")
    assert set(done.followed) == {f"{ns}.small", f"{ns}.both"}
    assert rows(hr, f"{ns}.both") == [(1, 10), (2, 2), (3, 30), (4, 4)]
    assert code_of(lambda: hr.rollback_green(f"{ns}.big")) is not None  # the former query fails over these rows
    assert rows(hr, f"{ns}.both") == [(1, 10), (2, 2), (3, 30), (4, 4)]
    check(hr, ns)
    hr.cancel_green(deployment="green")


def code_of(act: Callable[[], object]) -> str | None:
    error = refusal(act)
    return None if error is None else error.code


@pytest.mark.parametrize("side", ["public", "former"])
def test_a_fuse_that_has_blown_on_one_side(hr: Headrace, ns: str, side: str) -> None:
    limited, none = {"fuse_ceiling": "3"}, {"fuse_ceiling": "none"}
    hr.sql(f"CREATE TABLE {ns}.orders (k BIGINT) USING iceberg; INSERT INTO {ns}.orders VALUES (1)")
    hr.create_stream_table(f"{ns}.b", f"SELECT k FROM {ns}.orders", options=limited if side == "former" else {})
    hr.create_green(f"{ns}.b", f"SELECT k + 1 AS k FROM {ns}.orders", options=limited if side == "public" else none)
    hr.promote_all_green()
    hr.sql(f"INSERT INTO {ns}.orders SELECT id + 10 FROM range(5)")
    assert code_of(hr.refresh) == "FUSE_BLOWN"
    hr.refresh(f"{ns}.b" if side == "former" else f"{ns}__green_previous.b")
    back = code_of(lambda: hr.rollback_green(deployment="green"))
    if side == "former":
        assert back == "FUSE_BLOWN"  # it would take back what the public table shows
        assert hr.spark.table(f"lake.{ns}.b").count() == 6
    else:
        assert back is None
        assert rows(hr, f"{ns}.b") == [(1,), *((k,) for k in range(10, 15))]
        hr.sql(f"INSERT INTO {ns}.orders VALUES (20)")
        hr.refresh(f"{ns}.b")
        assert len(rows(hr, f"{ns}.b")) == 7
    assert all(v.ok for v in hr.verify([t.name for t in hr.status() if t.name.startswith(ns)]))
    hr.cancel_green(deployment="green")
