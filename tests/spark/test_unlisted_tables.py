"""Files of Parquet are read as a table of Iceberg's that no catalog lists."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.errors import EnvironmentFault, HeadraceError
from headrace.lake.files.parquet_tables import over_files
from headrace.semantics import Semantics
from headrace.spark.runner import SparkRunner


def test_they_are_there_while_they_are_read_and_for_several_at_once(runner: SparkRunner, tmp_path: Path) -> None:
    others = runner.under(Semantics("Asia/Tokyo", True, False))  # of a session that has not read any yet

    def read(number: int) -> int:
        folder, name = tmp_path / str(number), f"`{tmp_path}/{number}`"
        folder.mkdir()
        columns = {"c0": ["a", None], "c1": [["x", None], None], "live": [True, None], "w": [number, -2]}
        for part in range(number):
            pq.write_table(pa.table(columns), folder / f"{part}.parquet", compression="lz4", write_statistics=False)
        with others.unlisted(name, over_files(str(folder)), {}):
            counted = others.run(f"SELECT count(*), count(c0), count(c1), count(live), sum(w) FROM {name}")
            assert [tuple(row) for row in counted] == [(2 * number, number, number, number, number * (number - 2))]
            ((found,),) = others.run(f"SELECT c1 FROM {name} WHERE c0 = 'a' LIMIT 1")
            assert found == ["x", None]
        with pytest.raises(HeadraceError, match="TABLE_NOT_FOUND"):
            others.run(f"SELECT * FROM {name}")
        return number

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(read, (1, 2, 3))) == [1, 2, 3]
    assert not others.run("SHOW TABLES IN headrace_unlisted.files")


def test_a_file_that_is_not_there_is_named(runner: SparkRunner, tmp_path: Path) -> None:
    with (
        pytest.raises(EnvironmentFault, match="FILE_MISSING"),
        runner.unlisted("gone", f"{tmp_path}/v1.metadata.json", {}),
    ):
        pass
