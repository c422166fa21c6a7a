"""Writers of a sink killed at every stage, and servers that end their connection there: nothing twice, nothing lost."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest
from kit.logical import LogicalServer, logical_server
from kit.sink_killed import VERSIONS, stream
from kit.sink_rows import new_sink
from kit.surviving_spark import with_kit


@pytest.fixture(scope="module")
def server() -> Iterator[LogicalServer]:
    with logical_server() as started:
        yield started


def _write(url: str, sink: str, key: str, stage: int, how: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kit.sink_killed", url, sink, key, str(stage), how]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=with_kit())


@pytest.mark.parametrize(
    ("how", "key"),
    [
        ("kill", "key"),
        pytest.param("kill", "bag", marks=pytest.mark.long),
        pytest.param("terminate", "key", marks=pytest.mark.long),
        ("terminate", "bag"),
    ],
)
def test_a_write_that_was_cut_off_is_made_once(server: LogicalServer, key: str, how: str) -> None:
    """Every fourth stage, so that each of them is met at some version."""
    expected = stream()
    whole = _write(server.fresh(), new_sink(), key, -1, how)
    assert whole.stdout.startswith("done"), whole.stderr
    stages = int(whole.stdout.split()[1])
    assert stages >= 4 * VERSIONS
    url, sink = server.fresh(), new_sink()
    before = -1
    for stage in range(0, stages, 4):
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("DROP TABLE IF EXISTS out; DROP SCHEMA IF EXISTS headrace CASCADE")
        ended = _write(url, sink, key, stage, how)
        assert (ended.returncode < 0) == (how == "kill"), ended.stderr
        with psycopg.connect(url, autocommit=True) as db:
            position = _position(db)
            if position is not None:
                found = Counter(db.execute("SELECT id, v FROM out").fetchall())
                assert found == expected.rows_at(position), f"half of a version is there after stage {stage}"
                before = max(before, position)
            again = _write(url, sink, key, -1, how)
            assert again.stdout.startswith("done"), again.stderr
            assert Counter(db.execute("SELECT id, v FROM out").fetchall()) == expected.rows_at(VERSIONS - 1)
            assert _position(db) == VERSIONS - 1
    assert before >= VERSIONS - 2, "no version but the first was ever cut off"


def _position(db: psycopg.Connection) -> int | None:
    if db.execute("SELECT to_regclass('headrace.sink_position')").fetchone() == (None,):
        return None
    row = db.execute("SELECT version FROM headrace.sink_position").fetchone()
    return None if row is None else int(row[0])
