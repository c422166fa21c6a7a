"""A semi-join with changes that several stream tables read is computed once, for all that have yet to read it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from kit.semijoins import small_sources_too

from headrace.api.facade import Headrace
from headrace.physical import key_ranges
from headrace.physical.key_ranges import KeyRanges
from headrace.refresh import step_execution
from headrace.results.refresh_results import Mode, RefreshResult

QUERIES = {
    "prices": "SELECT o.customer, l.price FROM {0}.orders o JOIN {0}.lines l ON l.order_id = o.id WHERE o.customer > 2",
    "parts": "SELECT l.part, count(*) AS n FROM {0}.orders o JOIN {0}.lines l ON l.order_id = o.id GROUP BY l.part",
    "late": "SELECT o.id FROM {0}.orders o WHERE EXISTS "
    "(SELECT 1 FROM {0}.lines l WHERE l.order_id = o.id AND l.price > 90)",
}


def kept(hr: Headrace) -> frozenset[str]:
    """Temporary views in which something is kept, for whichever test."""
    return hr._engine().refresher.changes.views


@pytest.fixture
def names(hr: Headrace, ns: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    small_sources_too(monkeypatch)  # or it would take hundreds of thousands
    orders = "CAST(id AS INT) AS id, CAST(id % 7 AS INT) AS customer FROM range(1000)"
    lines = "CAST(id % 1000 AS INT) AS order_id, CAST(id % 11 AS INT) AS part, CAST(id % 97 AS DECIMAL(9,2)) AS price"
    hr.sql(f"CREATE TABLE lake.{ns}.orders USING iceberg AS SELECT {orders}")
    hr.sql(f"CREATE TABLE lake.{ns}.lines USING iceberg AS SELECT {lines} FROM range(4000)")
    for name, query in QUERIES.items():
        hr.create_stream_table(f"{ns}.{name}", query.format(ns), refresh_mode="DIFFERENTIAL")
    return [f"{ns}.{name}" for name in QUERIES]


def change(hr: Headrace, ns: str, turn: int) -> None:
    hr.sql(f"DELETE FROM lake.{ns}.orders WHERE id % 250 = {turn}")
    hr.sql(f"UPDATE lake.{ns}.lines SET price = price + 10 WHERE order_id % 200 = {turn}")
    hr.sql(f"INSERT INTO lake.{ns}.lines SELECT id, 1, 95 FROM range({turn}, {turn + 3})")
    hr.sql(f"INSERT INTO lake.{ns}.orders VALUES ({1000 + turn}, 5), ({turn + 60}, 4)")


def shared(results: Sequence[RefreshResult]) -> list[int]:
    """How many stages of each refresh read a shared semi-join."""
    assert all(result.mode is Mode.DIFFERENTIAL for result in results)
    return [sum(title.startswith("collect ") for title in result.stages) for result in results]


def test_who_shares_it_and_who_reads_for_itself(
    hr: Headrace, ns: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    it_is_shared_when_several_were_seen_to_need_it(hr, ns, names)
    only_what_lies_within_the_ranges_of_the_keys_is_read(hr, ns, names, monkeypatch)
    one_that_trails_reads_for_itself(hr, ns, names)
    what_was_needed_may_be_gone(hr, ns, names)
    one_that_is_alone_shares_nothing(hr, ns, names)


def it_is_shared_when_several_were_seen_to_need_it(hr: Headrace, ns: str, names: list[str]) -> None:
    before = kept(hr)
    change(hr, ns, 1)
    assert shared([hr.refresh(name) for name in names])[0] == 0, "nobody knows yet what the others need"
    change(hr, ns, 2)
    assert all(shared([hr.refresh(name) for name in names]))
    assert kept(hr) == before, "the last to read it lets it go"


def only_what_lies_within_the_ranges_of_the_keys_is_read(
    hr: Headrace, ns: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def ranges_of(column: str, found: Sequence[object]) -> KeyRanges:
        ranges = key_ranges.ranges_of(column, found)
        asked.append(ranges.condition)
        return ranges

    monkeypatch.setattr(step_execution, "ranges_of", ranges_of)
    hr.sql(f"UPDATE lake.{ns}.lines SET price = price + 1 WHERE order_id IN (20, 21, 901)")
    hr.sql(f"INSERT INTO lake.{ns}.orders VALUES (22, 6)")
    assert all(shared(hr.refresh(names)))
    assert "`order_id` BETWEEN 20L AND 22L OR `order_id` = 901L" in asked


def one_that_trails_reads_for_itself(hr: Headrace, ns: str, names: list[str]) -> None:
    change(hr, ns, 3)
    hr.refresh(names[0])
    change(hr, ns, 4)
    assert all(shared([hr.refresh(name) for name in names[1:]]))
    assert hr.refresh(names[0]).mode is Mode.DIFFERENTIAL
    assert all(v.ok for v in hr.verify(names))


def what_was_needed_may_be_gone(hr: Headrace, ns: str, names: list[str]) -> None:
    hr.drop_stream_table(names[1])
    hr.sql(f"ALTER TABLE lake.{ns}.lines DROP COLUMN part")
    hr.sql(f"DELETE FROM lake.{ns}.orders WHERE id < 9")
    hr.sql(f"UPDATE lake.{ns}.lines SET price = 99 WHERE order_id % 150 = 3")
    rest = [names[0], names[2]]
    assert all(shared([hr.refresh(name) for name in rest]))
    assert hr.verify(names[2]).ok  # the other one goes on, and is compared at its end


def one_that_is_alone_shares_nothing(hr: Headrace, ns: str, names: list[str]) -> None:
    hr.drop_stream_table(names[2])
    hr.sql(f"DELETE FROM lake.{ns}.orders WHERE id % 250 = 5")
    hr.sql(f"UPDATE lake.{ns}.lines SET price = price + 10 WHERE order_id % 200 = 5")
    assert shared([hr.refresh(names[0])]) == [0]
    assert hr.verify(names[0]).ok


@pytest.mark.long
def test_what_comes_and_goes_with_its_parts_needs_nothing_else(
    hr: Headrace, ns: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keys tell that all line items of changed orders are among those that changed."""
    ran: list[str] = []
    least = step_execution.StepExecution._least

    def recorded(*given: Any) -> str:
        ran.append(least(*given))
        return ran[-1]

    monkeypatch.setattr(step_execution.StepExecution, "_least", recorded)
    for turn in (1, 2):
        ran.clear()
        first = 2000 + 10 * turn
        hr.sql(f"INSERT INTO lake.{ns}.orders SELECT id, NULL FROM range({first}, {first + 4})")
        hr.sql(f"INSERT INTO lake.{ns}.lines SELECT {first} + id % 4, id, id * 20 FROM range(9)")
        for table, key in (("orders", "id"), ("lines", "order_id")):
            hr.sql(f"DELETE FROM lake.{ns}.{table} WHERE {key} % 100 = {turn}")
        assert all(shared(hr.refresh(names))) == (turn > 1)
    assert ran
    assert not any("VERSION AS OF" in sql for sql in ran), "neither orders nor lines were read again"
    hr.sql(f"UPDATE lake.{ns}.orders SET customer = customer + 1 WHERE id % 50 = 7")
    hr.sql(f"INSERT INTO lake.{ns}.lines VALUES (7, 5, 99)")
    ran.clear()
    hr.refresh(names)
    assert any("VERSION AS OF" in sql for sql in ran), "their lines are there and did not change"
    assert all(v.ok for v in hr.verify(names))


def test_rows_that_nothing_asks_for_are_not_read(hr: Headrace, ns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within ranges of no keys: the step that has none is left out as it stands."""
    small_sources_too(monkeypatch)
    for table, query in {
        "parts": "CAST(id AS INT) AS id, if(id % 9 = 0, 'oak', 'elm') AS name FROM range(90)",
        "places": "CAST(id AS INT) AS id, concat('place ', id) AS name FROM range(7)",
        "stock": "CAST(id % 90 AS INT) AS part, CAST(id % 7 AS INT) AS place, CAST(id % 5 AS INT) AS n FROM range(600)",
        "sold": "CAST(id % 90 AS INT) AS part, CAST(id % 7 AS INT) AS place, CAST(id % 3 AS INT) AS n FROM range(6000)",
    }.items():
        hr.sql(f"CREATE TABLE lake.{ns}.{table} USING iceberg AS SELECT {query}")
    query = (
        f"SELECT name FROM {ns}.places WHERE id IN (SELECT place FROM {ns}.stock s "
        f"WHERE part IN (SELECT id FROM {ns}.parts WHERE name LIKE 'oak%') "
        f"AND n > (SELECT 0.5 * sum(n) FROM {ns}.sold l WHERE l.part = s.part AND l.place = s.place))"
    )
    name = f"{ns}.suppliers"
    hr.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
    for part in (1, 9):  # of elm, of oak
        hr.sql(f"DELETE FROM lake.{ns}.sold WHERE part = {part} AND place < 4")
        hr.sql(f"INSERT INTO lake.{ns}.sold VALUES ({part}, 3, 1)")
        assert hr.refresh(name).mode is Mode.DIFFERENTIAL
    assert hr.verify(name).ok


@pytest.mark.long
def test_several_may_read_it_at_once(hr: Headrace, ns: str, names: list[str]) -> None:
    before = kept(hr)
    for turn in (1, 2):
        change(hr, ns, turn)
        with ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(hr.refresh, names))
    assert all(v.ok for v in hr.verify(names))
    assert kept(hr) == before


def test_a_column_that_cannot_be_compared_stays_with_its_reader(
    hr: Headrace, ns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_sources_too(monkeypatch)
    hr.sql(f"CREATE TABLE lake.{ns}.orders (id INT, customer INT) USING iceberg")
    hr.sql(f"CREATE TABLE lake.{ns}.lines (order_id INT, price INT, tags VARIANT) USING iceberg")
    hr.sql(f"INSERT INTO lake.{ns}.orders SELECT id, 1 FROM range(100)")
    hr.sql(f"INSERT INTO lake.{ns}.lines SELECT id, id, parse_json('{{\"x\": 1}}') FROM range(100)")
    joined = f"FROM {ns}.orders o JOIN {ns}.lines l ON l.order_id = o.id"
    tags, prices = f"{ns}.tags", f"{ns}.prices"
    for name, listed in ((tags, "o.id, variant_get(l.tags, '$.x', 'int') AS x"), (prices, "o.id, l.price")):
        hr.create_stream_table(name, f"SELECT {listed} {joined}", refresh_mode="DIFFERENTIAL")
    hr.sql(f"INSERT INTO lake.{ns}.orders VALUES (5, 9)")
    hr.refresh([tags, prices])  # lines did not change, and nothing of them had to be compared
    hr.sql(f"INSERT INTO lake.{ns}.orders VALUES (6, 9)")
    hr.sql(f"INSERT INTO lake.{ns}.lines VALUES (7, 9, parse_json('{{\"x\": 2}}'))")
    assert hr.refresh(prices).mode is Mode.DIFFERENTIAL
    assert hr.refresh(tags).mode is Mode.DIFFERENTIAL
    assert all(v.ok for v in hr.verify([tags, prices]))
