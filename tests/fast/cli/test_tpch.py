"""The demonstration's data and SQL, as far as it needs no Spark."""

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from fast.cli.samples import refreshed
from fast.cli.test_render import drawn

from headrace.cli.render import demo as render
from headrace.demo import tpch
from headrace.demo.against_spark import Compared, Round, Total, plain_name, plain_query, totals
from headrace.demo.killed import Killed
from headrace.demo.run import MARK, prepare_folder
from headrace.demo.views import PART_SALES, PRICING_SUMMARY, VIEWS
from headrace.errors import UserError
from headrace.results.refresh_results import VerifyResult


def test_the_generator_writes_every_table(tmp_path: Path) -> None:
    tpch.generate(tmp_path, 0.001)
    rows = {table: pq.read_metadata(tmp_path / f"{table}.parquet").num_rows for table in tpch.TABLES}
    assert (rows["customer"], rows["orders"]) == (150, 1500)
    assert rows["lineitem"] == 6005


def test_orders_and_line_items_are_merge_on_read_the_others_copy_on_write(tmp_path: Path) -> None:
    statements = [text for text in tpch.load_statements(tmp_path) if text.startswith("CREATE TABLE")]
    modes = {re.search(r"tpch\.(\w+)", text)[1]: "merge-on-read" in text for text in statements}  # type: ignore[index]
    assert {table for table, merged in modes.items() if merged} == {"orders", "lineitem"}
    assert set(modes) == set(tpch.TABLES)


def test_generated_files_become_the_tables_own(tmp_path: Path) -> None:
    tpch.generate(tmp_path, 0.001, ("orders",), parts=2)
    assert sorted(file.name for file in (tmp_path / "orders").iterdir()) == ["orders.1.parquet", "orders.2.parquet"]
    assert [text.split()[0] for text in tpch.adopt_statements(tmp_path, tables=("orders",))] == [
        *("CREATE", "CREATE", "CREATE", "CALL", "DROP")
    ]
    (created,) = [text for text in tpch.adopt_statements(tmp_path, tables=("orders",)) if "CREATE TABLE" in text]
    assert created.endswith("WHERE false")


def test_rounds_touch_different_keys() -> None:
    conditions = [
        re.search(r"BETWEEN .*", change.sql)[0]  # type: ignore[index]
        for number in range(5)
        for change in tpch.changes(number, 1.0)
        if "orders" in change.what or "prices" in change.what
    ]
    assert len(conditions) == len(set(conditions)) == 15
    shifts = {re.search(r"o_orderkey \+ (\d+)", tpch.rf1(n)[0].sql)[1] for n in range(1, 6)}  # type: ignore[index]
    assert len(shifts) == 5


def test_the_share_decides_the_number_of_buckets() -> None:
    assert ", 100) =" in tpch.rf2(1, share=0.01)[0].sql
    assert ", 1000) =" in tpch.rf2(1)[0].sql
    assert ", 10000) =" in tpch.price_changes(1, 0.0001).sql


def test_plain_spark_writes_the_same_queries_over_its_own_tables() -> None:
    assert len({view.name for view in VIEWS}) == len(VIEWS)
    assert re.findall(r"(?:FROM|JOIN) (\S+)", plain_query(PART_SALES)) == ["lake.tpch.lineitem", "lake.tpch.part"]
    assert plain_name(PART_SALES) == "lake.plain.part_sales"


def test_only_a_former_demo_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    settings = prepare_folder(folder)
    (settings.root / "old").touch()
    prepare_folder(folder)
    assert not (folder / "old").exists()
    (folder / MARK).unlink()
    with pytest.raises(UserError, match="FOLDER_NOT_EMPTY"):
        prepare_folder(folder)
    assert (folder / "headrace.toml").exists()


def test_a_round_and_the_totals_fit_the_terminal() -> None:
    first = Round(1, tpch.changes(1, 1.0), 2.5, tuple(Compared(refreshed(view.name), 5.0) for view in VIEWS))
    text = drawn(render.round_of(first))
    assert "tpch.part_sales" in text
    assert "5.00 s" in text
    assert "overwrites them in 20.00 s" in text
    found = totals([first, first])
    assert [total.plain_seconds for total in found] == [10.0] * len(VIEWS)
    assert found[0].ratio == pytest.approx(10.0 / found[0].refresh_seconds)
    closing = drawn(render.totals([first, first], found, [VerifyResult("a", True, 1, 0, 0, 0, 0.1)], 200.0))
    assert "1 of 1 stream tables equal their queries." in closing
    assert "40.00 s of overwriting became 5.00 s of refreshing: 8.0 ×" in closing
    assert "3 min 20 s" in closing
    assert drawn(render.go_on(Path("demo-project"), "headrace")).count("headrace") == 3
    assert first.as_dict()["tables"][0]["insert_overwrite_seconds"] == 5.0


def test_bars_are_as_long_as_the_times() -> None:
    lines = drawn(render.bars([Total(PART_SALES, 2.0, 16.0), Total(PRICING_SUMMARY, 4.0, 8.0)])).splitlines()[2:]
    assert [line.count("█") for line in lines] == [32, 4, 16, 8]
    assert lines[1].endswith("16.00 s became 2.00 s")
    assert max(map(len, lines)) <= 80


def test_what_was_killed_is_told_with_what_readers_see() -> None:
    dead = Killed(42, "tpch.part_sales", "log staging.x")
    assert "readers see 7 rows, as before" in drawn(render.killed(dead, 7, 7))
    assert "not 8 as before" in drawn(render.killed(dead, 7, 8))
