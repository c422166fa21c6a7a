"""Landings of many rows: written to the change log as they are computed, and thinned snapshots of mirrors."""

from __future__ import annotations

import datetime as dt

import psycopg
import pytest
from kit.logical import LogicalServer
from kit.long_tests import LONG

from headrace.api.facade import Headrace
from headrace.errors import UserError
from headrace.lake.snapshot_retention import Density
from headrace.results.source_results import LandingResult

ROWS = 1_200
WAYS = (("wal", "DEFAULT"), ("trigger", "DEFAULT"), ("wal", "FULL")) if LONG else (("wal", "DEFAULT"),)


@pytest.mark.parametrize(("way", "identity"), WAYS)
def test_many_rows_are_landed_as_few_are(
    hr: Headrace, ns: str, server: LogicalServer, way: str, identity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.sources.postgres.spool.landed_table.FEW", 0)
    for module in ("lake.apply_change", "landing.mirrors"):
        monkeypatch.setattr(f"headrace.{module}.SMALL_STATE_CELLS", 0)
    source, url = f"{ns}_shop", server.fresh()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE TABLE docs (id int PRIMARY KEY, n int, price numeric(12,2), rate float8, body text)")
        db.execute(f"ALTER TABLE docs ALTER body SET STORAGE EXTERNAL; ALTER TABLE docs REPLICA IDENTITY {identity}")
        db.execute("CREATE TABLE bag (x int, y text); ALTER TABLE bag REPLICA IDENTITY FULL")
        rows = "g, g % 7, g * 1.5, CASE WHEN g % 3 > 0 THEN g / 7.0 END, repeat('b', g % 2 * 3000)"
        db.execute(f"INSERT INTO docs SELECT {rows} FROM generate_series(1, {ROWS}) g")
        db.execute(f"INSERT INTO bag SELECT g % 5, 'y' FROM generate_series(1, {ROWS}) g")
        hr.sources.create(source, url, ["docs", "bag"], capture=way)
        hr.create_stream_table(f"{ns}.sums", f"SELECT n, count(*) AS k, sum(price) AS p FROM {source}.docs GROUP BY n")

        def same() -> None:
            for table in ("docs", "bag"):
                expected = sorted(db.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
                found = [tuple(r) for r in hr.sql(f"SELECT * FROM lake.{source}.{table}").collect()]
                assert sorted(found, key=repr) == expected
            hr.refresh(f"{ns}.sums")

        [result] = _landed(hr, db, source, f"UPDATE docs SET n = n + 1 WHERE id <= {ROWS * 3 // 4}")
        assert (result.inserted, result.deleted) == (900, 900)
        same()
        assert not any(r.mirrors for r in _landed(hr, db, source, "UPDATE docs SET n = n, body = body"))
        assert not any(r.mirrors for r in _landed(hr, db, source, "UPDATE bag SET y = 'z'; UPDATE bag SET y = 'y'"))
        [result] = _landed(hr, db, source, "UPDATE docs SET rate = NULL")
        assert (result.inserted, result.deleted) == (800, 800)
        same()
        both = "BEGIN; DELETE FROM docs WHERE id % 2 = 0; UPDATE docs SET id = id + 5000 WHERE id % 5 = 0; "
        both += f"INSERT INTO docs SELECT {rows} FROM generate_series(2, 20, 2) g; "
        _landed(hr, db, source, f"{both} DELETE FROM bag WHERE x = 1; UPDATE bag SET x = 1 WHERE x = 2; COMMIT")
        same()
        _landed(hr, db, source, "TRUNCATE docs; INSERT INTO docs SELECT g FROM generate_series(1, 700) g")
        same()
        assert hr.verify(f"{ns}.sums").ok
    hr.drop_stream_table(f"{ns}.sums")
    hr.sources.drop(source)


def _landed(hr: Headrace, db: psycopg.Connection, source: str, statement: str) -> tuple[LandingResult, ...]:
    db.execute(statement)
    return hr.sources.land(source)


@pytest.mark.long
def test_snapshots_of_a_mirror_that_is_written_all_the_time_stay_few(
    hr: Headrace, ns: str, server: LogicalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    density = Density(few=6, whole=dt.timedelta(0), minutes=dt.timedelta(0))
    monkeypatch.setattr("headrace.lake.snapshot_retention.EVERY", 4)
    monkeypatch.setattr("headrace.landing.mirror_thinning.DENSITY", density)
    monkeypatch.setattr(
        "headrace.lake.snapshot_retention._turn", lambda *_: 0
    )  # no hour ends meanwhile: what ends one stays
    monkeypatch.setattr("headrace.lake.apply_change.SMALL_STATE_CELLS", 0)
    source, url = f"{ns}_shop", server.fresh()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE TABLE visits (id int PRIMARY KEY, n int)")
        db.execute("INSERT INTO visits SELECT g, 0 FROM generate_series(1, 30) g")
        hr.sources.create(source, url, ["visits"])
        query = f"SELECT n, count(*) AS k FROM {source}.visits GROUP BY n"
        for name in ("fast", "slow"):
            hr.create_stream_table(f"{ns}.{name}", query, refresh_mode="DIFFERENTIAL")
        with hr._catalog.reading() as reader:
            [mirror] = reader.source(source).mirrors
        counts: list[tuple[int, ...]] = []
        for turn in range(12):
            db.execute("UPDATE visits SET n = n + 1 WHERE id %% 12 = %s", (turn,))
            hr.refresh(f"{ns}.fast")
            counts.append(tuple(_snapshots(hr, str(t)) for t in mirror.stored))
        assert max(max(c) for c in counts) <= 14
        assert hr.refresh(f"{ns}.slow").mode.value == "DIFFERENTIAL"  # where it stood had to stay
        assert all(v.ok for v in hr.verify([f"{ns}.fast", f"{ns}.slow"]))
        expected = sorted(db.execute("SELECT * FROM visits").fetchall())
        assert sorted(tuple(r) for r in hr.sql(f"SELECT * FROM lake.{source}.visits").collect()) == expected
        with pytest.raises(UserError, match="HISTORY_EXPIRED"):
            hr.at(_publications(hr)[6]).table(f"{source}.visits").collect()
        hr.maintain([f"{ns}.fast", f"{ns}.slow", f"{source}.visits"], older_than=dt.timedelta(0))
        assert all(v.ok for v in hr.verify([f"{ns}.fast", f"{ns}.slow"]))
    for name in ("fast", "slow"):
        hr.drop_stream_table(f"{ns}.{name}")
    hr.sources.drop(source)


def _snapshots(hr: Headrace, table: str) -> int:
    return int(hr.spark.sql(f"SELECT count(*) FROM lake.{table}.snapshots").collect()[0][0])


def _publications(hr: Headrace) -> list[int]:
    with hr._catalog.reading() as reader:
        return [p.id for p in reader.publications(12)]
