"""A project whose folder was moved or copied is refused, naming the old place, before anything is written there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

import headrace
from headrace.catalog import schema as t
from headrace.cli.main import app
from headrace.errors import UserError
from headrace.project.moved_project import former_root
from headrace.project.new_project import init_project


def with_a_table(folder: Path, prefix: str = "") -> Path:
    """Return a project that has a table, as its catalog tells."""
    settings = init_project(folder)
    file = folder / "warehouse/shop/orders/metadata/00000.metadata.json"
    file.parent.mkdir(parents=True)
    file.touch()
    engine = sa.create_engine(settings.catalog_url)
    row = {"catalog_name": "lake", "table_namespace": "shop", "table_name": "orders", "iceberg_type": "TABLE"}
    with engine.begin() as connection:
        connection.execute(sa.insert(t.iceberg_tables).values(**row, metadata_location=f"{prefix}{file}"))
    engine.dispose()
    return folder


def refused(folder: Path) -> UserError:
    with pytest.raises(UserError) as caught:
        headrace.open(folder)
    return caught.value


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_a_moved_project_is_refused_until_its_old_name_leads_to_it(tmp_path: Path, prefix: str) -> None:
    old, new = with_a_table(tmp_path / "old", prefix), tmp_path / "new"
    headrace.open(old).close()
    old.rename(new)
    error = refused(new)
    assert error.code == "PROJECT_MOVED"
    assert str(old) in error.message
    assert str(error.hint).partition(". ")[0].endswith(f"ln -s {new} {old}")
    old.symlink_to(new)
    headrace.open(new).close()
    headrace.open(old).close()


def test_a_copy_is_refused_and_the_original_opens(tmp_path: Path) -> None:
    original = with_a_table(tmp_path / "original")
    shutil.copytree(original, tmp_path / "copy")
    error = refused(tmp_path / "copy")
    assert error.code == "PROJECT_COPIED"
    assert str(original) in error.message
    headrace.open(original).close()


@pytest.mark.parametrize("command", [["status"], ["refresh"], ["sql", "SELECT 1"], ["doctor"]])
def test_every_command_says_so(tmp_path: Path, command: list[str]) -> None:
    with_a_table(tmp_path / "old").rename(tmp_path / "new")
    done = CliRunner().invoke(app, ["--project", str(tmp_path / "new"), *command])
    assert done.exit_code != 0
    assert "PROJECT_MOVED" in done.output
    assert not (tmp_path / "old").exists()


def test_tables_elsewhere_are_no_sign_of_a_move(tmp_path: Path) -> None:
    project = with_a_table(tmp_path / "project")
    far = tmp_path / "far/warehouse/shop/orders/metadata/00000.metadata.json"
    far.parent.mkdir(parents=True)
    far.touch()
    engine = sa.create_engine(f"sqlite:///{project / 'headrace.db'}")
    with engine.begin() as connection:
        connection.execute(sa.update(t.iceberg_tables).values(metadata_location=str(far)))
    engine.dispose()
    headrace.open(project).close()  # somebody had the warehouse there before
    assert former_root("/data/lake/shop/orders/metadata/1.json", Path("warehouse")) is None
