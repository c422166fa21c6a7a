"""Texts of views, with the names in them written in full."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sqlalchemy as sa
from catalog_kit.databases import sql
from catalog_kit.iceberg import Iceberg

from headrace.api.facade import Headrace
from headrace.catalog import Catalog
from headrace.config import load
from headrace.errors import UserError
from headrace.names import LAKE, TableName
from headrace.refresh.cut.pinned_state import PinnedState
from headrace.refresh.definition.catalog_views import CatalogViews
from headrace.refresh.definition.early_checks import check_query

VIEW = TableName(LAKE, ("shop",), "v")
KNOWN = frozenset({LAKE, "other"})


EACH = "SELECT a FROM t, n.u, lake.n.w"
"""Names of one, two and three parts."""


def catalog_with_a_view(root: Path, default_catalog: str | None, text: str = EACH) -> Catalog:
    """A catalog with a view of a text."""
    version = {
        "version-id": 1,
        "schema-id": 0,
        "default-namespace": ["shop"],
        "representations": [{"type": "sql", "dialect": "spark", "sql": text}],
    }
    version |= {} if default_catalog is None else {"default-catalog": default_catalog}
    schema = {"schema-id": 0, "type": "struct", "fields": [{"id": 1, "name": "a", "required": False, "type": "int"}]}
    metadata = {"current-version-id": 1, "versions": [version], "schemas": [schema]}
    (root / "v1.metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    url = f"sqlite:///{root / 'headrace.db'}"
    catalog = Catalog.open(url)
    Iceberg(url).commit(VIEW, str(root / "v1.metadata.json"), catalog=LAKE)
    with sql(url) as connection:
        connection.execute(sa.text("UPDATE iceberg_tables SET iceberg_type = 'VIEW'"))
    return catalog


@pytest.mark.parametrize(("written", "meant"), [(None, LAKE), (LAKE, LAKE), ("other", "other"), ("unknown", LAKE)])
def test_names_in_a_view_are_of_its_default_catalog(tmp_path: Path, written: str | None, meant: str) -> None:
    catalog = catalog_with_a_view(tmp_path, written)
    text = CatalogViews(catalog, KNOWN).text(VIEW)
    catalog.close()
    assert text is not None
    assert f"FROM `{meant}`.`shop`.`t`, `{meant}`.`n`.`u`, `lake`.`n`.`w`" in text


@pytest.mark.parametrize(("written", "refused"), [(None, True), ("of_spark", False)])
def test_a_query_over_a_view_is_refused_before_spark_runs_where_its_names_are_known(
    tmp_path: Path, written: str | None, refused: bool
) -> None:
    """Whether there is a catalog that the project's settings do not name is known to Spark alone."""
    catalog = catalog_with_a_view(tmp_path, written, "SELECT a FROM t")
    (tmp_path / "headrace.toml").write_text("[headrace]\n", encoding="utf-8")
    with Headrace(load(tmp_path), create=False) as project:
        session = project._lazy
        if refused:
            with pytest.raises(UserError, match="TABLE_NOT_FOUND"):
                check_query("SELECT a FROM shop.v", catalog, session)
        else:
            check_query("SELECT a FROM shop.v", catalog, session)
        assert not session.started
    catalog.close()


def test_a_view_of_another_catalog_is_not_read_pinned(tmp_path: Path) -> None:
    catalog = catalog_with_a_view(tmp_path, "other", "SELECT a FROM t")
    with pytest.raises(UserError, match="NOT_PINNABLE") as error:
        PinnedState(catalog).sql("SELECT * FROM shop.v", (), KNOWN)
    catalog.close()
    assert "other" in error.value.message
