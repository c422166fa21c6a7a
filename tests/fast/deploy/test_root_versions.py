"""Root versions: what a stream table reflects of sources, through the tables between and their past."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from catalog_kit.ready import ready_catalog
from catalog_kit.samples import create, entry, lake, see

from headrace.catalog import Catalog, FrontierMove, NewVersion, Publication
from headrace.deploy.root_versions import Range, RootVersions, at_one_cut, behind
from headrace.frontier import Frontier
from headrace.names import TableName

A, B, C, D, GREEN = (lake(f"s.{name}") for name in ("a", "b", "c", "d", "green"))


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.open(ready_catalog(tmp_path / "headrace.db")) as opened:
        create(opened, B, A)
        create(opened, C, A)
        create(opened, D, B, C)
        create(opened, GREEN, B, C)
        yield opened


def move(catalog: Catalog, name: TableName, version: int | None, **frontier: int) -> None:
    """Publish a refresh; None makes no new version."""
    to = Frontier({lake(f"s.{source}"): number for source, number in frontier.items()})
    made = () if version is None else (NewVersion(name, version, 1),)
    catalog.publish(
        Publication(versions=made, frontiers=(FrontierMove(name, to),), history=(entry(name, frontier=to),))
    )


def test_two_generations_are_compared_by_their_roots(catalog: Catalog) -> None:
    see(catalog, A, 1)
    move(catalog, B, 0, a=0)
    move(catalog, C, 0, a=0)
    move(catalog, GREEN, 0, b=0, c=0)
    see(catalog, A, 2)
    move(catalog, B, 1, a=1)
    move(catalog, C, None, a=1)  # which did not concern it
    move(catalog, D, 0, b=1, c=0)
    with catalog.reading() as reader:
        roots = RootVersions(reader)
        green, blue = roots.of(GREEN), roots.of(D)
    assert blue == {A: Range(1, 1)}
    assert green == {A: Range(0, 1)}  # by way of b it is at the first, by way of c at both
    assert behind(green, blue) == {A: 1}
    assert not at_one_cut(green, blue)
    move(catalog, GREEN, 1, b=1, c=0)
    with catalog.reading() as reader:
        roots = RootVersions(reader)
        assert at_one_cut(roots.of(GREEN), roots.of(D))
        assert not behind(roots.of(GREEN), roots.of(D))
