"""Puts together what promotes deployments: for users who ask for it, and for schedulers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.clock import SystemClock

if TYPE_CHECKING:
    from headrace.deploy.promotion import Promotion
    from headrace.deploy.unattended.deployer import Deployer
    from headrace.deploy.unattended.layout_upgrades import LayoutUpgrades
    from headrace.ports import Session
    from headrace.refresh.definition.create import Creator


def promotion_of(creator: Creator, session: Session) -> Promotion:
    """Return what exchanges generations.

    Args:
        creator: Refreshes units.
        session: The user's session.
    """
    from headrace.deploy.exchanging.exchange import Exchange
    from headrace.deploy.promotion import Promotion

    refresher, clock = creator.refresher, SystemClock()
    exchange = Exchange(refresher.catalog, session, refresher, refresher.events, clock)
    return Promotion(refresher.catalog, creator, exchange, clock)


def layout_upgrades_of(creator: Creator, session: Session) -> LayoutUpgrades:
    """Return what brings new stored layouts to large stream tables.

    Args:
        creator: Creates and loads.
        session: The user's session.
    """
    from headrace.deploy.unattended.layout_upgrades import LayoutUpgrades

    promotion = promotion_of(creator, session)
    return LayoutUpgrades(creator.catalog, session, creator.plans, creator, promotion, SystemClock())


def deployer_of(creator: Creator, session: Session) -> Deployer:
    """Return what sees to deployments that nobody attends.

    Args:
        creator: Refreshes units.
        session: The user's session.
    """
    from headrace.deploy.promotion_checks import failing
    from headrace.deploy.unattended.deployer import Deployer

    def failing_now(checks: Mapping[str, str]) -> str | None:
        return failing(checks, {}, session)

    return Deployer(creator.refresher.catalog, promotion_of(creator, session), failing_now, SystemClock())
