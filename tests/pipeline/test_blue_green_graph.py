"""Deployments that change the graph: tables that come, tables that go, and both taken back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kit.random_deployments import left_behind
from kit.refresh_reasons import CHEAPER

from headrace.api.facade import Headrace
from headrace.errors import HeadraceError

PIPELINE = """
CREATE TABLE {ns}.orders USING iceberg
    AS SELECT * FROM VALUES (1L, 'EU', 10L), (2L, 'US', 20L), (3L, 'EU', 5L) AS t(id, region, amount);
CREATE STREAM TABLE {ns}.lines AS SELECT id, region, amount FROM {ns}.orders WHERE amount > 0;
CREATE STREAM TABLE {ns}.totals AS SELECT region, sum(amount) AS total FROM {ns}.lines GROUP BY region;
CREATE STREAM TABLE {ns}.outside REFRESH MODE DIFFERENTIAL AS SELECT region, total FROM {ns}.totals
"""


def rows(hr: Headrace, table: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in hr.spark.table(f"lake.{table}").collect())


def follows(hr: Headrace) -> bool:
    """Whether what changes is followed by change, or recomputed because that is cheaper."""
    return {r.reason for r in hr.refresh()} <= CHEAPER


def names(hr: Headrace, ns: str) -> set[str]:
    return {t.name.removeprefix(ns) for t in hr.status() if t.name.startswith(ns)}


def all_ok(hr: Headrace, ns: str) -> bool:
    return all(v.ok for v in hr.verify([t.name for t in hr.status() if t.name.startswith(ns)]))


def test_a_table_is_split_in_two_and_merged_again(hr: Headrace, ns: str) -> None:
    hr.sql(PIPELINE.format(ns=ns))
    hr.sql(f"CREATE NEW GREEN STREAM TABLE {ns}.eu AS SELECT id, amount FROM {ns}.orders WHERE region = 'EU'")
    hr.sql(f"CREATE NEW GREEN STREAM TABLE {ns}.us AS SELECT id, amount FROM {ns}.orders WHERE region <> 'EU'")
    hr.create_green(
        f"{ns}.totals",
        f"""SELECT region, sum(amount) AS total FROM (
            SELECT 'EU' AS region, amount FROM {ns}.eu UNION ALL SELECT 'US', amount FROM {ns}.us
        ) GROUP BY region""",
    )
    hr.sql(f"DROP STREAM TABLE {ns}.lines IN DEPLOYMENT green")
    info = {i.name.removeprefix(ns): (i.role, i.state, i.detail) for i in hr.green_status(deployment="green")}
    assert info == {
        ".eu": ("new", "converged", None),
        ".us": ("new", "converged", None),
        ".totals": ("exchange", "converged", None),
        ".lines": ("drop", "converged", None),
    }
    hr.sql(f"INSERT INTO {ns}.orders VALUES (4, 'EU', 7)")
    hr.refresh(f"{ns}.outside")
    assert {t.name for t in hr.promote_all_green(dry_run=True).tables} == {f"{ns}{n}" for n in info}
    hr.refresh()
    old, version = hr.status([f"{ns}.lines"])[0].version, hr.status([f"{ns}.totals"])[0].version or 0

    done = {t.name.removeprefix(ns): (t.role, t.rows_inserted, t.rows_deleted) for t in hr.promote_all_green().tables}
    assert done[".eu"] == ("new", 3, 0)
    assert done[".lines"] == ("drop", 0, 4)
    former = {"__green_previous.lines", "__green_previous.totals"}
    assert names(hr, ns) == {".eu", ".us", ".totals", ".outside"} | former
    assert rows(hr, f"{ns}.totals") == [("EU", 22), ("US", 20)]
    assert hr.status([f"{ns}.totals"])[0].version == version  # the same rows: nothing to tell readers
    hr.sql(f"INSERT INTO {ns}.orders VALUES (5, 'US', 1)")
    assert follows(hr)
    assert rows(hr, f"{ns}.outside") == [("EU", 22), ("US", 21)]

    hr.create_stream_table(f"{ns}.late", f"SELECT sum(amount) AS s FROM {ns}.us")
    with pytest.raises(HeadraceError) as refused:
        hr.rollback_green(deployment="green")
    assert refused.value.code == "READERS_BROKEN"
    assert f"{ns}.late: {ns}.us is gone" in refused.value.message
    hr.drop_stream_table(f"{ns}.late")
    hr.rollback_green(deployment="green")
    assert names(hr, ns) == {".lines", ".totals", ".outside", "__green.eu", "__green.us", "__green.totals"}
    assert (hr.status([f"{ns}.lines"])[0].version or 0) > (old or 0)
    hr.sql(f"INSERT INTO {ns}.orders VALUES (6, 'EU', 2)")
    assert follows(hr)

    hr.promote_all_green()
    assert hr.cancel_green(deployment="green") == (f"{ns}__green_previous.lines", f"{ns}__green_previous.totals")
    assert names(hr, ns) == {".eu", ".us", ".totals", ".outside"}
    assert hr.green_status() == ()
    hr.sql(f"DELETE FROM {ns}.orders WHERE id = 1")
    assert follows(hr)
    assert all_ok(hr, ns)


def test_what_comes_and_goes_is_refused_plainly(hr: Headrace, ns: str) -> None:
    hr.sql(PIPELINE.format(ns=ns))
    lines, new, query = f"{ns}.lines", f"{ns}.new", f"SELECT region FROM {ns}.lines"

    def code(act: Callable[..., object], *args: object, **options: object) -> str:
        with pytest.raises(HeadraceError) as refused:
            act(*args, **options)
        return refused.value.code

    assert code(hr.create_green, new, query) == "STREAM_TABLE_NOT_FOUND"
    assert code(hr.create_green, lines, query, new=True) == "TABLE_EXISTS"
    assert code(hr.create_green, f"{ns}.orders", query, new=True) == "TABLE_EXISTS"
    assert code(hr.create_green, new, new=True) == "INVALID_OPTION"
    assert code(hr.drop_with_green, new) == "STREAM_TABLE_NOT_FOUND"
    assert hr.green_status() == ()

    hr.drop_with_green(lines)
    assert code(hr.drop_with_green, lines, "v2") == "IN_DEPLOYMENT"
    assert code(hr.create_green, lines, deployment="v2") == "IN_DEPLOYMENT"
    assert code(hr.drop_stream_table, lines, cascade=True) == "IN_DEPLOYMENT"
    assert hr.green_status(lines)[0].detail == f"still read by {ns}.totals"
    assert hr.promote_green(lines, dry_run=True).broken[0].reader == f"{ns}.totals"
    assert code(hr.promote_green, lines, force=True) == "READERS_BROKEN"
    assert hr.cancel_green(lines) == ()
    assert rows(hr, f"{ns}.totals") == [("EU", 15), ("US", 20)]

    hr.create_green(new, query, new=True)
    assert code(hr.create_green, f"{ns}__green.new", query, new=True) == "GREEN_OF_GREEN"
    hr.create_stream_table(new, query)
    assert code(hr.promote_green, new) == "TABLE_EXISTS"
    hr.drop_stream_table(new)
    hr.alter_stream_table(f"{ns}.outside", schedule="1 hour")
    hr.drop_with_green(f"{ns}.outside")
    hr.alter_stream_table(f"{ns}.outside", schedule="2 hours")
    assert code(hr.promote_all_green) == "GREEN_OUTDATED"
    assert hr.cancel_green(deployment="green") == (f"{ns}__green.new",)

    hr.create_green(f"{ns}.also", f"SELECT id FROM {ns}.lines", new=True)
    hr.create_green(f"{ns}.totals")
    green, before = hr._catalog.greens(), rows(hr, f"{ns}__green.totals")
    assert code(hr.create_green, lines, f"SELECT id, region FROM {ns}.orders") == "COLUMN_NOT_FOUND"
    assert hr._catalog.greens() == green
    reads = {g.name.table: [str(s) for s in hr._catalog.stream_table(g.name).sources] for g in green}
    assert reads == {"also": [lines], "totals": [lines]}
    hr.create_green(lines, initialize=False)
    hr.refresh([f"{ns}__green.also", f"{ns}__green.totals"])  # over the public one as long as it is not loaded
    hr.refresh(f"{ns}__green.lines")
    hr.refresh()
    reads = {g.name.table: [str(s) for s in hr._catalog.stream_table(g.name).sources] for g in green}
    assert reads == {"also": [f"{ns}__green.lines"], "totals": [f"{ns}__green.lines"]}
    assert rows(hr, f"{ns}__green.totals") == before
    assert len(rows(hr, f"{ns}__green.also")) == 3
    assert all_ok(hr, ns)
    hr.cancel_green(deployment="green")
    with hr._catalog.reading() as reader:
        assert left_behind(reader) == set()


def test_a_green_that_others_can_neither_read_nor_leave_ends_with_its_deployment(hr: Headrace, ns: str) -> None:
    hr.sql(f"""
        CREATE TABLE {ns}.orders USING iceberg AS SELECT * FROM VALUES (1L, 10L), (2L, 20L) AS t(id, amount);
        CREATE STREAM TABLE {ns}.lines AS SELECT id, amount FROM {ns}.orders;
        CREATE STREAM TABLE {ns}.first AS SELECT id, 60 DIV amount AS n FROM {ns}.lines;
        CREATE STREAM TABLE {ns}.second AS SELECT id, 60 DIV (amount - 7) AS n FROM {ns}.lines""")
    hr.create_green(f"{ns}.first")
    hr.create_green(f"{ns}.second")
    hr.sql(f"INSERT INTO {ns}.orders VALUES (3, 0)")
    hr.refresh(f"{ns}.lines")  # now the first green cannot be defined over it again
    with pytest.raises(HeadraceError) as failed:
        hr.create_green(f"{ns}.lines", f"SELECT id, 7L AS amount FROM {ns}.orders")  # over which the second fails
    assert f"{ns}__green.lines stays" in (failed.value.detail or "")
    assert {i.name for i in hr.green_status(deployment="green")} == {f"{ns}.{n}" for n in ("lines", "first", "second")}
    hr.cancel_green(deployment="green")
    assert names(hr, ns) == {".lines", ".first", ".second"}
    assert hr.green_status() == ()
    hr.sql(f"DELETE FROM {ns}.orders WHERE amount = 0")
    hr.refresh()
    assert all_ok(hr, ns)
