"""A user's whole way through the command."""

import json
from pathlib import Path

import pytest
from cli.conftest import Run


@pytest.mark.usefixtures("alone")
def test_from_a_query_to_a_verified_table(ns: str, done: Run, run: Run) -> None:
    name = f"{ns}.revenue"
    query = f"SELECT region, sum(amount) AS total FROM {ns}.orders GROUP BY region"
    created = done("create", name, query, "--mode", "DIFFERENTIAL", "--json")
    first = json.loads(created.stdout)
    assert (first["name"], first["mode"], first["reason"], first["rows_inserted"]) == (name, "FULL", "FIRST_LOAD", 2)

    done("sql", f"INSERT INTO {ns}.orders VALUES (4, 'US', 1.00); DELETE FROM {ns}.orders WHERE id = 2")
    (before,) = json.loads(done("status", name, "--json").stdout)
    assert before["behind"] == [f"{ns}.orders"]
    (refreshed,) = json.loads(done("refresh", name, "--json").stdout)
    assert (refreshed["rows_inserted"], refreshed["rows_deleted"]) == (2, 1)
    assert "Everything is up to date." in done("refresh").stdout

    (verified,) = json.loads(done("verify", name, "--json").stdout)
    assert (verified["ok"], verified["rows"]) == (True, 3)
    rows = json.loads(done("sql", f"SELECT region, total FROM {name} ORDER BY region", "--json").stdout)
    assert rows[0]["result"]["rows"] == [[None, "5.25"], ["EU", "30.00"], ["US", "1.00"]]

    assert [row["rows_inserted"] for row in json.loads(done("history", name, "--json").stdout)] == [2, 2]
    assert name in done("graph").stdout
    assert "total" in done("explain", name).stdout
    done("alter", name, "--schedule", "5 minutes", "--mode", "FULL")
    (after,) = json.loads(done("status", name, "--json").stdout)
    assert (after["schedule"], after["refresh_mode"]) == ("5 minutes", "FULL")
    assert done("drop", name).stdout == f"Dropped: {name}.\n"
    assert run("status", name).exit_code == 1


def test_scripts_come_from_files_and_stdin(ns: str, done: Run, tmp_path: Path) -> None:
    script = tmp_path / "pipeline.sql"
    script.write_text(
        f"""-- a pipeline; two statements
        CREATE STREAM TABLE {ns}.big AS SELECT id, ';' AS mark FROM {ns}.orders WHERE amount > 10;
        CREATE STREAM TABLE {ns}.regions SCHEDULE '1 minute' AS SELECT DISTINCT region FROM {ns}.orders;
        SHOW STREAM TABLES IN LAKE.{ns}"""
    )
    text = done("sql", "-f", script).stdout
    assert f"{ns}.big" in text
    assert "1 minute" in text
    assert "30.00" in done("sql", stdin=f"SELECT * FROM {ns}.orders WHERE id = 1").stdout
    assert "1 row shown; there are more" in done("sql", "-n", 1, f"SELECT id FROM {ns}.orders").stdout
    created = done("create", f"{ns}.stdin", "-", "--no-load", stdin=f"SELECT id FROM {ns}.orders")
    assert "nothing was loaded" in created.stdout


def test_progress_is_told_on_stderr_and_can_be_silenced(ns: str, done: Run) -> None:
    create = ("create", f"{ns}.a", f"SELECT id FROM {ns}.orders")
    assert f"{ns}.a: FULL +3 −0 in " in done(*create).stderr
    assert done("refresh", f"{ns}.a", "--full", "-q").stderr == ""


def test_maintenance_and_the_doctor(ns: str, done: Run) -> None:
    done("create", f"{ns}.a", f"SELECT id FROM {ns}.orders")
    assert isinstance(json.loads(done("maintain", "--dry-run", "--json").stdout), list)
    assert done("maintain", "--older-than", "0s").exit_code == 0
    checks = {check["name"]: check["outcome"] for check in json.loads(done("doctor", "--spark", "--json").stdout)}
    assert checks["Spark"] == "ok"


def test_several_tables_are_refreshed_at_once_and_told_in_order(ns: str, done: Run, run: Run) -> None:
    names = [f"{ns}.{name}" for name in ("ids", "regions", "sums")]
    for name, query in zip(names, ("SELECT id", "SELECT DISTINCT region", "SELECT sum(amount) AS s"), strict=True):
        done("create", name, f"{query} FROM {ns}.orders", "--no-load")
    loaded = done("refresh", *names, "--max-concurrent", "3")
    assert all(f"{name}: FULL +" in loaded.stderr for name in names)
    again = json.loads(done("refresh", *names, "--full", "--json").stdout)
    in_order = json.loads(done("refresh", *names, "--full", "--json", "--max-concurrent", "1").stdout)
    assert [each["name"] for each in again] == [each["name"] for each in in_order]
    places = [loaded.stdout.index(each["name"]) for each in again]
    assert places == sorted(places)
    assert "33" in run("refresh", "--max-concurrent", "33").stderr
