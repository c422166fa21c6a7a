"""A project that cannot be moved to a REST catalog says why, and stays what it is; what a server has is compared."""

from __future__ import annotations

import datetime as dt
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from kit.stored_project import StoredProject, with_revenue

import headrace
from headrace.cli.main import app
from headrace.config import FILE_NAME
from headrace.errors import HeadraceError
from headrace.lake.rest.standing import Standing, standing_of_table, standing_of_view
from headrace.project.doctor import examine
from headrace.project.lake_move import move_catalog as door


@pytest.fixture
def project(tmp_path: Path) -> Iterator[StoredProject]:
    with with_revenue(tmp_path / "shop") as made:
        yield made


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address at which nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


def name_server(project: StoredProject, uri: str) -> None:
    with (project.root / FILE_NAME).open("a") as file:
        file.write(f'\n[lake]\ntype = "rest"\nuri = "{uri}"\n')


def refused(project: StoredProject, **how: bool) -> HeadraceError:
    with pytest.raises(HeadraceError) as caught:
        headrace.move_catalog(project.root, **how)
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("back", [False, True])
def test_settings_must_name_a_server(project: StoredProject, back: bool) -> None:
    error = refused(project, back=back)
    assert (error.code, "[lake]" in str(error.hint)) == ("LAKE_MOVE_REFUSED", True)


def test_a_server_that_nobody_runs(project: StoredProject, nobody: str) -> None:
    name_server(project, nobody)
    assert refused(project).code == "LAKE_UNREACHABLE"
    assert refused(project, dry_run=True).code == "LAKE_UNREACHABLE"
    assert [row.damage for row in project.hr.status()] == [None]


def test_schedulers_end_first(project: StoredProject, nobody: str) -> None:
    name_server(project, nobody)
    project.hr._catalog.register_scheduler("elsewhere:1:x", dt.timedelta(minutes=1))
    error = refused(project)
    assert (error.code, "elsewhere" in error.message) == ("LAKE_MOVE_REFUSED", True)
    assert "headrace drain" in str(error.hint)


def test_deployments_are_over_first(project: StoredProject, nobody: str) -> None:
    name_server(project, nobody)
    project.hr._catalog.set_auto_promote("green", {})
    for how in (False, True):
        error = refused(project, dry_run=how)
        assert (error.code, "green" in error.message) == ("LAKE_MOVE_REFUSED", True)


def test_what_others_changed_is_repaired_first(project: StoredProject, nobody: str) -> None:
    name_server(project, nobody)
    project.append("shop.revenue")
    for how in (False, True):
        assert refused(project, dry_run=how).code == "FOREIGN_WRITER"


def test_a_refresh_that_runs_is_waited_for(
    project: StoredProject, nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_server(project, nobody)
    monkeypatch.setattr(door, "PATIENCE", 0.2)
    project.hr._catalog.acquire(["lake.shop.revenue"], "elsewhere:1:x", dt.timedelta(minutes=1))
    assert refused(project).code == "LEASE_HELD"


def test_there_is_nothing_to_move_back(project: StoredProject, nobody: str) -> None:
    name_server(project, nobody)
    assert not headrace.move_catalog(project.root, back=True).moved
    said = CliRunner().invoke(app, ["-p", str(project.root), "move-catalog", "--back"])
    assert (said.exit_code, "Nothing to move" in said.output) == (0, True)


def test_commands_and_the_doctor_name_the_way(project: StoredProject, nobody: str) -> None:
    name_server(project, nobody)
    said = CliRunner().invoke(app, ["-p", str(project.root), "status", "--json"])
    error = json.loads(said.stderr)["error"]
    assert (error["code"], "headrace move-catalog" in error["hint"]) == ("LAKE_CHANGED", True)
    (check,) = (check for check in examine(project.root) if check.name == "Lake")
    assert "LAKE_CHANGED" in check.finding
    assert "headrace move-catalog" in str(check.remedy)


# ---- comparing


def table(**more: Any) -> dict[str, Any]:
    fields = [{"id": 1, "name": "k", "required": False, "type": "long"}]
    return {
        "table-uuid": "one",
        "current-snapshot-id": 2,
        "last-sequence-number": 2,
        "snapshots": [{"snapshot-id": 1}, {"snapshot-id": 2}],
        "schemas": [{"schema-id": 0, "fields": []}, {"schema-id": 1, "fields": fields}],
        "current-schema-id": 1,
        "metadata-log": [{"metadata-file": "earlier"}],
        **more,
    }


@pytest.mark.parametrize(
    ("theirs", "location", "standing"),
    [
        (table(), "another", Standing.SAME),
        (table(properties={"a": "b"}), "another", Standing.SAME),
        (table(**{"current-snapshot-id": 1, "last-sequence-number": 1}), "another", Standing.BEHIND),
        (table(**{"current-snapshot-id": -1, "last-sequence-number": 0}), "another", Standing.BEHIND),
        (table(**{"current-schema-id": 0}), "another", Standing.BEHIND),
        (table(**{"current-snapshot-id": 9, "last-sequence-number": 9}), "earlier", Standing.BEHIND),
        (table(**{"current-snapshot-id": 9, "last-sequence-number": 3}), "another", Standing.OTHER),
        (table(schemas=[{"schema-id": 1, "fields": [{"id": 2}]}]), "another", Standing.OTHER),
        (table(**{"table-uuid": "two"}), "another", Standing.OTHER),
    ],
)
def test_a_table_in_a_server_is_compared(theirs: dict[str, Any], location: str, standing: Standing) -> None:
    assert standing_of_table(table(), theirs, location) is standing


def test_a_view_in_a_server_is_compared_by_its_text() -> None:
    def view(uuid: str, sql: str) -> dict[str, Any]:
        version = {"version-id": 1, "schema-id": 0, "representations": [{"type": "sql", "sql": sql}]}
        schemas = [{"schema-id": 0, "fields": [{"name": "k"}]}]
        return {"view-uuid": uuid, "current-version-id": 1, "versions": [version], "schemas": schemas}

    assert standing_of_view(view("one", "SELECT 1"), view("two", "SELECT 1")) is Standing.SAME
    assert standing_of_view(view("one", "SELECT 1"), view("one", "SELECT 2")) is Standing.OTHER
