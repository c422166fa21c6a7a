"""New stored layouts of large stream tables: loaded beside, exchanged, and the old one dropped."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kit.random_deployments import left_behind

import headrace
from headrace.api.deploying.promoting import layout_upgrades_of
from headrace.api.facade import Headrace
from headrace.compiler.layout import LAYOUT
from headrace.config import Settings
from headrace.deploy.unattended.layout_upgrades import LayoutUpgrades
from headrace.errors import HeadraceError, UserError
from headrace.names import LAKE, TableName
from headrace.results.refresh_results import Mode

PIPELINE = """
CREATE TABLE {ns}.orders USING iceberg
    AS SELECT * FROM VALUES (1L, 'EU', 10L), (2L, 'US', 20L), (3L, 'EU', 5L) AS t(id, region, amount);
CREATE STREAM TABLE {ns}.totals AS SELECT region, sum(60 DIV amount) AS total FROM {ns}.orders GROUP BY region;
CREATE STREAM TABLE {ns}.outside REFRESH MODE DIFFERENTIAL AS SELECT region, total FROM {ns}.totals
"""


def deployment_in(ns: str) -> str:
    return f"layout_{LAYOUT}_{ns}__totals"


def make_older(hr: Headrace, ns: str) -> TableName:
    """Let `totals` be one that an older version has stored."""
    return stored_in(hr, TableName(LAKE, (ns,), "totals"), 1)


def stored_in(hr: Headrace, name: TableName, layout: int) -> TableName:
    """Let a stream table be one that a version of a layout has stored."""
    hr._catalog.alter_stream_table(name, details={**hr._catalog.stream_table(name).details, "layout": layout})
    return name


@pytest.fixture
def upgraded(project: Settings, shared: Headrace, ns: str) -> Iterator[Headrace]:
    """A pipeline whose `totals` an older version has stored, and that is too large to be loaded in place."""
    shared.sql(PIPELINE.format(ns=ns))
    make_older(shared, ns)
    shared.sql(f"INSERT INTO {ns}.orders VALUES (4, 'AS', 6)")
    settings = dataclasses.replace(project, layout_limit=2, default_schedule="ON CHANGE")
    with headrace.open(settings, spark=shared.spark) as hr:
        yield hr


def check(hr: Headrace, ns: str) -> None:
    """Everything has the layout of now and equals its query, and nothing of the deployment is left."""
    assert hr.green_status() == ()
    assert hr._catalog.auto_deployments() == ()
    assert [v for v in hr.verify([f"{ns}.totals", f"{ns}.outside"]) if not v.ok] == []
    with hr._catalog.reading() as reader:
        assert left_behind(reader) == set()
    hr.spark.sql(f"INSERT INTO lake.{ns}.orders VALUES (5, 'US', 3)")
    done = hr.refresh([f"{ns}.totals", f"{ns}.outside"])
    assert [result.mode for result in done] == [Mode.DIFFERENTIAL] * 2


def modes(hr: Headrace, ns: str) -> list[str]:
    """How the reader outside was refreshed since it was loaded, oldest first."""
    return [str(entry.mode) for entry in hr.history(f"{ns}.outside")][-2::-1]


def test_a_refresh_brings_the_layout_beside_and_readers_follow_by_change(upgraded: Headrace, ns: str) -> None:
    hr = upgraded
    (totals,) = [info for info in hr.status() if info.name == f"{ns}.totals"]
    assert totals.held_up == f"waiting for its new layout: deployment {deployment_in(ns)}, not made yet"
    hr.refresh([f"{ns}.totals", f"{ns}.outside"])
    assert modes(hr, ns) == ["DIFFERENTIAL"]
    check(hr, ns)


def test_schedulers_bring_it_and_a_failing_load_leaves_the_table_as_it_was(upgraded: Headrace, ns: str) -> None:
    hr = upgraded
    hr.spark.sql(f"INSERT INTO lake.{ns}.orders VALUES (6, 'EU', 0)")  # cannot be divided by
    before = hr.spark.table(f"lake.{ns}.totals").collect()
    assert hr.run(once=True).failed == 1
    (totals,) = [info for info in hr.status() if info.name == f"{ns}.totals"]
    assert (totals.held_up or "").startswith(
        f"waiting for its new layout: deployment {deployment_in(ns)}, failed: ARITHMETIC_ERROR"
    )
    with pytest.raises(HeadraceError, match="ARITHMETIC_ERROR"):
        hr.refresh(f"{ns}.totals")
    assert hr.spark.table(f"lake.{ns}.totals").collect() == before
    hr.spark.sql(f"DELETE FROM lake.{ns}.orders WHERE id = 6")
    hr.cancel_green(deployment=deployment_in(ns))  # so that no pause has to be waited for
    assert hr.run(once=True).failed == 0
    check(hr, ns)


def test_who_waits_while_somebody_else_brings_it_has_nothing_left_to_do(
    upgraded: Headrace, ns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hr, name = upgraded, TableName(LAKE, (ns,), "totals")
    upgrades = layout_upgrades_of(hr._engine().creator, hr._lazy)
    alone, others = LayoutUpgrades._alone, [upgrades]

    @contextmanager
    def after_somebody_else(self: LayoutUpgrades, deployment: str, patience: float = 0.0) -> Iterator[None]:
        while others:
            assert others.pop().finish(name) is not None
        with alone(self, deployment, patience):
            yield

    monkeypatch.setattr(LayoutUpgrades, "_alone", after_somebody_else)
    assert upgrades.finish(name, 60) is None
    hr.refresh(f"{ns}.outside")
    check(hr, ns)


def test_it_is_loaded_in_place_or_dropped_where_a_user_says_so(upgraded: Headrace, ns: str) -> None:
    hr, name = upgraded, TableName(LAKE, (ns,), "totals")
    with pytest.raises(UserError, match="INVALID_NAME"):
        hr.create_green(f"{ns}.totals", deployment=deployment_in(ns))
    upgrades = layout_upgrades_of(hr._engine().creator, hr._lazy)
    upgrades.begin([name])
    assert [green.deployment for green in hr.green_status()] == [deployment_in(ns)]
    assert hr.refresh(f"{ns}.totals", full=True).mode is Mode.FULL
    upgrades.begin([])
    hr.refresh(f"{ns}.outside")
    check(hr, ns)
    make_older(hr, ns)
    upgrades.begin([name])
    assert hr.drop_stream_table(f"{ns}.totals", cascade=True) == (f"{ns}.outside", f"{ns}.totals")
    assert hr.green_status() == ()


def test_what_a_newer_version_has_stored_is_left_to_it(upgraded: Headrace, ns: str) -> None:
    hr, name = upgraded, TableName(LAKE, (ns,), "totals")
    upgrades = layout_upgrades_of(hr._engine().creator, hr._lazy)
    upgrades.begin([name])
    [green] = hr._catalog.greens()
    stored_in(hr, name, LAYOUT)
    stored_in(hr, green.name, LAYOUT + 1)
    upgrades.begin([])
    assert [each.name for each in hr._catalog.greens()] == [green.name]
    stored_in(hr, green.name, LAYOUT)
    upgrades.begin([])
    assert hr.green_status() == ()
    stored_in(hr, name, LAYOUT + 1)
    with pytest.raises(HeadraceError, match="LAYOUT_TOO_NEW"):
        hr.refresh(f"{ns}.totals")
    assert [entry.mode for entry in hr.history(str(name))] == [Mode.FULL]
    assert hr.refresh(f"{ns}.totals", full=True).mode is Mode.FULL
    hr.refresh(f"{ns}.outside")
    check(hr, ns)
