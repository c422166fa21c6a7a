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
from headrace.project.new_project import init_project


def with_a_table(folder: Path, prefix: str = "") -> Path:
    """Return a project that has a table, as its catalog tells."""
    init_project(folder)
    file = folder / "warehouse/shop/orders/metadata/00000.metadata.json"
    file.parent.mkdir(parents=True)
    file.touch()
    add_table(folder, "orders", f"{prefix}{file}")
    return folder


def add_table(folder: Path, name: str, location: str, *, published: bool = False) -> None:
    """Have a project's catalog know a table, one of Headrace's own if it was published."""
    engine = sa.create_engine(f"sqlite:///{folder / 'headrace.db'}")
    row = {"table_namespace": "shop", "table_name": name, "metadata_location": location}
    with engine.begin() as connection:
        connection.execute(sa.insert(t.iceberg_tables).values(**row, catalog_name="lake", iceberg_type="TABLE"))
        if published:
            connection.execute(sa.insert(t.published).values(**row))
    engine.dispose()


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


def test_a_copy_is_refused_whatever_the_folders_above_are_called(tmp_path: Path) -> None:
    original = with_a_table(tmp_path / "warehouse/shop")
    shutil.copytree(original, tmp_path / "warehouse/shop-test")
    error = refused(tmp_path / "warehouse/shop-test")
    assert error.code == "PROJECT_COPIED"
    assert f"copy of {original}:" in error.message


def test_a_copy_is_refused_wherever_the_users_own_tables_are(tmp_path: Path) -> None:
    original = with_a_table(tmp_path / "original")
    for name in ("events", "visits"):
        file = tmp_path / f"bulk/{name}/metadata/00000.metadata.json"
        file.parent.mkdir(parents=True)
        file.touch()
        add_table(original, f"a_{name}", str(file))
    # the row that is read first, too
    engine = sa.create_engine(f"sqlite:///{original / 'headrace.db'}")
    with engine.begin() as connection:
        moved = connection.execute(sa.select(t.iceberg_tables).where(t.iceberg_tables.c.table_name == "orders")).one()
        connection.execute(sa.delete(t.iceberg_tables).where(t.iceberg_tables.c.table_name == "orders"))
        connection.execute(sa.insert(t.iceberg_tables).values(**moved._mapping))
    engine.dispose()
    headrace.open(original).close()
    shutil.copytree(original, tmp_path / "copy")
    assert refused(tmp_path / "copy").code == "PROJECT_COPIED"


def test_the_users_own_table_on_a_disk_that_is_away_is_no_sign_of_a_move(tmp_path: Path) -> None:
    project = with_a_table(tmp_path / "project")
    add_table(project, "events", str(tmp_path / "nfs/warehouse/events/metadata/00000.metadata.json"))
    headrace.open(project).close()


def test_a_table_of_another_project_is_no_sign_of_a_copy(tmp_path: Path) -> None:
    other = with_a_table(tmp_path / "other")
    (other / "warehouse/shop/orders").rename(other / "warehouse/shop/theirs")
    project = with_a_table(tmp_path / "project")
    add_table(project, "theirs", str(other / "warehouse/shop/theirs/metadata/00000.metadata.json"))
    headrace.open(project).close()


@pytest.mark.parametrize("original_stays", [True, False])
def test_one_whose_warehouse_was_left_behind_is_known_by_what_headrace_published(
    tmp_path: Path, original_stays: bool
) -> None:
    original, new = with_a_table(tmp_path / "original"), tmp_path / "new"
    file = original / "warehouse/shop/revenue/metadata/00000.metadata.json"
    file.parent.mkdir(parents=True)
    file.touch()
    add_table(original, "revenue", str(file), published=True)
    shutil.copytree(original, new, ignore=shutil.ignore_patterns("warehouse"))
    if not original_stays:
        shutil.rmtree(original)
    error = refused(new)
    assert error.code == ("PROJECT_COPIED" if original_stays else "PROJECT_MOVED")
    assert str(original) in error.message


def test_a_copy_of_a_table_that_the_original_has_rewritten_since_is_still_one(tmp_path: Path) -> None:
    original = with_a_table(tmp_path / "original")
    add_table(original, "b", str(original / "warehouse/shop/b/metadata/00000.metadata.json"))
    (original / "warehouse/shop/b/metadata").mkdir(parents=True)
    (original / "warehouse/shop/b/metadata/00000.metadata.json").touch()
    shutil.copytree(original, tmp_path / "copy")
    (original / "warehouse/shop/orders/metadata/00000.metadata.json").unlink()
    assert refused(tmp_path / "copy").code == "PROJECT_COPIED"
