"""A copy of a catalog's SQLite file can be looked at while the original is there; a file that was moved works."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from catalog_kit.databases import sql
from catalog_kit.samples import ORDERS, REVENUE, TTL, create, see

from headrace.catalog import Catalog, resource_of
from headrace.errors import UserError


def at(file: Path) -> str:
    return f"sqlite:///{file}"


def works(file: Path) -> bool:
    """Whether a catalog lets its tables be leased; what it says of itself agrees."""
    with Catalog.open(at(file), create=False) as catalog:
        assert catalog.stream_table(REVENUE).sources == (ORDERS,)
        if (copied := catalog.copied()) is None:
            catalog.release(catalog.acquire([resource_of(REVENUE)], "me:1:x", TTL))
        else:
            with pytest.raises(UserError, match="CATALOG_COPIED") as caught:
                catalog.acquire([resource_of(REVENUE)], "me:1:x", TTL)
            assert caught.value.message == copied.message
    return copied is None


@pytest.fixture
def original(tmp_path: Path) -> Path:
    file = tmp_path / "original.db"
    with Catalog.open(at(file)) as catalog:
        see(catalog, ORDERS, 1)
        create(catalog)
    assert works(file)
    return file


def test_a_copy_is_looked_at_until_the_original_is_gone(original: Path, tmp_path: Path) -> None:
    copy = tmp_path / "co'py ü.db"
    shutil.copy(original, copy)
    assert (works(copy), works(original)) == (False, True)
    original.unlink()
    assert works(copy)
    further = tmp_path / "further.db"
    shutil.copy(copy, further)
    assert (works(further), works(copy)) == (False, True)


def test_a_copy_that_is_confirmed_works_and_the_original_goes_on(original: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    shutil.copy(original, copy)
    with Catalog.open(at(copy)) as catalog:
        former, found = catalog.confirm_database(dry_run=True)
        assert catalog.copied() is not None
        assert (str(former).endswith(str(original)), str(found).endswith(str(copy))) == (True, True)
        catalog.confirm_database()
        assert catalog.copied() is None
        assert len(set(catalog.confirm_database())) == 1
    assert (works(copy), works(original)) == (True, True)


def test_moved_linked_and_restored_files_work(original: Path, tmp_path: Path) -> None:
    backup, moved, link = tmp_path / "backup.db", tmp_path / "moved.db", tmp_path / "link.db"
    shutil.copy(original, backup)
    link.symlink_to(original)
    assert works(link)
    shutil.copy(backup, original)
    assert works(original)
    original.rename(moved)
    assert works(moved)


def test_another_project_where_the_former_file_was_is_no_original(original: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved.db"
    original.rename(moved)
    with Catalog.open(at(original)) as catalog:
        see(catalog, ORDERS, 1)
        create(catalog)
    assert (works(moved), works(original)) == (True, True)
    copy = tmp_path / "copy.db"
    shutil.copy(moved, copy)
    assert (works(copy), works(moved)) == (False, True)
    original.write_text("no database")
    assert (works(copy), works(moved)) == (False, True)


def test_a_catalog_of_before_learns_its_file_when_it_works(original: Path, tmp_path: Path) -> None:
    with sql(at(original)) as connection:
        connection.exec_driver_sql("DELETE FROM hr_own_database")
    copy = tmp_path / "copy.db"
    shutil.copy(original, copy)
    assert works(original)
    assert works(copy)  # it was made before
    shutil.copy(original, copy)
    assert not works(copy)
