"""Publications as plain JSON values, and projects that keep to the lake that they began in."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from pathlib import Path

import pytest
import sqlalchemy as sa
from catalog_kit.iceberg import Iceberg
from catalog_kit.samples import ITEMS, ORDERS, REVENUE, TOP, create, define, entry, refresh, see

from headrace.catalog import (
    Catalog,
    FrontierMove,
    Green,
    Lease,
    LogChange,
    Mirror,
    NewVersion,
    Publication,
    RefreshMode,
    Rename,
    Role,
    SourceMove,
    Stop,
    Swap,
)
from headrace.catalog.publishing.pointers import key_of
from headrace.catalog.remote_lake import intents
from headrace.catalog.remote_lake.plain_records import from_plain, to_plain
from headrace.catalog.schema import lake_intent as intent_table
from headrace.errors import UserError
from headrace.frontier import Frontier
from headrace.lakes.lake_server import LakeMove
from headrace.lakes.lake_settings import LakeSettings, read_lake

AT = dt.datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=dt.UTC)


def whole(mirror: Mirror) -> Publication:
    """A publication with everything in it."""
    json_values = {"a": {"b": [1, None, {"c": True}], "d": []}, "e": 1.5}
    return Publication(
        swaps=(Swap(REVENUE, None, "staged"), Swap(TOP, "was", overwrite_foreign=True)),
        versions=(NewVersion(REVENUE, 3, 7, 2, "uuid"), NewVersion(TOP, 0, None)),
        frontiers=(FrontierMove(REVENUE, Frontier({ORDERS: 1, ITEMS: 0}), 2, 5, AT, True, json_values),),
        history=(entry(REVENUE, frontier=Frontier({ORDERS: 1}), stages={"x": 0.5}, metrics=json_values),),
        leases=(Lease("lake.shop.revenue", "me", 4, AT, AT),),
        definitions=(define(TOP, ORDERS, details=json_values, refresh_mode=RefreshMode.FULL, options={"pool": "x"}),),
        drops=(ITEMS,),
        deletes=(ITEMS,),
        renames=(Rename(ITEMS, ORDERS),),
        groups=((REVENUE, TOP), (ITEMS,)),
        sources=(
            SourceMove("db", json_values, {"lsn": "0/1"}, (mirror,), activates=True, adds=(mirror,), removes=(TOP,)),
        ),
        source_drops=("old",),
        relation_renames=(Rename(TOP, ITEMS),),
        greens=(Green(REVENUE, "green", TOP, json_values, AT, None, AT, Role.EXCHANGE, {"w": 1}),),
        greens_ended=(TOP,),
        stops=(Stop(TOP, "CODE", "why"),),
        logs=(LogChange(TOP, None), LogChange(REVENUE, ITEMS)),
        pauses=(TOP,),
        unpauses=(REVENUE,),
    )


def test_a_publication_is_read_as_it_was_written() -> None:
    kinds = {"name": REVENUE, "log": TOP, "table": "public.orders"}
    given = {f.name: kinds.get(f.name) for f in dataclasses.fields(Mirror) if f.default is dataclasses.MISSING}
    given = {name: {} if name == "shape" and value is None else value for name, value in given.items()}
    publication = whole(Mirror(**given))  # type: ignore[arg-type]
    for field in dataclasses.fields(Publication):
        assert getattr(publication, field.name), f"{field.name} is not tested"
    assert from_plain(Publication, json.loads(json.dumps(to_plain(publication)))) == publication


def test_what_a_newer_version_intends_is_left_to_it_and_its_tables_stay_busy(catalog: Catalog) -> None:
    ours, theirs = (Publication(deletes=(name,)) for name in (ORDERS, ITEMS))
    with catalog._database.write() as connection:
        for publication in (ours, theirs):
            intents.add(connection, publication, [LakeMove(key_of(publication.deletes[0]), "was", None)], AT)
        written = {**to_plain(theirs), "further": True}
        uuid = intent_table.c.uuid == theirs.uuid
        connection.execute(sa.update(intent_table).where(uuid).values(publication_json=written))
        assert [each.publication for each in intents.read(connection)] == [ours]
        assert intents.keys(connection) == {key_of(ORDERS), key_of(ITEMS)}


def test_a_project_keeps_to_the_lake_that_it_began_in(catalog: Catalog, iceberg: Iceberg) -> None:
    catalog.bind_lake("http://here")
    catalog.bind_lake("http://here")
    for other in ("http://there", None):
        with pytest.raises(UserError) as caught:
            catalog.bind_lake(other)
        assert caught.value.code == "LAKE_CHANGED"


def test_a_project_with_tables_of_its_own_is_not_given_another_lake(catalog: Catalog, iceberg: Iceberg) -> None:
    catalog.bind_lake(None)
    create(catalog)
    see(catalog)
    catalog.publish(refresh(catalog, iceberg, 1, REVENUE))
    with pytest.raises(UserError) as caught:
        catalog.bind_lake("http://here")
    assert caught.value.code == "LAKE_CHANGED"
    catalog.bind_lake(None)


FILE = Path("headrace.toml")


def test_the_section_lake_is_read() -> None:
    assert read_lake(FILE, None) is None
    assert read_lake(FILE, {"type": "embedded"}) is None
    assert read_lake(FILE, {"type": "rest", "uri": "https://host/api/v1/"}) == LakeSettings("https://host/api")
    whole = read_lake(FILE, {"type": "rest", "uri": "http://host:1", "warehouse": "w", "scope": "s"})
    assert whole == LakeSettings("http://host:1", "w", scope="s")


@pytest.mark.parametrize(
    "section",
    [
        {"type": "hive", "uri": "http://host"},
        {"type": "rest"},
        {"type": "rest", "uri": "host"},
        {"type": "rest", "uri": 5},
        {"type": "rest", "uri": "http://user:password@host"},
        {"type": "rest", "uri": "http://host", "warehouse": ""},
        {"type": "rest", "uri": "http://host", "oauth2_server_uri": "nowhere"},
        {"type": "embedded", "uri": "http://host"},
    ],
)
def test_a_section_lake_that_means_nothing_is_refused(section: dict[str, object]) -> None:
    with pytest.raises(UserError) as caught:
        read_lake(FILE, section)
    assert caught.value.code == "CONFIG_INVALID"
    assert "password" not in str(caught.value)
