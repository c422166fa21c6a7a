"""What is asked of every stream table is read from a summary, which is never another one than the details say."""

from __future__ import annotations

import json

import pytest
import sqlalchemy as sa
from catalog_kit import older
from catalog_kit.databases import sql
from catalog_kit.samples import REVENUE, TOP, create, define
from catalog_kit.stream_tables import replace_stream_table

from headrace.catalog import Catalog, Publication
from headrace.catalog.definitions import stored_details
from headrace.catalog.definitions.stored_details import SUMMARY, StoredDetails, stored_values
from headrace.errors import EnvironmentFault

OLD = {"query": "SELECT 'ü\\n'", "layout": 11, "cyclic": False, "refusals": [], "output": [["a", "int", True]]}
NEW = {"query": "SELECT 2", "layout": 12, "cyclic": True, "refusals": [{"code": "x"}], "deployment": "green"}


def summaries(url: str) -> list[tuple[dict[str, object], bool]]:
    """The summaries that are stored, and whether each would be taken for that of its details."""
    with sql(url) as connection:
        query = (
            "SELECT CAST(definition_json AS TEXT), CAST(summary_json AS TEXT), summary_checksum"
            " FROM hr_stream_table ORDER BY relation_id"
        )
        rows = connection.execute(sa.text(query)).all()
    return [(json.loads(summary), StoredDetails(text, summary, of)._summary is not None) for text, summary, of in rows]


def summary(details: dict[str, object]) -> dict[str, object]:
    return {key: details[key] for key in SUMMARY if key in details}


def test_whoever_writes_details_writes_their_summary(catalog: Catalog, url: str) -> None:
    create(catalog, REVENUE, details=OLD)
    assert summaries(url) == [(summary(OLD), True)]
    catalog.alter_stream_table(REVENUE, details=NEW)
    assert summaries(url) == [(summary(NEW), True)]
    replace_stream_table(catalog, define(REVENUE, details=OLD))
    assert summaries(url) == [(summary(OLD), True)]
    several = (define(REVENUE, details=NEW), define(TOP, REVENUE, details=OLD))
    catalog.publish(Publication(definitions=several))
    assert summaries(url) == [(summary(NEW), True), (summary(OLD), True)]
    assert [table.details for table in catalog.stream_tables()] == [NEW, OLD]


def test_a_summary_of_other_details_is_not_read(catalog: Catalog, url: str) -> None:
    """As a process of an earlier release writes them, which knows of none."""
    create(catalog, REVENUE, details=OLD)
    with sql(url) as connection:
        change = sa.text("UPDATE hr_stream_table SET definition_json = :given, text_state = 'another'")
        connection.execute(change.bindparams(sa.bindparam("given", type_=sa.JSON)), {"given": NEW})
    assert summaries(url) == [(summary(OLD), False)]
    with Catalog.open(url) as other:
        details = other.stream_table(REVENUE).details
    assert {key: details[key] for key in SUMMARY} == summary(NEW)


def test_older_catalogs_get_summaries(fresh_url: str) -> None:
    older.make(fresh_url, "0020")
    moment = "'2025-01-01T00:00:00.000000+00:00'"
    with sql(fresh_url) as connection:
        for number, (name, details) in enumerate((("revenue", OLD), ("top", NEW)), 1):
            connection.exec_driver_sql(
                "INSERT INTO hr_relation (id, name, catalog_name, table_namespace, table_name, kind)"
                f" VALUES ({number}, 'lake.shop.{name}', 'lake', 'shop', '{name}', 'stream')"
            )
            row = sa.text(
                "INSERT INTO hr_stream_table (relation_id, query, refresh_mode, definition_json, generation, status,"
                " created_at, updated_at)"
                f" VALUES ({number}, 'SELECT 1', 'AUTO', :given, 1, 'ACTIVE', {moment}, {moment})"
            )
            connection.execute(row.bindparams(sa.bindparam("given", type_=sa.JSON)), {"given": details})
    with Catalog.open(fresh_url) as catalog:
        assert [table.details for table in catalog.stream_tables()] == [OLD, NEW]
    assert summaries(fresh_url) == [(summary(OLD), True), (summary(NEW), True)]


def test_what_is_asked_of_every_table_parses_no_details(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    whole = stored_details._parsed_text

    def noted(text: str) -> object:
        parsed.append(text)
        return whole(text)

    monkeypatch.setattr(stored_details, "_parsed_text", noted)
    values = stored_values(OLD)
    text, short = json.dumps(values["definition_json"]), json.dumps(values["summary_json"])
    details = StoredDetails(text, short, values["summary_checksum"])
    assert [details["layout"], details.get("deployment", ""), bool(details), "cyclic" in details] == [
        11,
        "",
        True,
        True,
    ]
    assert not parsed
    assert (details["query"], len(details), details) == (OLD["query"], len(OLD), OLD)
    assert set(parsed) == {text}
    assert not StoredDetails("{}", "{}", stored_values({})["summary_checksum"])


@pytest.mark.parametrize("garbage", ["{", "7", "[1]"])
def test_what_nobody_wrote_is_told(garbage: str) -> None:
    with pytest.raises(EnvironmentFault) as raised:
        dict(StoredDetails(garbage, None, None))
    assert raised.value.code == "CATALOG_CORRUPT"
