"""Making a project."""

import os
from pathlib import Path

import pytest

import headrace
from headrace import config
from headrace.errors import EnvironmentFault, UserError
from headrace.project.new_project import init_project


def test_a_project_is_complete_and_opens(tmp_path: Path) -> None:
    settings = init_project(tmp_path / "a" / "shop")
    assert settings == config.load(tmp_path / "a" / "shop")
    assert Path(settings.warehouse).is_dir()
    assert (settings.root / "headrace.db").is_file()
    assert "/headrace.db*" in (settings.root / ".gitignore").read_text()
    with headrace.open(settings.root) as hr:
        assert hr.status() == ()


def test_a_folder_with_files_is_fine_and_they_stay(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("mine")
    init_project(tmp_path)
    assert (tmp_path / ".gitignore").read_text() == "mine"


def test_a_project_whose_warehouse_is_elsewhere_keeps_its_catalog_out_of_git(tmp_path: Path) -> None:
    settings = init_project(tmp_path, warehouse="s3://lake/shop")
    assert "/headrace.db*" in (settings.root / ".gitignore").read_text()


def test_a_folder_that_is_only_read_gets_its_catalog_without_a_gitignore(tmp_path: Path) -> None:
    init_project(tmp_path, warehouse="s3://lake/shop")
    (tmp_path / "headrace.db").unlink()
    (tmp_path / ".gitignore").unlink()
    (tmp_path / ".gitignore").symlink_to(tmp_path / "none" / "x")  # nobody can write it, root neither
    init_project(tmp_path)
    assert (tmp_path / "headrace.db").is_file()


def test_places_are_written_down(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/other 'quoted' \"name\".db"
    settings = init_project(tmp_path / "p", catalog_url=url, warehouse=str(tmp_path / "elsewhere"))
    assert settings.catalog_url == url
    assert settings.warehouse == str(tmp_path / "elsewhere")


def test_a_project_is_not_made_twice(tmp_path: Path) -> None:
    init_project(tmp_path)
    with pytest.raises(UserError, match="PROJECT_EXISTS"):
        init_project(tmp_path)


def test_a_lost_catalog_is_not_replaced_by_an_empty_one_unasked(tmp_path: Path) -> None:
    settings = init_project(tmp_path)
    (tmp_path / "headrace.db").unlink()
    with pytest.raises(EnvironmentFault, match="CATALOG_UNREACHABLE"):
        headrace.open(tmp_path)
    assert not (tmp_path / "headrace.db").exists()
    assert init_project(tmp_path) == settings
    assert (tmp_path / "headrace.db").is_file()
    with pytest.raises(UserError, match="PROJECT_EXISTS"):
        init_project(tmp_path)


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(EnvironmentFault, match="FOLDER_NOT_WRITABLE"):
        init_project(tmp_path / "x" / "y")


@pytest.mark.parametrize("url", ["mysql://x/y", "nonsense", "sqlite://"])
def test_a_catalog_that_cannot_be_leaves_no_half_project(tmp_path: Path, url: str) -> None:
    with pytest.raises(UserError, match="CONFIG_INVALID"):
        init_project(tmp_path, catalog_url=url)
    assert not (tmp_path / config.FILE_NAME).exists()


def test_a_warehouse_elsewhere_is_not_made(tmp_path: Path) -> None:
    settings = init_project(tmp_path, warehouse="s3a://lake/shop")
    assert settings.warehouse == "s3a://lake/shop"
    assert not any("s3a" in name for name in os.listdir(tmp_path))
