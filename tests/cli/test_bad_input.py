"""What users get wrong, and what they are told: a code, a place, a hint, exit status 1."""

import json

import pytest
from cli.conftest import Run


@pytest.mark.parametrize(
    ("query", "code", "said"),
    [
        ("SELECT nothing FROM {ns}.orders", "COLUMN_NOT_FOUND", "nothing"),
        ("SELECT id FROM {ns}.nowhere", "TABLE_NOT_FOUND", "nowhere"),
        ("SELECT id, id FROM {ns}.orders", "DUPLICATE_COLUMN", "id"),
        ("SELECT window(now(), '5 moons') AS w, id FROM {ns}.orders", "VALUE_ERROR", "an interval such as '5 minutes'"),
        ("SELECT window(now(), '1 day', '2 days') AS w FROM {ns}.orders", "TYPE_MISMATCH", "so that this holds"),
        ("SELECT window(region, '1 day') AS w FROM {ns}.orders", "VALUE_ERROR", "cannot be cast"),
        ("SELECT id FROM {ns}.orders WHERE amount > now() - INTERVAL 1 DAY", "TYPE_MISMATCH", "amount"),
        ("SELECT id FROM {ns}.orders WHERE now() > INTERVAL 1 MOON", "SYNTAX_ERROR", "MOON"),
        ("SELECT id FROM {ns}.orders WHERE id > now() -", "SYNTAX_ERROR", "now() -"),
        ("SELECT id\nFROM {ns}.orders\nWHERE id = )", "SYNTAX_ERROR", "3 | WHERE id = )\n               ^"),
    ],
)
def test_a_query_that_is_wrong(ns: str, run: Run, query: str, code: str, said: str) -> None:
    result = run("create", f"{ns}.a", query.format(ns=ns))
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"[{code}]" in result.stderr
    assert said in result.stderr
    assert run("status", f"{ns}.a").exit_code == 1


@pytest.mark.parametrize("command", ["create {ns}.a", "validate", "explain", "sql"])
def test_a_table_that_may_have_been_meant(ns: str, run: Run, done: Run, command: str) -> None:
    done("sql", "SELECT 1")  # Spark is up, and knows more names than the catalog does
    result = run(*command.format(ns=ns).split(), f"SELECT id FROM {ns}.ordrs")
    assert result.exit_code == 1
    assert "[TABLE_NOT_FOUND]" in result.stderr
    assert f"Did you mean {ns}.orders?" in result.stderr
    assert "Verify" not in result.stderr


def test_differential_is_refused_with_place_and_hint(ns: str, run: Run) -> None:
    result = run("create", f"{ns}.a", f"SELECT id, rand() AS r FROM {ns}.orders", "--mode", "differential", "--json")
    error = json.loads(result.stderr)["error"]
    assert result.exit_code == 1
    assert (error["line"], error["column"]) == (1, 12)
    assert error["hint"]


def test_names_cycles_and_consumers(ns: str, run: Run, done: Run) -> None:
    done("create", f"{ns}.a", f"SELECT id FROM {ns}.orders")
    done("create", f"{ns}.b", f"SELECT id FROM {ns}.a")
    exists = run("create", f"{ns}.a", f"SELECT id FROM {ns}.orders")
    assert exists.exit_code == 1
    assert "EXISTS]" in exists.stderr
    assert done("create", f"{ns}.a", f"SELECT id FROM {ns}.orders", "--if-not-exists").exit_code == 0
    cycle = run("alter", f"{ns}.a", "--query", f"SELECT id FROM {ns}.b")
    assert cycle.exit_code == 1
    assert "[CYCLE]" in cycle.stderr
    held = run("drop", f"{ns}.a")
    assert held.exit_code == 1
    assert "[HAS_CONSUMERS]" in held.stderr
    assert set(json.loads(done("drop", f"{ns}.a", "--cascade", "--json").stdout)["dropped"]) == {f"{ns}.a", f"{ns}.b"}


def test_a_refresh_that_fails_leaves_the_table_and_a_line_in_history(ns: str, run: Run, done: Run) -> None:
    done("create", f"{ns}.shares", f"SELECT id, 1 / (amount - 7) AS share FROM {ns}.orders")
    done("sql", f"INSERT INTO {ns}.orders VALUES (9, 'EU', 7.00)")
    failed = run("refresh", f"{ns}.shares")
    assert failed.exit_code == 1
    assert "[ARITHMETIC_ERROR]" in failed.stderr
    assert "Traceback" not in failed.stderr
    rows = json.loads(done("sql", f"SELECT count(*) AS n FROM {ns}.shares", "--json").stdout)
    assert rows[0]["result"]["rows"] == [[3]]
    newest = json.loads(done("history", f"{ns}.shares", "--json").stdout)[0]
    assert (newest["ok"], newest["error_code"]) == (False, "ARITHMETIC_ERROR")
    assert "failed last time" in done("status", f"{ns}.shares").stdout
    done("drop", f"{ns}.shares")


def test_a_script_stops_at_the_first_error(ns: str, run: Run, done: Run) -> None:
    result = run("sql", f"SELECT 41 AS first; SELEC 2; CREATE TABLE {ns}.never (id INT) USING iceberg")
    assert result.exit_code == 1
    assert "41" in result.stdout
    assert "never" not in done("sql", f"SHOW TABLES IN {ns}").stdout
