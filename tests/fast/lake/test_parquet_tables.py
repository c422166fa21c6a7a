"""Parquet files become a table that Iceberg reads, with what they have."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.table import StaticTable

from headrace.lake.files.parquet_tables import over_files

BATCH = pa.table(
    {
        "text": ["a", None],
        "texts": pa.array([["x", None], None], pa.list_(pa.string())),
        "live": [True, None],
        "weight": pa.array([1, -2], pa.int64()),
        "unsent": pa.array([[0, 3], None], pa.list_(pa.int32())),
    }
)


def test_all_files_of_a_folder_are_its_rows_and_stay_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "12-1"
    folder.mkdir()
    for number in range(3):
        pq.write_table(BATCH, folder / f"{number}.parquet", write_statistics=False)
    (folder / "0.json").write_text("{}")
    before = {file: file.read_bytes() for file in folder.iterdir()}
    for _ in range(2):  # a landing that is begun again
        table = StaticTable.from_metadata(over_files(str(folder)))
        assert table.scan().to_arrow().to_pylist() == 3 * BATCH.to_pylist()
    assert {file: file.read_bytes() for file in folder.iterdir() if file.is_file()} == before
