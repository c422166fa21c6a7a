"""Writers of a sink killed at every stage, and servers that end their connection there: nothing twice, nothing lost."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest
from catalog_kit.forking import forking, preload
from kit.logical import LogicalServer, logical_server
from kit.sink_killed import VERSIONS, stream, tell_stages
from kit.sink_rows import new_sink

preload(tell_stages.__module__)


@pytest.fixture(scope="module")
def server() -> Iterator[LogicalServer]:
    with logical_server() as started:
        yield started


def _write(url: str, sink: str, key: str, stage: int, how: str) -> int | None:
    """Deliver in a process of its own; how many stages there were, or None where it was killed."""
    ours, theirs = forking().Pipe(duplex=False)
    with ours:
        child = forking().Process(target=tell_stages, args=(theirs, url, sink, key, stage, how))
        child.start()
        theirs.close()
        child.join()
        stages = int(ours.recv()) if child.exitcode == 0 else None
    assert child.exitcode in (0, -signal.SIGKILL), "what went wrong was printed"
    return stages


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
    stages = _write(server.fresh(), new_sink(), key, -1, how)
    assert stages is not None
    assert stages >= 4 * VERSIONS
    url, sink = server.fresh(), new_sink()
    before = -1
    for stage in range(0, stages, 4):
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("DROP TABLE IF EXISTS out; DROP SCHEMA IF EXISTS headrace CASCADE")
        ended = _write(url, sink, key, stage, how)
        assert (ended is None) == (how == "kill")
        with psycopg.connect(url, autocommit=True) as db:
            position = _position(db)
            if position is not None:
                found = Counter(db.execute("SELECT id, v FROM out").fetchall())
                assert found == expected.rows_at(position), f"half of a version is there after stage {stage}"
                before = max(before, position)
            assert _write(url, sink, key, -1, how) is not None
            assert Counter(db.execute("SELECT id, v FROM out").fetchall()) == expected.rows_at(VERSIONS - 1)
            assert _position(db) == VERSIONS - 1
    assert before >= VERSIONS - 2, "no version but the first was ever cut off"


def _position(db: psycopg.Connection) -> int | None:
    if db.execute("SELECT to_regclass('headrace.sink_position')").fetchone() == (None,):
        return None
    row = db.execute("SELECT version FROM headrace.sink_position").fetchone()
    return None if row is None else int(row[0])
