"""Kinds of sources: what is above `sources` goes through the registry, so that a new kind is a module and a line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from catalog_kit.ready import ready_project
from click.testing import CliRunner
from kit.folder_kind import DOOMED, FOLDER, MARK
from kit.house import NoSpark
from kit.one_statement import parse_statement

from headrace.api.database_sources import Sources
from headrace.api.facade import Headrace
from headrace.catalog import Mirror, Publication, SourceMove, SourceStatus
from headrace.cli.main import app
from headrace.config import load
from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.events import Event, SlotRunningOut
from headrace.landing import source_watch
from headrace.names import TableName
from headrace.sources import registry
from headrace.sources.source_kind import SourceRequest
from headrace.statements.parsed_statements import CreateSource


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line that a new kind needs."""
    monkeypatch.setattr(registry, "KINDS", (*registry.KINDS, FOLDER))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "orders.csv").write_text("id:bigint;region:string\n1;EU\n2;US\n")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return ready_project(tmp_path / "shop").root


@pytest.fixture
def hr(root: Path) -> Headrace:
    return Headrace(load(root))


@pytest.fixture
def captured(hr: Headrace, folder: Path) -> Headrace:
    """A project with a source that was landed: what a landing writes needs Spark, and `tests/pipeline` has it."""
    options = FOLDER.options("shop", SourceRequest(str(folder), ("orders",), {"delimiter": ";"}))
    name = TableName("lake", ("shop",), "orders")
    hr._catalog.create_source("shop", FOLDER.name, options, [Mirror(name, name)])
    with hr._catalog.reading() as reader:
        landing = FOLDER.open_capture(reader.source("shop"), "", lambda _: None).begin()
    hr._catalog.publish(Publication(sources=(SourceMove("shop", None, landing.position, (), True),)))
    return hr


def test_the_registry_is_cheap_to_import() -> None:
    """Commands that only read the catalog import it, and answer within half a second."""
    heavy = ("psycopg", "pyarrow", "numpy", "sqlalchemy", "pyspark", "pyiceberg")
    code = f"import sys, headrace.sources.registry; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_a_kind_reads_its_own_statement() -> None:
    found = parse_statement("CREATE SOURCE s FROM FOLDER '/a' TABLES (orders AS o, b) DELIMITER ';'")
    assert isinstance(found, CreateSource)
    wanted = SourceRequest("/a", ("orders AS o", "b"), {"delimiter": ";"})
    assert (found.name, found.kind, found.request) == ("s", "folder", wanted)


@pytest.mark.parametrize(
    ("sql", "message", "form"),
    [
        ("CREATE SOURCE s FROM NOWHERE 'a'", "POSTGRES or FOLDER was expected here", "FROM POSTGRES"),
        ("CREATE SOURCE s FROM FOLDER '/a' (b)", "TABLES was expected here", "FROM FOLDER '/path'"),
        ("CREATE SOURCE s FROM FOLDER '/a' TABLES (b) WITH (c = 1)", "should end here", "FROM FOLDER '/path'"),
        ("CREATE SOURCE s FROM POSTGRES 'a' TABLES (b) DELIMITER ';'", "should end here", "FROM POSTGRES"),
    ],
)
def test_errors_show_the_form_of_the_kind(sql: str, message: str, form: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        parse_statement(sql)
    assert form in str(caught.value.hint)


def test_creating_goes_through_the_kind(hr: Headrace, folder: Path) -> None:
    """As far as no Spark is needed: what was installed is there when it is, and gone when creating fails."""
    seen: list[bool] = []
    lazy: Any = NoSpark(lambda: seen.append((folder / MARK).exists()))
    sources = Sources(hr._catalog, lazy, hr.events, hr.settings)
    with pytest.raises(EnvironmentFault, match="SPARK_LOST"):
        sources.create("shop", str(folder), ["orders"], kind="folder", options={"delimiter": ";"})
    assert (seen, (folder / MARK).exists(), sources.list()) == ([True], False, ())


def test_options_are_those_of_the_kind(hr: Headrace, folder: Path) -> None:
    with pytest.raises(UserError, match="INVALID_OPTION"):
        hr.sources.create("shop", str(folder), ["orders"], kind="folder", failover=True)
    with pytest.raises(UserError, match="INVALID_OPTION"):
        hr.sources.create("shop", "service=x", ["orders"], options={"delimiter": ";"})
    with pytest.raises(UserError, match="SOURCE_KIND_UNKNOWN"):
        hr.sources.create("shop", "service=x", ["orders"], kind="nowhere")


def test_lists_and_status_speak_as_the_kind_does(captured: Headrace, root: Path, folder: Path) -> None:
    (info,) = captured.sources.list()
    assert (info.kind, info.url, info.mirrors) == ("folder", str(folder), ("shop.orders",))
    assert (info.position or "").startswith("orders@")
    assert captured.sources.status("shop").waiting_files == 0
    (folder / "orders.csv").write_text("id:bigint;region:string\n")
    found = captured.sources.status("shop")
    assert (found.status, found.waiting_files, found.marked) == (SourceStatus.ACTIVE, 1, True)
    with pytest.raises(AttributeError, match="lag_bytes"):
        _ = found.lag_bytes
    run = ["--project", str(root), "source", "status", "shop"]
    shown = json.loads(CliRunner().invoke(app, [*run, "--json"]).stdout)
    assert (shown["name"], shown["waiting_files"], shown["last_error"]) == ("shop", 1, None)
    assert "figures" not in shown
    (folder / MARK).unlink()
    text = CliRunner().invoke(app, run).output
    assert [word in text for word in ("1 wait", "Mark", "missing", "Slot", "log")] == [True, True, True, False, False]


def test_checks_are_those_of_the_kind(root: Path, folder: Path) -> None:
    run = ["--project", str(root), "source", "check", str(folder), "-t", "orders", "-t", "items", "--json"]
    hr = Headrace(load(root))
    assert [(c.name, c.ok) for c in hr.sources.check(str(folder), ["orders", "items"], kind="folder")] == [
        ("orders", True),
        ("items", False),
    ]
    refused = CliRunner().invoke(app, [*run, "--kind", "nowhere"])
    assert (refused.exit_code, "postgres" in refused.output) == (2, True)


def test_what_runs_out_is_told_in_the_words_of_the_kind(
    captured: Headrace, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_watch, "EVERY", 0.0)
    told: list[Event] = []
    captured.events.subscribe(told.append)
    captured.sources.land("shop")
    (folder / DOOMED).write_text("60")
    captured.sources.land("shop")
    captured.sources.land("shop")
    (event,) = (e for e in told if isinstance(e, SlotRunningOut))
    assert (event.slot, event.seconds, event.reason) == (str(folder), 60.0, "somebody is going to empty it")


def test_errors_of_the_kind_stop_a_source(captured: Headrace, folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    with pytest.raises(HeadraceError, match="FOLDER_GONE"):
        captured.sources.land("shop")
    (info,) = captured.sources.list()
    assert info.status is SourceStatus.STOPPED


def test_tables_go_as_the_kind_names_them(captured: Headrace, folder: Path) -> None:
    with pytest.raises(UserError, match="SOURCE_TABLE_UNKNOWN"):
        captured.sources.drop_tables("shop", ["items"])
    with pytest.raises(UserError, match="SOURCE_WITHOUT_TABLES"):
        captured.sql("ALTER SOURCE shop DROP TABLES (orders)")
    assert (captured.sql("DROP SOURCE shop"), captured.sources.list()) == (("shop.orders",), ())
    assert not (folder / MARK).exists()


def test_a_declared_source_names_its_kind(captured: Headrace, root: Path, folder: Path) -> None:
    def declare(text: str) -> None:
        (root / "headrace.toml").write_text(f'[sources.shop]\nkind = "folder"\nurl = "{folder}"\n{text}\n')

    def steps() -> list[tuple[str, tuple[str, ...]]]:
        return [(s.action, s.tables) for s in Headrace(load(root)).sources.apply(dry_run=True)]

    declare('tables = ["orders"]\ndelimiter = ";"')
    assert load(root).sources["shop"].options == {"delimiter": ";"}
    assert steps() == [("nothing", ())]
    declare('tables = ["orders", "items"]')
    assert steps() == [("add tables", ("items",))]
    (root / "headrace.toml").write_text('[sources.shop]\nurl = "service=x"\ntables = ["orders"]\n')
    with pytest.raises(UserError, match="SOURCE_DIFFERS"):
        steps()


def test_a_source_of_a_kind_that_is_gone_is_told(captured: Headrace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "KINDS", registry.KINDS[:1])
    with pytest.raises(UserError, match="SOURCE_KIND_UNKNOWN") as caught:
        captured.sources.status("shop")
    assert "postgres" in str(caught.value.hint)
