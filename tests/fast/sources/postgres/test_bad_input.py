"""What users get wrong, or find broken, on the command line: one message with code, cause, remedy, and what to retry.

On real servers, as far as no Spark is needed; nothing that is published changes, nothing is left on the server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner, Result
from kit.house import House
from kit.logical import LogicalServer
from kit.mirrored import Follower
from kit.pg_child import Way

from headrace.catalog import SourceStatus
from headrace.cli.failures import RETRY
from headrace.cli.main import app
from headrace.project.new_project import init_project
from headrace.sources.postgres.triggers.change_tables import suffix_of
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal.wal_capture import PostgresCapture

SCHEMA = """
CREATE TABLE keyless (a int); CREATE UNLOGGED TABLE fast (a int PRIMARY KEY); CREATE VIEW seen AS SELECT 1 AS a;
CREATE TABLE twice (a int PRIMARY KEY, "A" int); CREATE TABLE own (id int PRIMARY KEY, "_Pos" int, __hr_x int)
"""
LEFT = """
SELECT (SELECT count(*) FROM pg_replication_slots WHERE database = current_database()),
    (SELECT count(*) FROM pg_publication), (SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'headrace%')
"""


@pytest.fixture
def house(server: LogicalServer, tmp_path: Path) -> House:
    init_project(tmp_path / "shop")
    made = House(server, tmp_path / "shop")
    with psycopg.connect(made.url, autocommit=True) as db:
        db.execute(SCHEMA)
    return made


@dataclass(frozen=True)
class Command:
    """The command in the house's project."""

    house: House

    def __call__(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, ["--project", str(self.house.settings.root), *arguments])

    def fails(self, *arguments: str, code: str, said: str, remedy: str, retry: bool = False) -> None:
        """Run it; insist on one message, for people and for programs."""
        result = self(*arguments)
        assert (result.exit_code, result.stdout) == (1, ""), result.output
        assert result.output.count(f"[{code}]") == result.output.count("Error: ") == 1, result.output
        assert said in result.output
        assert remedy in result.output
        assert (RETRY in result.output) is retry
        assert "Traceback" not in result.output
        error = json.loads(self(*arguments, "--json").stderr)["error"]
        assert (error["code"], error["retryable"]) == (code, retry)
        assert error["message"] in result.output


@pytest.fixture
def run(house: House) -> Command:
    return Command(house)


TABLES = {
    "missing": ("nowhere", "SOURCE_NOT_READY", "does not exist", "Capture other tables"),
    "schema": ("other.orders", "SOURCE_NOT_READY", "does not exist", "Capture other tables"),
    "view": ("seen", "SOURCE_NOT_READY", "is a view", "Capture other tables"),
    "unlogged": ("fast", "SOURCE_NOT_READY", "unlogged", 'ALTER TABLE "public"."fast" SET LOGGED;'),
    "system": ("pg_catalog.pg_class", "SOURCE_NOT_READY", "PostgreSQL itself", "Capture other tables"),
    "columns": ("twice", "SOURCE_NOT_READY", "a, A", "Capture other tables"),
    "names": ("own", "SOURCE_NOT_READY", "for its own: _Pos, __hr_x", 'ALTER TABLE "public"."own" RENAME "_Pos" TO'),
    "column": ("orders COLUMNS (id, nope)", "SOURCE_NOT_READY", "no column nope", "Capture other tables"),
    "condition": ("orders WHERE (nope > 1)", "SOURCE_FILTER_INVALID", '"nope" does not exist', "Use columns"),
}


@pytest.mark.parametrize("way", ["wal", "trigger", "auto"])
def test_tables_that_cannot_be_captured(house: House, run: Command, way: str) -> None:
    for table, code, said, remedy in TABLES.values():
        if way == "auto" and " " in table:
            code, said, remedy = "INVALID_OPTION", "capture in one way", "use capture ="
        run.fails(
            "source", "add", "shop", house.url, "-t", table, "--capture", way, code=code, said=said, remedy=remedy
        )
    assert run("source", "list", "--json").stdout == "[]\n"
    with psycopg.connect(house.url) as db:
        assert db.execute(LEFT).fetchone() == (0, 0, 0)


def test_a_table_without_a_key(house: House, run: Command) -> None:
    remedy = 'ALTER TABLE "public"."keyless" REPLICA IDENTITY FULL;'
    run.fails("source", "add", "shop", house.url, "-t", "keyless", code="SOURCE_NOT_READY", said="key", remedy=remedy)


SERVERS = {
    "host": ("postgresql://reader@no-such-host.invalid/shop", "SOURCE_UNREACHABLE", "no-such-host"),
    "port": ("postgresql://reader@127.0.0.1:9/shop", "SOURCE_UNREACHABLE", "refused"),
    "database": ("postgresql://postgres@/nowhere?host={host}", "SOURCE_LOGIN_REFUSED", '"nowhere" does not exist'),
    "role": ("postgresql://stranger@/postgres?host={host}", "SOURCE_LOGIN_REFUSED", '"stranger" does not exist'),
}


MISWRITTEN = ("port=none", "port=99999", "sslmode=perhaps", "keepalives=x", "connect_timeout=soon", "service=nowhere")


@pytest.mark.parametrize("parameter", MISWRITTEN)
def test_a_parameter_that_means_nothing(run: Command, parameter: str) -> None:
    url, name = f"host=127.0.0.1 dbname=shop user=reader {parameter}", parameter.partition("=")[0]
    told = {"code": "SOURCE_URL_INVALID", "said": "means nothing", "remedy": "service file"}
    run.fails("source", "check", url, "-t", "orders", **told)  # type: ignore[arg-type]
    assert name in run("source", "check", url, "-t", "orders").output


@pytest.mark.parametrize("case", SERVERS)
def test_servers_that_cannot_be_reached(
    server: LogicalServer, run: Command, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "topsecret")
    url, code, said = SERVERS[case]
    url, retry = url.format(host=server.host), code == "SOURCE_UNREACHABLE"
    remedy = "Check host and port" if retry else "Check user, password"
    for verb in (("add", "shop"), ("check",)):
        told = {"code": code, "said": said, "remedy": remedy, "retry": retry}
        run.fails("source", *verb, url, "-t", "orders", **told)  # type: ignore[arg-type]
        assert "topsecret" not in run("source", *verb, url, "-t", "orders").output
    assert run("source", "list", "--json").stdout == "[]\n"


TAMPERED = {
    "trigger disabled": (TriggerCapture, "CAPTURE_REMOVED", "ALTER TABLE orders DISABLE TRIGGER USER"),
    "disabled for a while": (
        TriggerCapture,
        "CAPTURE_REMOVED",
        "ALTER TABLE orders DISABLE TRIGGER USER; INSERT INTO orders VALUES (8); "
        "ALTER TABLE orders ENABLE TRIGGER USER",
    ),
    "trigger dropped": (TriggerCapture, "CAPTURE_REMOVED", "DROP TRIGGER {slot}_i ON orders"),
    "change table emptied": (TriggerCapture, "CAPTURE_REMOVED", "TRUNCATE {changes}"),
    "change table dropped": (TriggerCapture, "CAPTURE_REMOVED", "DROP TABLE {changes} CASCADE"),
    "schema dropped": (TriggerCapture, "CAPTURE_REMOVED", "DROP SCHEMA {slot} CASCADE"),
    "publication changed": (PostgresCapture, "CAPTURE_REMOVED", "ALTER PUBLICATION {slot} DROP TABLE orders"),
    "publication dropped": (PostgresCapture, "CAPTURE_REMOVED", "DROP PUBLICATION {slot}"),
    "slot dropped": (PostgresCapture, "SLOT_LOST", "SELECT pg_drop_replication_slot('{slot}')"),
    "slot moved": (
        PostgresCapture,
        "SLOT_LOST",
        "SELECT pg_replication_slot_advance('{slot}', pg_current_wal_flush_lsn())",
    ),
}


def captured(house: House, folder: Path, way: Way) -> Follower:
    follower = Follower(house.url, folder / "spool", "orders", slot="headrace_shop_1", way=way)
    follower.begin()
    house.follow("shop", follower, capture="trigger" if way is TriggerCapture else "wal")
    return follower


@pytest.mark.parametrize("case", TAMPERED)
def test_capture_that_was_tampered_with(house: House, run: Command, tmp_path: Path, case: str) -> None:
    way, code, statements = TAMPERED[case]
    follower = captured(house, tmp_path, way)
    with psycopg.connect(house.url, autocommit=True) as db:
        db.execute("INSERT INTO orders VALUES (7)")
        changes = f"{follower.slot}.t_{suffix_of('public', 'orders')}"
        for statement in statements.split("; "):
            db.execute(statement.format(slot=follower.slot, changes=changes))
        with suppress(psycopg.errors.UndefinedTable):  # where triggers have no table to write to
            db.execute("INSERT INTO orders VALUES (9)")
    for _ in range(2):  # noticed, and then stopped
        run.fails(
            "source",
            "land",
            "shop",
            code=code,
            said="Changes may have been missed",
            remedy="headrace source resnapshot",
        )
    with house.catalog.reading() as reader:
        source = reader.source("shop")
    assert (source.status, source.position) == (SourceStatus.STOPPED, follower.position)
    assert code in run("source", "status", "shop").output
    assert run("source", "list").exit_code == 0


@pytest.fixture
def away(house: House) -> Iterator[House]:
    """A house whose server comes back at the end."""
    yield house
    house.reachable(True)


def test_a_server_that_is_away(away: House, run: Command, tmp_path: Path) -> None:
    follower = captured(away, tmp_path, PostgresCapture)
    away.reachable(False)
    told = {"code": "SOURCE_UNREACHABLE", "said": "not currently accepting connections", "retry": True}
    for verb in ("land", "status", "resnapshot", "drop"):
        run.fails("source", verb, "shop", remedy="nothing is lost", **told)  # type: ignore[arg-type]
    assert "source drop shop --force" in run("source", "drop", "shop").output
    for verb in ("list", "pause", "resume"):
        assert run("source", verb, *("shop",) * (verb != "list")).exit_code == 0
    away.reachable(True)
    assert "SOURCE_UNREACHABLE" in run("source", "status", "shop").output  # when, and what
    assert run("source", "land", "shop").exit_code == 0
    with away.catalog.reading() as reader:
        assert reader.source("shop").status is SourceStatus.ACTIVE
    follower.capture().remove()
