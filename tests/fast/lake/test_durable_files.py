"""Files that a table gains are found, and flushed with the folders that they are entered in."""

from __future__ import annotations

import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from catalog_kit.samples import ORDERS
from pyiceberg.catalog.memory import InMemoryCatalog

from headrace.errors import EnvironmentFault
from headrace.lake.files import durable_files
from headrace.lake.metadata import read_metadata
from headrace.landing.durable_tables import make_durable
from headrace.sources.lakehouse.written_files import files_written

ROWS = pa.table({"a": [1, 2], "g": ["x", "y"]})


def test_files_that_a_snapshot_brings_are_found(tmp_path: Path) -> None:
    catalog = InMemoryCatalog("c", warehouse=str(tmp_path))
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", ROWS.schema)
    found: set[str] = set()
    before = None
    for _ in range(3):
        table.append(ROWS)
        after = read_metadata(table.metadata_location)
        gained = set(files_written(before, after))
        assert len(gained) == 4, "metadata, a list, a manifest and data"
        assert not gained & found
        found |= gained
        before = after
    assert set(files_written(None, after)) > {after.metadata_location, *files_written(before, after)}
    catalog.close()


def test_nothing_is_read_of_tables_in_a_store(tmp_path: Path) -> None:
    catalog = InMemoryCatalog("c", warehouse=str(tmp_path))
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", ROWS.schema)
    table.append(ROWS)
    here = read_metadata(table.metadata_location)
    catalog.close()
    make_durable({}, [(ORDERS, here)])
    shutil.rmtree(tmp_path / "n")
    make_durable({}, [(ORDERS, replace(here, location="s3://bucket/t"))])
    with pytest.raises(EnvironmentFault, match="FILES_NOT_FLUSHED") as raised:
        make_durable({}, [(ORDERS, here)])
    assert str(tmp_path) in (raised.value.detail or "")


def test_folders_may_be_new_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda at: (fsync(at), flushed.append(os.readlink(f"/proc/self/fd/{at}"))))
    file = tmp_path / "n" / "t" / "data" / "g=x" / "1.parquet"
    file.parent.mkdir(parents=True)
    file.write_text("…")
    durable_files.flush({f"file:{tmp_path}/n/t": [f"file://{file}"], "s3://b/t": ["s3://b/t/1.parquet"]})
    assert flushed[0] == str(file)
    assert set(flushed) == {str(file), *(str(tmp_path / each) for each in ("n", "n/t", "n/t/data", "n/t/data/g=x"))}
    with pytest.raises(FileNotFoundError):
        durable_files.flush({str(tmp_path): [str(tmp_path / "gone")]})
    durable_files.flush({})


def test_a_file_system_that_flushes_no_folders_is_fine_and_a_failing_disk_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = errno.EINVAL
    fsync = os.fsync

    def flush(at: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{at}"):
            raise OSError(fails, os.strerror(fails))
        fsync(at)

    monkeypatch.setattr(os, "fsync", flush)
    (tmp_path / "1.parquet").write_text("…")
    written = {str(tmp_path): [str(tmp_path / "1.parquet")]}
    durable_files.flush(written)
    fails = errno.EIO
    with pytest.raises(OSError, match="Input/output"):
        durable_files.flush(written)
