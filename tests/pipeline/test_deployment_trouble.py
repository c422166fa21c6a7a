"""Deployments in trouble: several at once at the same tables, a full disk, a member that refuses its own mode."""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from kit.random_deployments import left_behind, refusal
from kit.spark_jobs import process_of_spark

from headrace.api.facade import Headrace
from headrace.events import Event, StageStarted

PIPELINE = """
CREATE TABLE {ns}.orders USING iceberg
    AS SELECT * FROM VALUES (1L, 'EU', 10L), (2L, 'US', 20L), (3L, 'EU', 5L) AS t(id, region, amount);
CREATE STREAM TABLE {ns}.lines AS SELECT id, region, amount, 'old' AS made FROM {ns}.orders;
CREATE STREAM TABLE {ns}.totals AS SELECT made, region, sum(amount) AS total FROM {ns}.lines GROUP BY made, region;
CREATE STREAM TABLE {ns}.outside REFRESH MODE DIFFERENTIAL AS SELECT region, total FROM {ns}.totals
"""

PLAIN = {
    "done",
    "ALREADY_PROMOTED",
    "NOT_PROMOTED",
    "GREEN_BEHIND",
    "NO_COMMON_CUT",
    "LEASE_HELD",
    "DEPLOYMENT_CHANGED",
}
"""What may be answered while others are at the same tables."""


CATALOG_TROUBLE = {"DISK_FULL", "CATALOG_UNREACHABLE", "PUBLISH_OUTCOME_UNKNOWN"}
"""What a catalog that cannot be written is called: SQLite tells a limit on files from a disk that is full."""


@pytest.fixture
def deployed(hr: Headrace, ns: str) -> Iterator[Headrace]:
    """A pipeline with greens of two of its tables."""
    hr.sql(PIPELINE.format(ns=ns))
    hr.create_green(f"{ns}.lines", f"SELECT id, region, amount, 'new' AS made FROM {ns}.orders WHERE id > 1")
    hr.create_green(f"{ns}.totals")
    yield hr
    if hr.green_status():
        hr.cancel_green(deployment="green")


def at_once(*acts: Callable[[], object]) -> list[str]:
    """Begin several things at the same moment; return what became of each."""
    gate = threading.Barrier(len(acts), timeout=60)

    def run(act: Callable[[], object]) -> str:
        gate.wait()
        error = refusal(act)
        return "done" if error is None else error.code

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


def check(hr: Headrace, ns: str) -> str:
    """Everything equals its query, of one generation; return which."""
    (made,) = {r[0] for t in ("lines", "totals") for r in hr.spark.table(f"lake.{ns}.{t}").select("made").collect()}
    assert [v for v in hr.verify([t.name for t in hr.status() if t.name.startswith(ns)]) if not v.ok] == []
    assert hr._catalog.dirty_staging() == ()
    with hr._catalog.reading() as reader:
        assert left_behind(reader) == set()
        assert [x for x in reader.leases() if x.owner is not None] == []
    return str(made)


def test_several_at_once(deployed: Headrace, ns: str) -> None:
    hr = deployed
    promote, back = hr.promote_all_green, lambda: hr.rollback_green(deployment="green")
    answers = at_once(promote, promote)
    assert answers.count("done") == 1
    assert set(answers) <= {"done", "ALREADY_PROMOTED", "LEASE_HELD"}  # the last where one waits for a minute in vain
    assert {r[0] for r in hr.spark.table(f"lake.{ns}.totals").select("made").collect()} == {"new"}
    hr.sql(f"INSERT INTO {ns}.orders VALUES (4, 'AS', 7)")
    assert set(at_once(back, promote, hr.refresh)) <= PLAIN
    check(hr, ns)
    hr.refresh()
    hr.sql(f"DELETE FROM {ns}.orders WHERE id = 3")
    answers = at_once(lambda: hr.cancel_green(deployment="green"), promote, back, hr.refresh)
    assert set(answers) <= PLAIN | {"DEPLOYMENT_NOT_FOUND", "STREAM_TABLE_NOT_FOUND"}
    check(hr, ns)
    assert {e.mode.value for e in hr.history(f"{ns}.outside") if e.reason is None} <= {"DIFFERENTIAL"}


@contextmanager
def full_disk(room: int) -> Iterator[None]:
    """Let Spark write no file beyond a size: what it writes further ends as on a disk that is full."""
    pid, unlimited = process_of_spark(), (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, unlimited)


def test_a_full_disk(deployed: Headrace, ns: str) -> None:
    hr = deployed
    wide = f"SELECT id, region, amount, 'new' AS made, repeat(uuid_like, 1) AS noise FROM {ns}.big"
    hr.cancel_green(deployment="green")
    hr.sql(
        f"CREATE TABLE {ns}.big USING iceberg AS SELECT id, 'EU' AS region, id AS amount, "
        "sha2(CAST(id AS STRING), 512) AS uuid_like FROM range(4000)"
    )
    before = hr._catalog.stream_tables(), hr._catalog.greens()
    with full_disk(64 * 1024):
        error = refusal(lambda: hr.create_green(f"{ns}.lines", wide))
    assert error is not None
    assert error.code not in ("INTERNAL_ERROR", "UNEXPECTED"), error
    assert [t.name for t in hr._catalog.stream_tables()] == [t.name for t in before[0]]
    assert hr._catalog.greens() == before[1]
    hr.create_green(f"{ns}.lines", wide)
    with full_disk(64 * 1024):
        error = refusal(hr.promote_all_green)
    assert error is not None
    assert check(hr, ns) == "old"
    hr.promote_all_green()
    assert hr.spark.table(f"lake.{ns}.lines").count() == 4000


def test_a_full_disk_under_the_catalog_in_the_middle_of_a_promotion(deployed: Headrace, ns: str) -> None:
    """The catalog's own process can write nothing from the second table that is exchanged on."""
    hr, begun = deployed, set[str]()
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(event: Event) -> None:
        if isinstance(event, StageStarted):
            begun.add(event.table)
            if len(begun) == 2:
                resource.setrlimit(resource.RLIMIT_FSIZE, (1, unlimited[1]))

    before = hr._catalog.stream_tables(), hr._catalog.greens(), hr._catalog.newest_versions()
    unsubscribe = hr.events.subscribe(fill)
    try:
        error = refusal(hr.promote_all_green)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        unsubscribe()
    assert len(begun) >= 2
    assert error is not None
    assert error.code in CATALOG_TROUBLE, error
    assert (hr._catalog.stream_tables(), hr._catalog.greens(), hr._catalog.newest_versions()) == before
    assert {row[0] for row in hr.spark.table(f"lake.{ns}.totals").select("made").collect()} == {"old"}
    hr.promote_all_green()  # once leases are given back; it puts back what was written
    assert check(hr, ns) == "new"


@pytest.mark.long
def test_a_promotion_while_another_deployment_is_loaded(deployed: Headrace, ns: str) -> None:
    """Neither waits for the other one, and the one that is loaded reads what was public when it began."""
    hr, promoted = deployed, list[str]()

    def promote(event: Event) -> None:
        if isinstance(event, StageStarted) and event.table == f"{ns}__later.outside" and not promoted:
            promoted.append("begun")
            promoted.append(str(at_once(hr.promote_all_green)[0]))

    unsubscribe = hr.events.subscribe(promote)
    hr.create_green(f"{ns}.outside", f"SELECT region, total + 0 AS total FROM {ns}.totals", deployment="later")
    unsubscribe()
    assert promoted == ["begun", "done"]
    hr.refresh()
    hr.promote_all_green("later")
    assert check(hr, ns) == "new"
    hr.cancel_green(deployment="later")


def test_a_member_that_refuses_its_own_mode(hr: Headrace, ns: str) -> None:
    hr.sql(f"CREATE TABLE {ns}.orders (id BIGINT) USING iceberg; INSERT INTO {ns}.orders VALUES (1), (2)")
    hr.sql(f"CREATE VIEW {ns}.seen AS SELECT id FROM {ns}.orders")
    hr.create_stream_table(f"{ns}.kept", f"SELECT id FROM {ns}.seen")
    hr.create_green(f"{ns}.kept", refresh_mode="DIFFERENTIAL")
    hr.sql(f"CREATE OR REPLACE VIEW {ns}.seen AS SELECT id FROM {ns}.orders WHERE rand() >= 0")
    for act in (lambda: hr.refresh(f"{ns}__green.kept"), hr.promote_all_green):
        error = refusal(act)
        assert error is not None
        assert error.code == "NOT_MAINTAINABLE", error
    (green,) = hr._catalog.greens()
    assert green.promoted_at is None
    hr.sql(f"CREATE OR REPLACE VIEW {ns}.seen AS SELECT id FROM {ns}.orders WHERE id > 1")
    hr.refresh()
    hr.promote_all_green(verify=True)  # what Headrace defined again by itself, nobody has altered
    assert [tuple(r) for r in hr.spark.table(f"lake.{ns}.kept").collect()] == [(2,)]
    hr.cancel_green(deployment="green")
