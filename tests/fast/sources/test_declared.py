"""Sources that headrace.toml declares: how they are read, and what makes sources what they are declared to be."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest
from catalog_kit.ready import ready_project
from click.testing import CliRunner

from headrace.catalog import DatabaseSource, SourceStatus
from headrace.cli.main import app
from headrace.config import DeclaredSource, load
from headrace.errors import UserError
from headrace.project.declared_sources import steps
from headrace.sources.postgres.setup.open_capture import options_of
from headrace.sources.postgres.setup.projection import Part

TABLES = ("public.orders", "customers COLUMNS (id, name) WHERE (id > 0) AS people")


def existing(url: str = "env:SHOP") -> DatabaseSource:
    names = {"orders": ("public", "orders"), "people": ("public", "customers")}
    options = options_of(
        "shop", "service=x", names, ["public.orders.until"], {"people": Part(("id", "name"), "id > 0")}
    )
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    kept = json.loads(json.dumps({**options, "url": url}))
    return DatabaseSource("shop", "postgres", kept, {}, SourceStatus.ACTIVE, None, None, None, now, ())


def declared(*tables: str, url: str = "env:SHOP", text: str = "public.orders.until") -> dict[str, DeclaredSource]:
    return {"shop": DeclaredSource(url, tables, (text,))}


def test_what_is_missing_is_made() -> None:
    def acts(*tables: str, prune: bool = False) -> list[tuple[str, tuple[str, ...]]]:
        return [(s.action, s.tables) for s in steps(declared(*tables), [existing()], prune=prune)]

    assert [s.action for s in steps(declared(*TABLES), [])] == ["create"]
    assert acts(*TABLES) == [("nothing", ())]
    assert acts(*TABLES, "a.items AS things") == [("add tables", ("a.items AS things",))]
    assert acts(TABLES[0]) == [("undeclared", ("people",))]
    assert acts(TABLES[0], "new", prune=True) == [("add tables", ("new",)), ("drop tables", ("people",))]
    assert steps({}, [existing()], prune=True) == ()


@pytest.mark.parametrize(
    "wanted",
    [
        declared(*TABLES, url="env:OTHER"),
        declared("other.orders", TABLES[1]),
        declared("orders", "customers COLUMNS (id) WHERE (id > 0) AS people"),
        declared("orders", "customers COLUMNS (id, name) WHERE (id > 1) AS people"),
        declared(*TABLES, text="public.orders.since"),
        declared("orders COLUMNS (id)", TABLES[1]),
        declared("orders AS purchases", TABLES[1]),
        {"shop": DeclaredSource("env:SHOP", TABLES, ("public.orders.until",), "auto")},
    ],
)
def test_what_is_something_else_is_refused(wanted: dict[str, DeclaredSource]) -> None:
    with pytest.raises(UserError, match="SOURCE_DIFFERS"):
        steps(wanted, [existing()])


def project(folder: Path, text: str) -> Path:
    ready_project(folder)
    with (folder / "headrace.toml").open("a", encoding="utf-8") as file:
        file.write(text)
    return folder


def test_they_are_read_from_the_file(tmp_path: Path) -> None:
    shop = '\n[sources.shop]\nurl_env = "SHOP"\ntables = ["orders"]\n'
    crm = '[sources.crm]\nurl = "service=crm"\ntables = ["a.b"]\ncapture = "auto"\n'
    found = load(project(tmp_path / "p", shop + crm)).sources
    assert found == {
        "shop": DeclaredSource("env:SHOP", ("orders",)),
        "crm": DeclaredSource("service=crm", ("a.b",), capture="auto"),
    }


@pytest.mark.parametrize(
    "text",
    [
        'tables = ["orders"]',
        'url = "service=x"',
        'url = "service=x"\nurl_env = "X"\ntables = ["orders"]',
        'url = "service=x"\ntables = []',
        'url = "service=x"\ntables = [1]',
        'url = "service=x"\ntables = "orders"',
        'url = "service=x"\ntables = ["orders"]\ncolour = "red"',
        'url = "service=x"\ntables = ["orders"]\ncapture = "magic"',
    ],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match="CONFIG_INVALID"):
        load(project(tmp_path / "p", f"\n[sources.shop]\n{text}\n"))


def test_a_source_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="CONFIG_INVALID"):
        load(project(tmp_path / "p", '\n[sources]\nshop = "postgresql://x"\n'))


def test_the_command_says_what_it_would_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*arguments: str) -> object:
        return CliRunner().invoke(app, ["--project", str(tmp_path / "p"), "source", "apply", *arguments])

    project(tmp_path / "p", '\n[sources.shop]\nurl_env = "NOT_SET_HERE"\ntables = ["orders"]\n')
    planned = run("--dry-run", "--json")
    assert json.loads(planned.stdout) == [{"source": "shop", "action": "create", "tables": ["orders"]}]
    refused = run()
    assert (refused.exit_code, "SOURCE_URL_INVALID" in refused.output) == (1, True)
    monkeypatch.setenv("NOT_SET_HERE", "postgresql://reader:secret@127.0.0.1:9/shop")
    refused = run()
    assert ("SOURCE_UNREACHABLE" in refused.output, "secret" in refused.output) == (True, False)
    monkeypatch.setenv("NOT_SET_HERE", "postgresql://reader:secret@[/shop")
    refused = run()
    assert ("SOURCE_URL_INVALID" in refused.output, "secret" in refused.output) == (True, False)
    assert b"secret" not in b"".join(f.read_bytes() for f in (tmp_path / "p").rglob("*") if f.is_file())


def test_no_sources_are_declared(tmp_path: Path) -> None:
    ready_project(tmp_path / "p")
    result = CliRunner().invoke(app, ["--project", str(tmp_path / "p"), "source", "apply"])
    assert (result.exit_code, "declares no sources" in result.output) == (0, True)
