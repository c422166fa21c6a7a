"""Deployments that nobody attends: promoted once, refused with one word, watched, and taken back with the reason."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from catalog_kit.clock import ManualClock
from catalog_kit.iceberg import Iceberg
from catalog_kit.samples import create, entry, lake, see
from kit.pipelines import Lake

from headrace.catalog import (
    Catalog,
    FrontierMove,
    Green,
    HistoryEntry,
    NewVersion,
    Outcome,
    Publication,
    RanAs,
    resource_of,
)
from headrace.definitions.details import Details, to_json
from headrace.deploy.blue_settings import settings_of
from headrace.deploy.deployment_results import Exchanged, LoadProgress, PromotionResult
from headrace.deploy.deployment_state import reading_deployments
from headrace.deploy.green_status import green_infos
from headrace.deploy.load_journal import noting_loads
from headrace.deploy.objections import against_promotion, refuse
from headrace.deploy.promotion_options import PromotionOptions
from headrace.deploy.unattended.deployer import Deployer
from headrace.deploy.unattended.promotion_conditions import conditions_to_json
from headrace.deploy.unattended.watch import watch_of
from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.events import Events, RefreshStarted, StageFinished, StageStarted
from headrace.frontier import Frontier
from headrace.names import TableName
from headrace.refresh.groups.grouping import Defaults
from headrace.semantics import Semantics

ORDERS, BLUE, GREEN = lake("shop.orders"), lake("shop.totals"), lake("shop__green.totals")


class Exchanging:
    """Publishes exchanges of generations in the catalog, as promotions do, without rows.

    Args:
        catalog: The catalog.
        clock: Tells the time.
    """

    def __init__(self, catalog: Catalog, clock: ManualClock) -> None:
        self.catalog, self.clock = catalog, clock
        self.refusal: HeadraceError | None = None
        self.tried = 0
        self.busy, self.under_way = False, lambda: False

    def promote(self, chosen: Sequence[Green], how: PromotionOptions) -> PromotionResult:
        self.tried += 1
        self.busy = self.under_way()
        with reading_deployments(self.catalog) as state:
            refuse(against_promotion(chosen, state, self.clock.now(), how, Defaults()))
        if self.refusal is not None:
            raise self.refusal
        now = self.clock.now()
        watch = watch_of(how, now)
        stored = None if watch is None else watch.to_json()
        return self._publish(
            [
                dataclasses.replace(g, promoted_at=now, keep_until=now + how.rollback_window, watch=stored)
                for g in chosen
            ]
        )

    def roll_back(self, chosen: Sequence[Green], why: str = "") -> PromotionResult:
        self.tried += 1
        if self.refusal is not None:
            raise self.refusal
        return self._publish([dataclasses.replace(g, promoted_at=None, keep_until=None, watch=None) for g in chosen])

    def _publish(self, greens: Sequence[Green]) -> PromotionResult:
        at = Frontier({ORDERS: self.catalog.newest_versions()[ORDERS].version})
        moves = tuple(FrontierMove(name, at) for g in greens for name in (g.original, g.name))
        self.catalog.publish(Publication(frontiers=moves, greens=tuple(greens)))
        return PromotionResult(greens[0].deployment, tuple(Exchanged(str(g.original), str(g.name)) for g in greens))


class Unattended:
    """A deployment of one green, loaded and converged, and what schedulers make of it."""

    def __init__(self, catalog: Catalog, clock: ManualClock) -> None:
        self.catalog, self.clock = catalog, clock
        self.bad: str | None = None
        self.checked: list[Mapping[str, str]] = []
        for name, deployment in ((BLUE, ""), (GREEN, "green")):
            details = Details("SELECT 1", (), Semantics(), (), (), {}, (), None, {}, deployment=deployment)
            create(catalog, name, ORDERS, details=to_json(details))
        blue = settings_of(catalog.stream_table(BLUE))
        catalog.publish(Publication(greens=(Green(GREEN, "green", BLUE, blue, clock.now()),)))
        see(catalog, ORDERS, 1)
        self.refresh(BLUE)
        self.refresh(GREEN)
        self.promotion = Exchanging(catalog, clock)
        self.one, self.other = (Deployer(catalog, self.promotion, self.failing, clock) for _ in range(2))

    def failing(self, checks: Mapping[str, str]) -> str | None:
        self.checked.append(checks)
        return self.bad

    def refresh(self, name: TableName) -> None:
        newest = self.catalog.newest_versions()
        version = newest[name].version + 1 if name in newest else 0
        move = FrontierMove(name, Frontier({ORDERS: newest[ORDERS].version}))
        made = (NewVersion(name, version, 1, 1),)
        self.catalog.publish(Publication(versions=made, frontiers=(move,), history=(entry(name),)))

    def arm(self, **conditions: str) -> None:
        self.catalog.set_auto_promote("green", conditions_to_json(conditions))

    def step(self, seconds: float = 0) -> list[str]:
        """Let two schedulers look; what was told meanwhile."""
        before = max((e.id for e in self.catalog.events(limit=1)), default=0)
        self.clock.advance(seconds)
        self.one.step()
        self.other.step()
        return [
            " ".join([e.kind, *(str(e.fields[key]) for key in ("code", "reason") if e.fields.get(key))])
            for e in self.catalog.events(before)
        ]

    def fail(self, name: TableName, code: str, *, retry: bool) -> None:
        now = self.clock.now()
        failed = HistoryEntry(name, now, now, RanAs.FULL, Outcome.FAILED, error_code=code, error_message="no")
        self.catalog.record((failed,))
        self.catalog.note_failure([name], code, "no", lambda _: now if retry else None)

    @property
    def public(self) -> bool:
        return self.catalog.greens()[0].promoted_at is not None


@pytest.fixture
def unattended(timed: Catalog, clock: ManualClock) -> Unattended:
    return Unattended(timed, clock)


def test_a_deployment_is_promoted_once_and_not_again_when_it_is_taken_back(unattended: Unattended) -> None:
    assert unattended.step() == []
    unattended.promotion.under_way = lambda: unattended.one.exchanging
    unattended.arm()
    assert unattended.step() == ["promoted"]
    assert unattended.promotion.busy
    assert not unattended.one.exchanging
    assert unattended.public
    assert unattended.catalog.auto_deployments() == ()
    unattended.promotion.roll_back(unattended.catalog.greens())
    assert unattended.step(3600) == []
    assert not unattended.public


def test_it_waits_until_it_has_converged_or_is_near_enough(unattended: Unattended) -> None:
    unattended.arm()
    unattended.clock.advance(1)
    see(unattended.catalog, ORDERS, 2)
    unattended.refresh(BLUE)
    assert unattended.step(40) == []
    assert unattended.promotion.tried == 0
    unattended.arm(lag_threshold="1 minute")
    (info,) = green_infos(unattended.catalog, unattended.catalog.greens(), unattended.clock.now())
    assert (info.state, info.lag_versions, info.lag_seconds) == ("converged", {"shop.orders": 1}, 40.0)
    (info,) = green_infos(unattended.catalog, unattended.catalog.greens(), unattended.clock.now(), dt.timedelta(0))
    assert info.state == "catching up"
    assert unattended.step() == ["promoted"]


def test_it_waits_for_its_window_and_says_when_that_is_over(unattended: Unattended) -> None:
    unattended.arm(window="02:00-04:00")  # it is midnight
    assert unattended.step(3600) == []
    unattended.arm(window="2026-01-02T00:00Z/2026-01-02T01:00Z")
    assert unattended.step(600) == []
    (told,) = unattended.step(2 * 86400)
    assert told.startswith("promotion_refused PROMOTION_WINDOW_OVER")
    assert unattended.step() == []
    unattended.arm(window="23:00-01:30")
    unattended.clock.advance(-600)
    assert unattended.step() == ["promoted"]


def test_a_refusal_is_told_once_and_tried_again_every_minute(unattended: Unattended) -> None:
    unattended.arm()
    unattended.promotion.refusal = UserError("READERS_BROKEN", "shop.a misses 1 column")
    assert unattended.step() == ["promotion_refused READERS_BROKEN shop.a misses 1 column"]
    assert unattended.step(30) == []
    assert unattended.promotion.tried == 1
    unattended.promotion.refusal = UserError("READERS_BROKEN", "shop.a misses 2 column")
    assert unattended.step(60) == []
    assert unattended.promotion.tried == 2
    (info,) = green_infos(unattended.catalog, unattended.catalog.greens(), unattended.clock.now())
    assert info.refused == "READERS_BROKEN: shop.a misses 2 column"
    unattended.promotion.refusal = EnvironmentFault("NO_COMMON_CUT", "Moved on.", retryable=True)
    assert unattended.step(60) == []
    unattended.promotion.refusal = None
    assert unattended.step(6) == ["promoted"]  # what passes is tried again soon


OUTAGES = ["SPARK_LOST", "STORE_UNAVAILABLE", "DISK_FULL", "LAKE_UNREACHABLE", "CATALOG_LOCKED", "EXECUTOR_LOST"]


@pytest.mark.parametrize("code", OUTAGES)
def test_surroundings_are_no_refusal(unattended: Unattended, code: str) -> None:
    unattended.arm()
    unattended.promotion.refusal = EnvironmentFault(code, "Gone.", retryable=True)
    with pytest.raises(EnvironmentFault):
        unattended.step()
    assert unattended.catalog.auto_deployments()[0].refused_code is None


def test_somebody_who_is_at_it_is_left_alone(unattended: Unattended) -> None:
    unattended.arm()
    held = unattended.catalog.acquire(["deployment green"], "another", dt.timedelta(seconds=30))
    assert unattended.step() == []
    unattended.catalog.release(held)
    assert unattended.step() == ["promoted"]


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (lambda u: u.fail(BLUE, "DIVIDE_BY_ZERO", retry=False), "refreshes of shop.totals fail (DIVIDE_BY_ZERO): no"),
        (lambda u: u.catalog.blow_fuse(BLUE, {}), "the fuse of shop.totals has blown"),
        (lambda u: setattr(u, "bad", "check few finds 3 row(s)"), "check few finds 3 row(s)"),
    ],
)
def test_trouble_within_the_watch_takes_it_back(unattended: Unattended, trouble: object, reason: str) -> None:
    unattended.arm(watch="10 minutes", check_few="SELECT 1")
    assert unattended.step() == ["promoted"]
    assert unattended.step(60) == []
    trouble(unattended)  # type: ignore[operator]
    unattended.refresh(GREEN)
    if unattended.bad:
        unattended.refresh(BLUE)
    assert unattended.step(61) == [f"rolled_back {reason}"]
    assert not unattended.public
    assert unattended.step(60) == []


@pytest.mark.parametrize("code", OUTAGES)
def test_what_may_pass_or_comes_later_is_no_trouble(unattended: Unattended, code: str) -> None:
    unattended.arm(watch="10 minutes")
    unattended.step()
    unattended.fail(BLUE, "REFRESH_TIMEOUT", retry=True)
    assert unattended.step(1) == []
    for _ in range(3):
        unattended.fail(BLUE, code, retry=True)
    assert unattended.step(1) == []
    unattended.refresh(BLUE)
    unattended.clock.advance(3600)
    unattended.fail(BLUE, "DIVIDE_BY_ZERO", retry=False)
    assert unattended.step() == []
    assert unattended.public
    assert unattended.catalog.greens()[0].watch is None
    assert not unattended.catalog.has_unattended()


def test_a_loss_that_suspends_a_table_in_the_end_is_trouble(unattended: Unattended) -> None:
    unattended.arm(watch="10 minutes")
    unattended.step()
    unattended.fail(BLUE, "EXECUTOR_LOST", retry=True)
    assert unattended.step(1) == []
    unattended.fail(BLUE, "EXECUTOR_LOST", retry=False)
    assert unattended.step(1) == ["rolled_back refreshes of shop.totals fail (EXECUTOR_LOST): no"]


def test_a_watch_that_only_tells_tells_once(unattended: Unattended) -> None:
    unattended.arm(watch="10 minutes", on_trouble="tell")
    unattended.step()
    unattended.catalog.blow_fuse(BLUE, {})
    assert unattended.step(1) == ["watch_failed the fuse of shop.totals has blown"]
    assert unattended.step(1) == []
    assert unattended.public


def test_a_roll_back_that_is_refused_is_told_once(unattended: Unattended) -> None:
    unattended.arm(watch="10 minutes")
    unattended.step()
    unattended.catalog.blow_fuse(BLUE, {})
    unattended.promotion.refusal = UserError("GREEN_OUTDATED", "Altered since.")
    assert unattended.step(1) == ["watch_failed the fuse of shop.totals has blown"]
    assert unattended.catalog.events(limit=1)[0].fields["refused"] == "GREEN_OUTDATED: Altered since."
    assert unattended.step(1) == []


def test_a_roll_back_that_may_pass_is_tried_every_minute_until_the_watch_ends(unattended: Unattended) -> None:
    unattended.arm(watch="10 minutes")
    unattended.step()
    unattended.catalog.blow_fuse(BLUE, {})
    unattended.promotion.refusal = EnvironmentFault("NO_COMMON_CUT", "Moved on.", retryable=True)
    unattended.other = unattended.one
    unattended.promotion.tried = 0
    for _ in range(14):
        assert unattended.step(30) == []
    assert unattended.promotion.tried == 7
    assert unattended.step(600) == ["watch_failed the fuse of shop.totals has blown"]
    assert unattended.step(600) == []


def test_a_failure_of_another_member_of_its_group_is_no_trouble(unattended: Unattended) -> None:
    unattended.arm(watch="10 minutes")
    unattended.step()
    unattended.catalog.note_failure([BLUE], "DIVIDE_BY_ZERO", "another one fails", lambda _: None)
    assert unattended.step(1) == []
    now = unattended.clock.now()
    lost = HistoryEntry(BLUE, now, now, RanAs.FULL, Outcome.FAILED, error_code="ROLLED_BACK", error_message="no")
    unattended.catalog.record((lost,))
    assert unattended.step(1) == []
    assert unattended.public


def test_conditions_end_with_the_last_green(unattended: Unattended) -> None:
    unattended.arm()
    unattended.catalog.publish(Publication(drops=(GREEN,), deletes=(GREEN,)))
    assert unattended.catalog.auto_deployments() == ()


def test_a_first_load_can_be_followed_from_elsewhere(unattended: Unattended, tmp_path: Path) -> None:
    catalog, clock, events, lake_ = unattended.catalog, unattended.clock, Events(), lake("shop__green.items")
    details = Details("SELECT 1", (), Semantics(), (), (), {}, (), None, {}, deployment="green")
    create(catalog, lake("shop.items"), ORDERS, details=to_json(details))
    create(catalog, lake_, ORDERS, details=to_json(details))
    blue = settings_of(catalog.stream_table(lake("shop.items")))
    catalog.publish(Publication(greens=(Green(lake_, "green", lake("shop.items"), blue, clock.now()),)))
    Iceberg(f"sqlite:///{tmp_path / 'headrace.db'}").commit(lake_, Lake("", tmp_path).metadata(lake_)[0])

    def loading() -> LoadProgress | None:
        infos = green_infos(catalog, catalog.greens(), clock.now())
        return next(info.progress for info in infos if info.green == str(lake_))

    assert loading() is None
    held = catalog.acquire([resource_of(lake_)], "loader", dt.timedelta(hours=1))
    with noting_loads(catalog, events, clock):
        for name in (GREEN, lake_):  # the former is loaded already
            events.emit(RefreshStarted(str(name), "FULL", None))
            events.emit(StageStarted(str(name), "compute"))
        clock.advance(3)
        events.emit(StageFinished(str(lake_), "compute", 2.5))
        events.emit(StageStarted(str(lake_), "write"))
        clock.advance(4)
        assert loading() == LoadProgress("write", {"compute": 2.5}, 7.0, None, None)
    assert GREEN not in catalog.green_loads()
    catalog.release(held)
    clock.advance(100)
    assert loading() == LoadProgress(None, {"compute": 2.5}, 3.0, None, None)  # it was cut short
