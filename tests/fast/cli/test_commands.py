"""The command in this process: what needs no Spark, and every way of wrong usage."""

import errno
import json
import sqlite3
from pathlib import Path

import click
import pytest
from fast.cli.conftest import Run
from kit.owners import STRANGER, belongs_to_another_user
from kit.pipelines import define

from headrace import config
from headrace.catalog import Catalog
from headrace.catalog.schema import REVISIONS, VERSION_TABLE
from headrace.cli.main import SECTIONS, app, hoist
from headrace.cli.verbs.options import stream_tables

VERBS = sorted(app.commands)


def test_every_verb_is_there_and_in_the_help(run: Run) -> None:
    wanted = "alter completion create demo deploy diamonds doctor drain drop events explain functions fuse gate graph "
    wanted += "history init key lineage maintain move-catalog pause refresh repair resume run serve show-create sink "
    wanted += "source sql status validate verify watermark web"
    assert wanted.split() == VERBS
    assert sorted(verb.name or "" for _, verbs in SECTIONS for verb in verbs) == VERBS
    text = run("--help").output
    assert all(f"\n  {verb} " in text for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb_shows_an_example(run: Run, verb: str) -> None:
    result = run(verb, "--help")
    assert result.exit_code == 0
    assert f"  headrace {verb}" in result.output
    assert "\b" not in result.output


@pytest.mark.parametrize(
    ("args", "sorted_args"),
    [
        (["status", "--json"], ["--json", "status"]),
        (["status", "-p", "x", "-q"], ["-p", "x", "--quiet", "status"]),
        (["status", "--project=x"], ["--project=x", "status"]),
        (["sql", "--", "--json"], ["sql", "--", "--json"]),
        (["status", "--project"], ["--project", "status"]),
    ],
)
def test_global_options_stand_anywhere(args: list[str], sorted_args: list[str]) -> None:
    assert hoist(args) == sorted_args


def test_a_new_project_answers_everything_that_needs_no_spark(run: Run, project: Path) -> None:
    assert "There are no stream tables yet" in run("status", "-p", project).output
    assert run("status", "-p", project, "--json").stdout == "[]\n"
    assert run("history", "-p", project).output == "Nothing was refreshed yet.\n"
    assert run("history", "--json", "-p", project).stdout == "[]\n"
    assert run("graph", "-p", project).exit_code == 0
    assert json.loads(run("graph", "--format", "json", "-p", project).stdout) == {"nodes": [], "edges": []}


def test_the_nearest_project_upwards_is_taken(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = project / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert run("status").exit_code == 0
    monkeypatch.chdir(project.parent)
    monkeypatch.setenv("HEADRACE_PROJECT", str(project))
    assert run("status").exit_code == 0


@pytest.mark.parametrize("of", [".", "headrace.toml", "functions.py"])
def test_a_project_of_another_user_is_not_opened_unless_it_is_named(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    inner = project / "a"
    inner.mkdir()
    (project / "functions.py").touch()
    monkeypatch.chdir(inner)
    belongs_to_another_user(project / of, monkeypatch)
    for verb in ("status", "functions", "doctor"):
        result = run(verb, "--json")
        assert result.exit_code == 1
        error = json.loads(result.stderr)["error"]
        assert error["code"] == "PROJECT_NOT_OWNED"
        assert f"--project {project.resolve()}" in error["hint"]
    assert str(STRANGER) in error["message"]
    assert run("status", "-p", project).exit_code == 0
    monkeypatch.setenv("HEADRACE_PROJECT", "..")
    assert run("status").exit_code == 0


def test_completion_migrates_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = config.load(project).catalog_url
    with Catalog.open(url) as catalog:
        define(catalog, "a: base")
    with click.Context(app) as context:
        context.params["folder"] = project
        assert stream_tables(context, app.params[0], "") == ["s.a"]
        migrated: list[object] = []
        monkeypatch.setattr("headrace.catalog.opening._upgrade", lambda *_: migrated.append(1))
        with sqlite3.connect(project / "headrace.db") as database:
            database.execute(f"UPDATE {VERSION_TABLE} SET version_num = ?", (REVISIONS[-2],))
        assert stream_tables(context, app.params[0], "") == []
    assert not migrated


def test_init_says_what_it_made(run: Run, tmp_path: Path) -> None:
    result = run("init", tmp_path / "new")
    assert result.exit_code == 0
    assert str(tmp_path / "new") in result.output
    assert json.loads(run("init", tmp_path / "newer", "--json").stdout)["project"] == str(tmp_path / "newer")
    assert run("init", tmp_path / "newest", "-q").output == ""


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["status", "--nonsense"], "No such option"),
        (["create"], "Missing argument 'NAME'"),
        (["create", "shop.a"], "The query is missing"),
        (["create", "shop.a", "   "], "The query is missing"),
        (["create", "shop.a", "SELECT 1", "-f", "x.sql"], "not both"),
        (["create", "shop.a", "-f", "nowhere.sql"], "nowhere.sql cannot be read: No such file"),
        (["create", "shop.a", "SELECT 1", "--mode", "SOMETIMES"], "'SOMETIMES' is not one of"),
        (["create", "shop.a", "SELECT 1", "--set", "pool"], "'pool' is no KEY=VALUE"),
        (["alter", "shop.a"], "Nothing to change"),
        (["alter", "shop.a", "--set", "pool=a", "--set", "pool=b"], "pool is given twice"),
        (["alter", "shop.a", "-s", "1 minute", "--no-schedule"], "contradict"),
        (["sql", ""], "There is no statement to run"),
        (["sql", "SELECT 1", "-f", "x.sql"], "not both"),
        (["sql", "-f", "nowhere.sql"], "cannot be read"),
        (["history", "-n", "0"], "0 is not in the range"),
        (["graph", "--format", "png"], "'png' is not one of"),
        (["maintain", "--older-than", "soon"], "'soon' is no age"),
        (["demo", "--scale", "0"], "not in the range"),
        (["explain"], "Missing argument"),
        (["validate"], "The query is missing"),
        (["validate", "SELECT 1", "-f", "x.sql"], "not both"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_why(run: Run, args: list[str], said: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout == ""


def test_a_file_that_is_no_text_is_wrong_usage(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.sql").write_bytes(b"\xff\xfe\x00")
    result = run("create", "shop.a", "-f", tmp_path / "x.sql")
    assert result.exit_code == 2
    assert "is not UTF-8 text" in result.stderr


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_mark_before_utf_8_is_no_part_of_a_query(run: Run, project: Path, tmp_path: Path, mark: bytes) -> None:
    (tmp_path / "x.sql").write_bytes(mark + b"SELECT a\nFROM t WHERE (b = 1\n")
    assert "2 | FROM t WHERE (b = 1" in run("validate", "-f", tmp_path / "x.sql", "-p", project).stderr
    text = mark.decode() + "SELECT a FROM t WHERE (b = 1"
    assert "1 | SELECT a" in run("validate", "-", "-p", project, stdin=text).stderr


def test_empty_stdin_is_wrong_usage(run: Run) -> None:
    assert run("sql", stdin=" \n").exit_code == 2
    assert run("create", "shop.a", "-", stdin="").exit_code == 2


@pytest.mark.parametrize("name", ["shop.", "a b.c", ".x", "`open.x"])
def test_a_name_that_is_none_is_an_error(run: Run, project: Path, name: str) -> None:
    result = run("drop", name, "-p", project)
    assert result.exit_code == 1
    assert "[INVALID_NAME]" in result.stderr


def test_validate_finds_a_syntax_error_without_spark(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.api.session.LazySpark.session", lambda _: pytest.fail("Spark was started"))
    result = run("validate", "-", "-p", project, stdin="SELECT a\nFROM t WHERE (b = 1\n")
    assert result.exit_code == 1
    assert "[SYNTAX_ERROR]" in result.stderr
    assert "2 | FROM t WHERE (b = 1\n                 ^" in result.stderr
    file = project / "q.sql"
    file.write_text("SELECT a FROM t VERSION AS OF 3")
    assert "[TIME_TRAVEL_SOURCE]" in run("validate", "-f", file, "-p", project).stderr


def test_an_unknown_stream_table_is_an_error(run: Run, project: Path) -> None:
    named = (["drop"], ["status"], ["history"], ["alter", "--mode", "FULL"])
    for verb in ([first, "shop.nothing", *rest] for first, *rest in named):
        result = run(*verb, "-p", project)
        assert (result.exit_code, result.stdout) == (1, ""), result.output
        assert "[STREAM_TABLE_NOT_FOUND]" in result.stderr
    assert run("drop", "shop.nothing", "--if-exists", "-p", project).output == "There was none.\n"


def test_a_defect_is_one_line_and_its_trace_goes_to_a_file(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr("headrace.api.inspecting.InspectVerbs.status", broken)
    result = run("status", "-p", project)
    assert result.exit_code == 1
    (file,) = (project / ".headrace" / "log").iterdir()
    assert (
        result.stderr == f"Error: internal error: RuntimeError: first line  [INTERNAL_ERROR]; the trace is in {file}\n"
    )
    assert "in broken" in file.read_text()
    error = json.loads(run("status", "-p", project, "--json").stderr)["error"]
    assert error["code"] == "INTERNAL_ERROR"
    assert Path(error["log"]).is_file()
    assert Path(error["log"]).stat().st_mode & 0o777 == 0o600, "errors show values"
    monkeypatch.setattr("headrace.cli.failures.MOST_TRACES", 1)
    run("status", "-p", project)
    (newest,) = (project / ".headrace" / "log").iterdir()
    assert newest.name > Path(error["log"]).name

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    result = run("status", "-p", project)
    assert (result.exit_code, type(result.exception)) == (1, SystemExit)
    assert result.stderr.endswith("first line  [INTERNAL_ERROR]; its trace could not be written anywhere\n")
    assert json.loads(run("status", "-p", project, "--json").stderr)["error"]["log"] is None
