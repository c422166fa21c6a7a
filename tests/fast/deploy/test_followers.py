"""Who has to follow an exchange of a part of a group."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from catalog_kit.clock import START
from catalog_kit.samples import lake

from headrace.catalog import Catalog, Definition, Green, Publication, Role
from headrace.definitions.details import Details, SourceUse, to_json
from headrace.deploy.exchanging.followers import Followers, followers_of, public_after, redefined, refuse_between
from headrace.errors import UserError
from headrace.names import TableName
from headrace.refresh.groups.grouping import Defaults, Grouping, grouping
from headrace.semantics import Semantics

A, B, C, D, E = (lake(f"shop.{name}") for name in "abcde")


def define(catalog: Catalog, name: TableName, *sources: TableName, green: str = "", **redirects: TableName) -> None:
    uses, named = tuple(SourceUse(s, ()) for s in sources), {lake(f"shop.{t}"): other for t, other in redirects.items()}
    details = Details("SELECT 1", (), Semantics(), (), uses, {}, (), None, redirects=named, deployment=green)
    catalog.publish(Publication(definitions=(Definition(name, "SELECT 1", sources, details=to_json(details)),)))


def green(catalog: Catalog, name: TableName, *sources: TableName, **redirects: TableName) -> Green:
    other = lake(f"shop__v2.{name.table}")
    define(catalog, other, *sources, green="v2", **redirects)
    return Green(other, "v2", name, {}, START, role=Role.EXCHANGE if catalog.find_stream_table(name) else Role.NEW)


def followers(
    catalog: Catalog, *chosen: Green, left_alone: Collection[TableName] = ()
) -> tuple[str, Followers, Grouping]:
    after = grouping(public_after(chosen, {t.name: t for t in catalog.stream_tables()}), Defaults())
    found = followers_of(after, chosen, left_alone)
    return "".join(name.table for name in found.names), found, after


@pytest.fixture
def diamond(timed: Catalog) -> Catalog:
    """From a two ways, over b and c, to d; e reads that."""
    for name, *sources in ((B, A), (C, A), (D, B, C), (E, D)):
        define(timed, name, *sources)
    return timed


def test_members_below_follow_unless_they_are_left_alone(diamond: Catalog) -> None:
    b = green(diamond, B, A)
    names, found, _ = followers(diamond, b)
    assert (names, found.groups) == ("d", ((B, C, D),))
    assert followers(diamond, b, left_alone={D})[0] == ""
    assert followers(diamond, b, left_alone={C})[0] == ""  # d reads it, and stays with it
    assert followers(diamond, green(diamond, D, B, C))[0] == ""
    d = green(diamond, D, lake("shop__v2.b"), C, b=lake("shop__v2.b"))
    assert followers(diamond, b, d)[0] == ""


def test_groups_are_those_after_the_exchange(diamond: Catalog) -> None:
    assert followers(diamond, green(diamond, B, lake("shop.other")))[0] == ""  # no diamond any more
    assert followers(diamond, green(diamond, E, D, A), green(diamond, B, A))[0] == "d"


def test_what_lies_between_two_that_are_exchanged_is_refused(diamond: Catalog) -> None:
    chosen = green(diamond, B, A), green(diamond, E, D, A)
    names, found, after = followers(diamond, *chosen)
    assert names == "d"
    with pytest.raises(UserError) as refused:
        refuse_between(found, after, chosen, {B})
    assert refused.value.code == "GROUP_TORN"
    assert "shop.d" in (refused.value.hint or "")
    assert redefined(chosen, {t.name: t for t in diamond.stream_tables()}) == set()
    refuse_between(found, after, chosen, ())  # equal rows: nothing changes in between
    chosen = chosen[0], green(diamond, lake("shop.f"), D)  # in no group with it
    refuse_between(*followers(diamond, *chosen)[1:], chosen, {B})
