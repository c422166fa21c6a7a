"""A project whose catalog is a copy of another's, in PostgreSQL: everything says so, and nothing works on it."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from catalog_kit.databases import Postgres, sql
from fast.cli.conftest import Run
from kit.waiting import until

import headrace
from headrace.catalog import Catalog, Mirror
from headrace.errors import HeadraceError
from headrace.names import LAKE, TableName
from headrace.project.new_project import init_project


def made(folder: Path, url: str) -> Path:
    return init_project(folder, catalog_url=url, warehouse=str(folder.parent / "warehouse")).root


@pytest.fixture
def copy(postgres: Postgres, tmp_path: Path) -> Path:
    url = postgres.fresh()
    made(tmp_path / "original", url)
    with Catalog.open(url) as catalog:
        mirror = Mirror(TableName(LAKE, ("pg",), "orders"), TableName(LAKE, ("_headrace",), "log"), "public.orders")
        catalog.create_source("pg", "postgres", {"url": "postgresql://127.0.0.1:9/db"}, (mirror,))
    with sql(url) as connection:
        connection.exec_driver_sql("UPDATE hr_source SET status = 'ACTIVE', position_json = '{}'")
    return made(tmp_path / "copy", postgres.copy(url))


@pytest.mark.parametrize("args", [["status"], ["history"], ["show-create"], ["events"], ["graph"], ["source", "list"]])
def test_looking_works(copy: Path, run: Run, args: list[str]) -> None:
    for form in ([], ["--json"]):
        found = run("-p", copy, *args, *form)
        assert found.exit_code == 0, found.output
        assert ("CATALOG_COPIED" in found.stderr) == (args == ["status"])
        if form and args not in (["show-create"], ["events"]):
            json.loads(found.stdout)


def test_the_doctor_says_it(copy: Path, run: Run) -> None:
    found = run("-p", copy, "doctor", "--json")
    (check,) = (check for check in json.loads(found.stdout) if check["name"] == "Catalog")
    assert (check["outcome"], "CATALOG_COPIED" in check["finding"]) == ("fail", True)
    assert "headrace move-catalog --here" in check["remedy"]


WORK = "refresh", "maintain", "run", "run --once", "source land", "source resnapshot pg", "source drop pg"


@pytest.mark.parametrize("args", [line.split() for line in WORK], ids=WORK)
def test_work_is_refused(copy: Path, run: Run, args: list[str]) -> None:
    began = time.monotonic()
    refused = run("-p", copy, *args)
    assert (refused.exit_code, refused.stderr.count("[CATALOG_COPIED]") >= 1) == (1, True), refused.output
    assert "headrace move-catalog --here" in refused.stderr
    assert time.monotonic() - began < 20


def test_it_is_confirmed_once(copy: Path, run: Run) -> None:
    contradiction = run("-p", copy, "move-catalog", "--here", "--back")
    assert contradiction.exit_code == 2
    with pytest.raises(HeadraceError, match="one at a time"):
        headrace.move_catalog(copy, here=True, back=True)
    for dry in (True, False):
        said = run("-p", copy, "move-catalog", "--here", "--json", *(["--dry-run"] if dry else []))
        result = json.loads(said.stdout)
        assert (said.exit_code, result["moved"], result["tables"]) == (0, not dry, [])
        assert result["source"] != result["target"]
        assert "CATALOG_COPIED" in run("-p", copy, "status").stderr or not dry
    assert "CATALOG_COPIED" not in run("-p", copy, "status").stderr
    said = run("-p", copy, "move-catalog", "--here")
    assert (said.exit_code, "Nothing to confirm" in said.stdout) == (0, True)
    assert run("-p", copy, "maintain").exit_code == 0
    assert run("-p", copy.parent / "original", "maintain").exit_code == 0


def test_what_confirming_does_is_said(copy: Path, run: Run) -> None:
    said = run("-p", copy, "move-catalog", "--here", "--dry-run")
    assert "would be in database" in said.stdout
    assert "from now on, and was in database" in run("-p", copy, "move-catalog", "--here").stdout


def test_there_is_nothing_to_confirm_of_a_file(project: Path, run: Run) -> None:
    said = run("-p", project, "move-catalog", "--here", "--json")
    assert (said.exit_code, json.loads(said.stdout)["moved"]) == (0, False)


def test_a_scheduler_ends_that_finds_itself_in_a_copy(postgres: Postgres, tmp_path: Path) -> None:
    url = postgres.fresh()
    root = made(tmp_path / "shop", url)
    failures: list[HeadraceError] = []

    def work() -> None:
        with headrace.open(root) as hr:
            try:
                hr.run()
            except HeadraceError as error:
                failures.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    with Catalog.open(url) as catalog:
        until(catalog.schedulers, seconds=60)
    with sql(url, autocommit=True) as connection:  # as if another server answered by that name
        connection.exec_driver_sql("UPDATE hr_own_database SET identity = '1/2'")
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND datname = current_database()"
        )
    thread.join(60)
    assert [error.code for error in failures] == ["CATALOG_COPIED"]
