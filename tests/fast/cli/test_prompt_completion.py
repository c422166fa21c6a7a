"""Completion at the prompt: names and columns as they are now, without Spark."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from kit.stored_project import StoredProject
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from headrace.cli.invocation import Invocation
from headrace.cli.main import app
from headrace.cli.prompt.completion import PromptCompleter
from headrace.cli.prompt.dispatch import Dispatch
from headrace.cli.prompt.known_names import KnownNames
from headrace.cli.prompt.switches import Switches

CUSTOMERS = pa.schema([("id", pa.int64()), ("full name", pa.string()), ("region", pa.string())])


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredProject]:
    """A project with `shop.orders (k)`, stream table `shop.s (k)` over it, and `crm.customers`."""
    project = StoredProject(tmp_path_factory.mktemp("completion") / "shop")
    project.source()
    project.stream_table("s")
    project.lake.create_namespace("crm")
    project.lake.create_table("crm.customers", schema=CUSTOMERS)
    yield project
    project.close()


@pytest.fixture
def names(stored: StoredProject) -> KnownNames:
    return KnownNames(stored.hr)


def offered(stored: StoredProject, names: KnownNames, text: str) -> list[str]:
    """Whole texts that `text` can become; `|` is the cursor, the end without one."""
    before, _, after = text.partition("|")
    document = Document(before + after, len(before))
    caller = Dispatch(Invocation(stored.root), stored.hr, app, Switches()).caller
    found = PromptCompleter(names, app, caller).get_completions(document, CompleteEvent(completion_requested=True))
    return [before[: len(before) + each.start_position] + each.text for each in found]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("stat", ["status"]),
        ("sho", ["show-create", "show"]),
        ("SHO", ["show-create", "SHOW"]),
        ("SELECT 1; his", ["SELECT 1; history"]),
        ("status; his", ["status; history"]),
        ("hel", ["help"]),
        ("help his", ["help history"]),
        ("\\ti", ["\\timing"]),
        ("\\timing o", ["\\timing on", "\\timing off"]),
        ("\\pset p", ["\\pset pager"]),
        ("\\pset pager of", ["\\pset pager off"]),
        ("explain --pa", ["explain --passes"]),
        ("explain --mode F", ["explain --mode full"]),
        ("source dr", ["source drop", "source drop-shard", "source drop-tables"]),
        ("headrace his", ["headrace history"]),
        ("refresh sh", ["refresh shop.s"]),
        ("key declare crm", ["key declare crm.customers"]),
        ("SELECT * FROM cr", ["SELECT * FROM crm.customers"]),
        ("SELECT * FROM cust", ["SELECT * FROM crm.customers"]),
        ("SELECT * FROM shop.", ["SELECT * FROM shop.orders", "SELECT * FROM shop.s"]),
        ("SELECT re| FROM crm.customers", ["SELECT region", "SELECT replace"]),
        ("SELECT c.re| FROM crm.customers c", ["SELECT c.region"]),
        ("SELECT c.f| FROM shop.s, crm.customers AS c", ["SELECT c.`full name`"]),
        ("SELECT customers.i| FROM crm.customers", ["SELECT customers.id"]),
        ("SELECT crm.customers.i| FROM crm.customers", ["SELECT crm.customers.id"]),
        ("SELECT 1 FROM crm.customers wh", ["SELECT 1 FROM crm.customers when", "SELECT 1 FROM crm.customers where"]),
        ("SELECT 1 FROM crm.customers WHER", ["SELECT 1 FROM crm.customers WHERE"]),
        ("UPDATE crm.customers SET reg", ["UPDATE crm.customers SET region"]),
        ('create shop.x "SELECT region FROM cr', ['create shop.x "SELECT region FROM crm.customers']),
        ('validate "SELECT reg| FROM crm.customers"', ['validate "SELECT region']),
        ("SELECT x.| FROM no.such_table x", []),
        ("SELECT 'it is cust", []),
    ],
)
def test_what_is_offered(stored: StoredProject, names: KnownNames, text: str, whole: list[str]) -> None:
    assert offered(stored, names, text) == whole


def test_files_are_offered_for_output_and_queries(stored: StoredProject, names: KnownNames, tmp_path: Path) -> None:
    (tmp_path / "revenue.sql").touch()
    assert offered(stored, names, f"\\o {tmp_path}/rev") == [f"\\o {tmp_path}/revenue.sql"]
    assert offered(stored, names, f"create shop.x -f {tmp_path}/rev") == [f"create shop.x -f {tmp_path}/revenue.sql"]


def test_what_headrace_keeps_beside_tables_is_not_offered(names: KnownNames) -> None:
    assert names.tables() == ("crm.customers", "shop.orders", "shop.s")


def test_names_are_as_they_are_now(stored: StoredProject) -> None:
    now = 0.0
    names = KnownNames(stored.hr, lambda: now)
    assert "crm.late" not in names.tables()
    stored.lake.create_table("crm.late", schema=CUSTOMERS)
    assert "crm.late" not in names.tables(), "not looked for at every key"
    names.forget()
    assert "crm.late" in names.tables(), "a statement was run"
    assert names.columns("crm.late") == ("id", "full name", "region")
    stored.lake.drop_table("crm.late")
    now = 3.0
    assert "crm.late" not in names.tables(), "somebody else dropped it"
    assert names.columns("crm.late") == ()
    assert not stored.hr._lazy.started


def test_a_catalog_that_does_not_answer_is_not_mentioned(
    stored: StoredProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    names = KnownNames(stored.hr, lambda: now)
    known = names.tables()
    now = 3.0
    monkeypatch.setattr(stored.hr, "relations", lambda: 1 / 0)
    assert names.tables() == known
