"""Tells in words how far the deployments are that bring new stored layouts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from typing import TYPE_CHECKING

from headrace.catalog import Catalog

if TYPE_CHECKING:
    from headrace.deploy.deployment_results import GreenInfo


def layout_progress(catalog: Catalog, deployments: Collection[str], now: dt.datetime) -> dict[str, str]:
    """Return how far deployments are: `not made yet`, `40 % loaded`, `failed: …`.

    Args:
        catalog: The catalog.
        deployments: The deployments.
        now: The time.
    """
    if not deployments:
        return {}
    from headrace.deploy.green_status import green_infos  # not needed by most, and every `status` comes here

    infos = green_infos(catalog, [g for g in catalog.greens() if g.deployment in deployments], now)
    refused = {d.name: d for d in catalog.auto_deployments() if d.refused_code is not None}
    found = {}
    for deployment in deployments:
        own = [info for info in infos if info.deployment == deployment]
        word = next((text for info in own if (text := _unloaded(info)) is not None), None)
        if word is None and deployment in refused:
            word = f"refused: {refused[deployment].refused_code}: {refused[deployment].refused_reason}"
        found[deployment] = word or ("loaded" if own else "not made yet")
    return found


def _unloaded(info: GreenInfo) -> str | None:
    """Return why a green is not ready; None where it is."""
    if info.state == "blocked":
        return f"refused: {info.blocked_by[0]}"
    if info.state == "failed":
        return f"failed: {next(iter((info.detail or '').splitlines()), '')}"
    if info.state != "loading":
        return None
    progress = info.progress
    if progress is None or not progress.rows_written or not progress.rows_public:
        return info.detail
    return f"{min(99, 100 * progress.rows_written // progress.rows_public)} % loaded"
