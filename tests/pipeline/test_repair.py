"""Repairs and their readers with Spark; what needs none is in tests/fast/api/test_repair.py."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from urllib.parse import urlparse

import pytest

from headrace.api.facade import Headrace
from headrace.catalog.records import folder_of
from headrace.errors import EnvironmentFault, UserError
from headrace.reasons import FullReason
from headrace.results.refresh_results import Mode, Status


@pytest.fixture
def chain(hr: Headrace, ns: str) -> tuple[str, str]:
    """A stream table with companion, change log and a reader."""
    hr.sql(f"CREATE TABLE {ns}.t USING iceberg AS SELECT * FROM VALUES (1, 1), (2, 2), (3, 3) AS t(k, v)")
    read, reader = f"{ns}.a", f"{ns}.b"
    hr.create_stream_table(read, f"SELECT k, sum(v) AS v, count(*) AS n FROM {ns}.t GROUP BY k")
    hr.create_stream_table(reader, f"SELECT count(*) AS n, sum(v) AS s FROM {read}", refresh_mode="DIFFERENTIAL")
    return read, reader


def test_a_damaged_table_comes_back_and_its_readers_stay_right(hr: Headrace, ns: str, chain: tuple[str, str]) -> None:
    read, reader = chain
    with pytest.raises(UserError) as refused:
        hr.sql(f"USE lake.{ns}; DROP TABLE a")
    assert refused.value.code == "MANAGED_TABLE"
    stored = hr._catalog.stream_table(hr._name(read))
    assert stored.companion is not None
    assert stored.log is not None

    # restored: the readers go on with the change alone
    hr.spark.sql(f"DELETE FROM lake.{read} WHERE k = 1")
    hr.spark.sql(f"DROP TABLE {stored.log.sql}")
    hr.spark.sql(f"DROP TABLE {stored.companion.sql}")
    assert hr.status([read])[0].status is Status.DAMAGED
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (4, 4)")
    with pytest.raises(EnvironmentFault):
        hr.refresh()
    assert hr.repair(read).action == "restored"
    first, second = hr.refresh()
    assert (first.mode, second.mode) == (Mode.DIFFERENTIAL, Mode.DIFFERENTIAL)
    assert all(result.ok for result in hr.verify([read, reader]))

    # FULL restores by itself: the readers get the difference to what they know
    hr.spark.sql(f"DELETE FROM lake.{read} WHERE k = 2")
    assert hr.refresh(read, full=True).rows_inserted == 0
    assert hr.refresh(reader).mode in (Mode.DIFFERENTIAL, Mode.NO_CHANGE)
    assert hr.verify(read).ok

    # gone with its files: made anew, and the reader is recomputed once
    hr.spark.sql(f"DROP TABLE lake.{read} PURGE")
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (5, 5)")
    done = hr.sql(f"REPAIR STREAM TABLE {read}")[0]
    assert done.action == "made anew"
    result = hr.refresh(reader)
    assert (result.mode, result.reason) == (Mode.FULL, FullReason.SOURCE_RECREATED)
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (6, 6)")
    assert [r.mode for r in hr.refresh()] == [Mode.DIFFERENTIAL, Mode.DIFFERENTIAL]

    # a log whose file is gone: the same
    log = hr._catalog.stream_table(hr._name(read)).log
    assert log is not None
    published = hr._catalog.pointers()[log].metadata_location
    hr.spark.sql(f"DROP TABLE {log.sql}")
    Path(urlparse(published).path).unlink()
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (7, 7)")
    assert hr.repair()[0].action == "made anew"
    hr.refresh()
    assert all(result.ok for result in hr.verify([read, reader]))


@pytest.mark.parametrize("left", [None, b"", b'{"cut'], ids=["gone", "emptied", "cut"])
def test_a_table_whose_metadata_is_lost_is_made_anew(
    hr: Headrace, ns: str, chain: tuple[str, str], left: bytes | None
) -> None:
    read, reader = chain
    stored = hr._catalog.stream_table(hr._name(read))
    for table in stored.stored if left is None else (stored.name,):
        file = Path(urlparse(hr._catalog.pointers()[table].metadata_location).path)
        file.unlink() if left is None else file.write_bytes(left)
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (4, 4)")
    folder = folder_of(hr._catalog.pointers()[stored.name].metadata_location)
    if left is None:
        (done,) = [each for each in hr.repair() if each.name.endswith(read)]
    else:
        done = hr.repair(read)
    assert done.action == "made anew"
    assert hr.refresh(reader).reason == FullReason.SOURCE_RECREATED
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (5, 5)")
    assert [r.mode for r in hr.refresh()] == [Mode.DIFFERENTIAL, Mode.DIFFERENTIAL]
    assert all(result.ok for result in hr.verify([read, reader]))
    assert hr.repair(read).action == "intact"
    old = [each for each in hr.maintain(older_than=dt.timedelta(0)) if folder in each.detail]
    assert [each.action for each in old] == ["remove_dropped"]
    assert not Path(urlparse(folder).path).exists()
