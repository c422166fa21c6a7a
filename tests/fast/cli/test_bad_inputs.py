"""What people get wrong, over all commands: one table of inputs, exit statuses and what is told. No JVM starts."""

from __future__ import annotations

import io
import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result
from fast.cli.conftest import Run
from fast.cli.samples import NOW, info, past
from kit.stored_project import StoredProject, with_revenue
from rich.console import Console
from rich.table import Table

from headrace.cli.hints import as_commands
from headrace.cli.main import app
from headrace.cli.render import tables
from headrace.cli.render.format import grid
from headrace.cli.render.narrow import fitted
from headrace.project.spark_options import complaints


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredProject]:
    with with_revenue(tmp_path_factory.mktemp("bad") / "shop") as made:
        yield made


def run(project: StoredProject, *args: str) -> Result:
    return CliRunner().invoke(app, ["-p", str(project.root), *args], prog_name="headrace")


FAR = str(10**20)  # further than a catalog counts

BAD = [
    # command line, exit status, what stderr has
    (["stauts"], 2, "Did you mean"),
    (["status", "--jsno"], 2, "Did you mean"),
    (["frobnicate"], 2, "No such command"),
    (["status", "shop.revenu"], 1, "Did you mean shop.revenue?"),
    (["status", "revenue"], 1, "has no namespace"),
    (["status", "a b"], 1, "INVALID_NAME"),
    (["refresh", "shop.revnue"], 1, "Did you mean shop.revenue?"),
    (["refresh", "shop.orders"], 1, "STREAM_TABLE_NOT_FOUND"),
    (["refresh", "--wait", "soon"], 2, "is no age"),
    (["verify", "shop.nothing"], 1, "STREAM_TABLE_NOT_FOUND"),
    (["repair", "shop.revenues"], 1, "Did you mean shop.revenue?"),
    (["maintain", "--older-than", "7x"], 2, "is no age"),
    (["history", "shop.never"], 1, "STREAM_TABLE_NOT_FOUND"),
    (["history", "--limit", "0"], 2, "--limit"),
    (["show-create", "shop.never"], 1, "STREAM_TABLE_NOT_FOUND"),
    (["graph", "--format", "svg"], 2, "--format"),
    (["explain"], 2, "NAME_OR_QUERY"),
    (["validate", "SELEC 1"], 1, "SYNTAX_ERROR"),
    (["validate", "SELECT k FROM shop.order"], 1, "Did you mean shop.orders?"),
    (["explain", "SELECT k FROM shop.order"], 1, "Did you mean shop.orders?"),
    (["refresh", "revenue"], 1, "Write namespace.revenue."),
    (["validate", "-f", "/nowhere.sql"], 2, "cannot be read"),
    (["create", "shop.x"], 2, "The query is missing"),
    (["create", "shop.x", "SELEC 1"], 1, "SYNTAX_ERROR"),
    (["create", "shop.x", "SELECT k FROM shop.order"], 1, "Did you mean shop.orders?"),
    (["create", "shop.x", "SELECT 'open FROM shop.orders"], 1, "SYNTAX_ERROR"),
    (["create", "shop.x", "SELECT k FROM shop.orders VERSION AS OF 1"], 1, "TIME_TRAVEL_SOURCE"),
    (["create", "shop.x", "SELECT '${env:HOME}' AS h FROM shop.orders"], 1, "PARAMETER_UNBOUND"),
    (["create", "shoop.x", "SELECT k FROM shop.orders"], 1, "Did you mean shop?"),
    (["create", "staging.shop.x", "SELECT 1"], 1, "INVALID_NAME"),
    (["create", "shop.revenue", "SELECT k FROM shop.orders"], 1, "--or-replace, or --if-not-exists"),
    (["create", "shop.orders", "SELECT 1"], 1, "TABLE_EXISTS"),
    (["create", "shop.x", "SELECT k FROM shop.orders", "--schedule", "1 fortnight"], 1, "INVALID_SCHEDULE"),
    (["create", "shop.x", "SELECT k FROM shop.orders", "--set", "teir=hot"], 1, "Did you mean tier?"),
    (["create", "shop.x", "SELECT k FROM shop.orders", "--set", "tier=warmish"], 1, "INVALID_OPTION"),
    (["create", "shop.x", "SELECT k FROM shop.orders", "--set", "tier"], 2, "is no KEY=VALUE"),
    (["create", "shop.x", "SELECT k FROM shop.orders", "--mode", "SOMETIMES"], 2, "--mode"),
    (["alter", "shop.revenue"], 2, "Nothing to change"),
    (["alter", "shop.revenue", "--schedule", "x", "--no-schedule"], 2, "contradict"),
    (["alter", "shop.reveneu", "--mode", "FULL"], 1, "Did you mean shop.revenue?"),
    (["drop", "shop.orders"], 1, "shop.orders is a table, not a stream table"),
    (["drop", "shop.revenoo"], 1, "Did you mean shop.revenue?"),
    (["sql", "DROP TABLE shop.revenue"], 1, "DROP STREAM TABLE shop.revenue"),
    (["sql", "CREATE STREAM TABEL shop.x AS SELECT 1"], 1, "SYNTAX_ERROR"),
    (["sql", "-f", "/nowhere.sql"], 2, "cannot be read"),
    (["source", "status", "shp"], 1, "SOURCE_UNKNOWN"),
    (["sink", "status", "web"], 1, "SINK_UNKNOWN"),
    (["pause", "shop.revenu"], 1, "Did you mean shop.revenue?"),
    (["fuse", "shop.revenue", "ignore"], 2, "ignore"),
    (["fuse", "shop.revenu"], 1, "Did you mean shop.revenue?"),
    (["refresh", "--wait", "9999999999d"], 2, "longer than a hundred years"),
    (["deploy", "promote", "--all", "green", "--rollback-window", "500000 weeks"], 1, "INVALID_OPTION"),
    (["gate", "open", "shop.never"], 1, "shop.never"),
    (["watermark", "drop", "none"], 1, "none"),
    (["deploy", "promote", "shop.revenue"], 1, "shop.revenue"),
    (["key", "declare", "shop.orders"], 2, "Missing argument"),
    (["key", "declare", "shop.order", "k"], 1, "Did you mean shop.orders?"),
    (["key", "declare", "shop.orders", "kk"], 1, "It has k."),
    (["lineage"], 2, "TABLE[.COLUMN]"),
    (["lineage", "shop.revenu"], 1, "Did you mean shop.revenue?"),
    (["lineage", "shop.revenue.kk"], 1, "shop.revenue has no column kk"),
    (["lineage", "shop.orders.k"], 1, "STREAM_TABLE_NOT_FOUND"),
    (["lineage", "shop.revenue.k.more"], 1, "STREAM_TABLE_NOT_FOUND"),
    (["lineage", "revenue"], 1, "has no namespace"),
    (["serve", "--stop", "--status"], 2, "contradict"),
    (["serve", "now"], 2, "unexpected extra argument"),
    (["web", "--listen", "nowhere"], 1, "ADDRESS_INVALID"),
    (["web", "--listen", "127.0.0.1:99999"], 1, "ADDRESS_INVALID"),
    (["web", "--listen", "0.0.0.0:0"], 1, "PAGE_NOT_CLOSED"),
    (["web", "--password-env", "HEADRACE_NO_SUCH_VARIABLE"], 2, "not set, or empty"),
    (["web", "--proxy-header", "X-User"], 1, "PAGE_NOT_CLOSED"),
    (["web", "--proxy-from", "127.0.0.1"], 2, "goes with --proxy-header"),
    (["web", "--proxy-header", "X-User", "--proxy-from", "proxy.local"], 1, "no address of a machine"),
    (["run", "--metrics", "nowhere"], 1, "ADDRESS_INVALID"),
    (["run", "--once", "--metrics", "9464"], 2, "goes with a run that stays"),
    (["run", "--max-concurrent", "99"], 2, "--max-concurrent"),
    (["run", "--grace", "-1"], 2, "--grace"),
    (["events", "--limit", "0"], 2, "--limit"),
    (["events", "--limit", FAR], 2, "--limit"),
    (["history", "--limit", FAR], 2, "--limit"),
    (["sql", "SELECT 1", "--limit", FAR], 2, "--limit"),
    (["explain", "shop.revenu"], 1, "Did you mean shop.revenue?"),
    (["explain", "shop.revenue", "--analyze", "--passes"], 1, "INVALID_OPTION"),
    (["deploy", "create", "shop.revenu", "SELECT 1"], 1, "STREAM_TABLE_NOT_FOUND"),
    (["deploy", "rollback", "--all", "green"], 1, "DEPLOYMENT_NOT_FOUND"),
    (["watermark", "create", "loads", "shop.orders", "shop.revenue", "--tolerance", "5 moons"], 1, "INVALID_OPTION"),
    (["watermark", "advance", "shop.orders", "yesterday"], 1, "is no moment"),
    (["gate", "close", "shop.order"], 1, "Did you mean shop.orders?"),
    (["fuse", "shop.revenue", "accept"], 2, "apply"),
    (["source", "add", "crm", "mysql://127.0.0.1:9/db", "-t", "public.a"], 1, "SOURCE_URL_INVALID"),
    (["source", "add", "c r m", "postgresql://127.0.0.1:9/db", "-t", "public.a"], 1, "INVALID_NAME"),
    (["sink", "add", "web", "shop.revenu", "postgresql://127.0.0.1:9/db", "public.t"], 1, "Did you mean shop.revenue?"),
    (["sink", "add", "web", "shop.revenue", "mysql://127.0.0.1:9/db", "public.t"], 1, "SINK_URL_INVALID"),
    (["completion", "tcsh"], 2, "bash"),
    (["demo", "--scale", "large"], 2, "--scale"),
    (["demo", "mars"], 2, "There are postgres and deploy. A folder of that name is written ./mars."),
    (["demo", "postgre"], 2, "Did you mean postgres?"),
    (["diamonds", "shop.revenue"], 2, "unexpected extra argument"),
    (["doctor", "--repair"], 2, "No such option"),
    (["move-catalog"], 1, "LAKE_MOVE_REFUSED"),
    (["move-catalog", "there"], 2, "unexpected extra argument"),
    (["drain", "now"], 2, "unexpected extra argument"),
    (["functions", "shop"], 2, "unexpected extra argument"),
    (["resume", "shop.revenu"], 1, "Did you mean shop.revenue?"),
    (["init", "/proc/nothing"], 1, "FOLDER_NOT_WRITABLE"),
    (["create", "shop.x", "SELECT window(k FROM shop.orders"], 1, "SYNTAX_ERROR"),
    (["create", "shop.x", "SELECT k FROM shop.orders WHERE k > (now("], 1, "SYNTAX_ERROR"),
]


@pytest.mark.parametrize(
    ("args", "status", "told"), BAD, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_a_bad_input_is_told(project: StoredProject, args: list[str], status: int, told: str) -> None:
    before = dict(project.hr._catalog.pointers())
    for form in ((), ("--json",)):
        result = run(project, *args, *form)
        assert (result.exit_code, result.stdout) == (status, ""), result.output
        assert "Traceback" not in result.stderr
        assert "INTERNAL_ERROR" not in result.stderr
        if form:
            error = json.loads(result.stderr)["error"]
            assert error["code"]
            assert told in f"{error['code']} {error['message']} {error['hint']} {error.get('detail')}"
        else:
            assert told in result.stderr
    assert dict(project.hr._catalog.pointers()) == before


def test_the_table_has_every_command() -> None:
    assert set(app.commands) - {args[0] for args, _, _ in BAD} == set()


def test_an_option_is_not_mistaken_for_a_global_one_that_is_unlike_it(project: StoredProject) -> None:
    assert "Did you mean" not in run(project, "history", "--since", "1d").stderr
    assert "Did you mean '--json'?" in run(project, "history", "--jso").stderr


def test_nothing_declared_is_said_with_the_section_to_write(project: StoredProject) -> None:
    for kind in ("source", "sink"):
        assert f"write a section [{kind}s.NAME]." in run(project, kind, "apply").stdout


def test_a_master_that_does_not_answer_is_told_in_seconds(
    project: StoredProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, address in (
        ("HEADRACE_SPARK_MASTER", "spark://127.0.0.1:9"),
        ("HEADRACE_SPARK_REMOTE", "sc://127.0.0.1:9"),
    ):
        monkeypatch.setenv(variable, address)
        began = time.monotonic()
        result = run(project, "sql", "SELECT 1")
        assert (result.exit_code, time.monotonic() - began < 15) == (1, True)
        assert f"Nothing answers at {address}." in result.stderr
        assert "[SPARK_UNAVAILABLE]" in result.stderr


def test_packages_that_are_missing_name_the_extra(project: StoredProject, monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace import extras

    plain = extras.find_spec
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name in ("pyspark", "grpc") else plain(name))
    result = run(project, "sql", "SELECT 1")
    assert (result.exit_code, "pip install 'headrace[local]'" in result.stderr) == (1, True), result.stderr


def test_garbage_in_the_catalog_is_told_by_every_command(tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_text("[headrace]\n")
    (tmp_path / "headrace.db").write_bytes(b"no database at all" * 100)
    for args in (
        ["status"],
        ["history"],
        ["graph"],
        ["refresh"],
        ["run", "--once"],
        ["events"],
        ["sql", "SELECT 1"],
        ["create", "a.b", "SELECT 1"],
        ["source", "list"],
        ["sink", "list"],
        ["repair"],
        ["show-create"],
    ):
        result = CliRunner().invoke(app, ["-p", str(tmp_path), *args])
        assert (result.exit_code, "[CATALOG_CORRUPT]" in result.stderr) == (1, True), (args, result.output)
    doctor_says = CliRunner().invoke(app, ["-p", str(tmp_path), "doctor"])
    assert "CATALOG_CORRUPT" in doctor_says.stdout


@pytest.mark.parametrize("garbage", ["{", "{}", '{"query": 7}', "[1, 2]"])
def test_garbage_in_a_definition_is_told(tmp_path: Path, garbage: str) -> None:
    with with_revenue(tmp_path / "shop") as made:
        pass
    with sqlite3.connect(made.root / "headrace.db") as database:
        database.execute("UPDATE hr_stream_table SET definition_json = ?", (garbage,))
    for args in (["status"], ["refresh"], ["show-create"], ["refresh", "shop.revenue"]):
        result = CliRunner().invoke(app, ["-p", str(made.root), *args])
        assert (result.exit_code, "[CATALOG_CORRUPT]" in result.stderr) == (1, True), (args, result.output)


def test_the_doctor_works_outside_of_a_project(run: Run) -> None:
    result = run("doctor", "--json")
    names = [check["name"] for check in json.loads(result.stdout)]
    assert names == ["Python", "PySpark", "Java", "Jars", "Project"]


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("spark.driver.memory", "4 gigs", "no size"),
        ("spark.sql.shuffle.partitions", "many", "no number"),
        ("spark.sql.ansi.enabled", "on", "true or false"),
        ("spark.sql.catalog.lake.uri", "x", "catalog_url"),
        ("spark.SQL.ansi.enabled", "true", "spark.sql.ansi.enabled"),
    ],
)
def test_the_doctor_knows_spark_options_that_cannot_be_meant(option: str, value: str, said: str) -> None:
    ((name, what, remedy),) = complaints({option: value})
    assert name == option
    assert said in f"{what} {remedy}"
    assert not complaints({"spark.driver.memory": "4g", "spark.anything": "else", "spark.sql.ansi.enabled": "TRUE"})


def test_tables_keep_names_whole_in_a_narrow_terminal() -> None:
    name = "warehouse.daily_revenue_by_region"
    for width in (60, 80, 200):
        console = Console(width=width, file=io.StringIO(), highlight=False)
        for part in (*tables.standing([info(name)], NOW), *tables.history([past(name=name)])):
            console.print(fitted(part, width) if isinstance(part, Table) else part)
        text = console.file.getvalue()
        assert text.count(name) == 2
        assert all(word in text for word in ("DIFFERENTIAL", "3 min ago", "2026-06-01", "FIRST_LOAD"))
        assert all(len(line) <= width for line in text.splitlines())


def test_a_narrow_terminal_breaks_sentences_between_words() -> None:
    long = "touched partitions are computed again; old rows come from the stream table itself"
    table = grid("Construct", "Of", "How a refresh follows a change")
    table.add_row("window function", "row_number() OVER (PARTITION BY region)", long)
    console = Console(width=50, file=io.StringIO(), highlight=False)
    console.print(fitted(table, 50))
    lines = console.file.getvalue().splitlines()
    assert all(len(line) <= 50 for line in lines)
    assert "  How a refresh follows a change: touched" in lines
    assert long in " ".join(line.strip() for line in lines)


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        ("Run REFRESH STREAM TABLE shop.a first.", "Run `headrace refresh shop.a` first."),
        (
            "Drop those first, or write DROP STREAM TABLE a.b CASCADE.",
            "Drop those first, or write `headrace drop a.b --cascade`.",
        ),
        ("SHOW STREAM TABLES (or `headrace status`) lists those.", "`headrace status` lists those."),
        ("REPAIR STREAM TABLE a.b (`headrace repair a.b`) helps.", "`headrace repair a.b` helps."),
        (
            "Did you mean x? CREATE NAMESPACE shop makes it.",
            'Did you mean x? `headrace sql "CREATE NAMESPACE shop"` makes it.',
        ),
        ("ALTER STREAM TABLE a.b SET REFRESH MODE AUTO, or undo it.", "`headrace alter a.b --mode AUTO`, or undo it."),
        ("SHOW TABLES IN a.b lists those.", '`headrace sql "SHOW TABLES IN a.b"` lists those.'),
        ("Use DROP TABLE a.b.", 'Use `headrace sql "DROP TABLE a.b"`.'),
    ],
)
def test_hints_of_commands_name_commands(hint: str, said: str) -> None:
    assert as_commands(hint) == said


def test_a_shell_completes_verbs_and_names(project: StoredProject, run: Run) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_HEADRACE_COMPLETE" in run("completion", shell).stdout
    complete = ShellComplete(app, {}, "headrace", "_HEADRACE_COMPLETE")
    given = ["-p", str(project.root), "refresh"]
    assert [item.value for item in complete.get_completions(given, "shop.")] == ["shop.revenue"]
    assert [item.value for item in complete.get_completions(["-p", "/nowhere", "refresh"], "shop.")] == []
    assert "refresh" in [item.value for item in complete.get_completions([], "re")]
