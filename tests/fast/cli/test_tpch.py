"""The demonstration's data and SQL, as far as it needs no Spark."""

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from fast.cli.samples import refreshed
from fast.cli.test_render import drawn

from headrace.cli.render import demo as render
from headrace.demo import tpch
from headrace.demo.run import MARK, Compared, Round, prepare_folder
from headrace.demo.views import VIEWS
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


def test_rounds_touch_different_keys() -> None:
    conditions = [
        re.search(r"pmod\(.*", change.sql)[0]  # type: ignore[index]
        for number in range(1, 6)
        for change in tpch.changes(number)
        if "o_orderkey" in change.sql
    ]
    assert len(conditions) == len(set(conditions)) == 10
    shifts = {re.search(r"o_orderkey \+ (\d+)", tpch.rf1(n)[0].sql)[1] for n in range(1, 6)}  # type: ignore[index]
    assert len(shifts) == 5


def test_the_share_decides_the_number_of_buckets() -> None:
    assert ", 100) =" in tpch.rf2(1, share=0.01)[0].sql
    assert ", 1000) =" in tpch.rf2(1)[0].sql


def test_the_seven_views_are_of_the_wanted_kinds() -> None:
    assert len(VIEWS) == len({view.name for view in VIEWS}) == 7
    text = "\n".join(view.query for view in VIEWS)
    for part in ("WHERE", "JOIN", "GROUP BY", "min(", "max(", "SELECT DISTINCT", "UNION ALL", "FROM tpch.order_lines"):
        assert part in text


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


def test_a_round_and_the_totals_fit_the_terminal(tmp_path: Path) -> None:
    done = Round(1, tpch.changes(1), 2.5, tuple(Compared(refreshed(view.name), 1.25) for view in VIEWS))
    text = drawn(render.round_of(done))
    assert "tpch.segment_revenue" in text
    assert "1.25 s" in text
    totals = drawn(render.totals([done], [VerifyResult("a", True, 1, 0, 0, 0, 0.1)], 200.0))
    assert "1 of 1 stream tables equal their queries." in totals
    assert "3 min 20 s" in totals
    assert drawn(render.go_on(Path("demo-project"))).count("headrace") == 3
    assert done.as_dict()["tables"][0]["full_query_seconds"] == 1.25
