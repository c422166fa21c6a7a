"""Results as the API returns them."""

import datetime as dt
from typing import Any

from headrace.reasons import FullReason
from headrace.results.refresh_results import (
    HistoryRow,
    Mode,
    RefreshMode,
    RefreshResult,
    RefusalInfo,
    Status,
    StreamTableInfo,
)

NOW = dt.datetime(2026, 6, 1, 12, 0, tzinfo=dt.UTC)


def refreshed(name: str = "shop.revenue", **changes: Any) -> RefreshResult:
    values: dict[str, Any] = {
        "name": name,
        "mode": Mode.DIFFERENTIAL,
        "reason": None,
        "detail": None,
        "rows_inserted": 1204,
        "rows_deleted": 3,
        "seconds": 0.31,
        "frontier": {"shop.orders": 4},
    }
    return RefreshResult(**values | changes)


def info(name: str = "shop.revenue", **changes: Any) -> StreamTableInfo:
    values: dict[str, Any] = {
        "name": name,
        "status": Status.ACTIVE,
        "refresh_mode": RefreshMode.AUTO,
        "schedule": "1 minute",
        "incremental": True,
        "refusals": (),
        "behind": ("shop.orders",),
        "frontier": {"shop.orders": 4},
        "version": 2,
        "rows": 6001215,
        "consumers": (),
        "last_refresh": NOW - dt.timedelta(minutes=3),
        "last_mode": Mode.DIFFERENTIAL,
        "last_reason": None,
        "last_seconds": 0.31,
        "last_error": None,
        "stopped_reason": None,
    }
    return StreamTableInfo(**values | changes)


def refusal(message: str = "rand() is not a function of the sources") -> RefusalInfo:
    return RefusalInfo(FullReason.NOT_DETERMINISTIC, "rand()", message, 1, 8, "Leave it out.")


def past(**changes: Any) -> HistoryRow:
    values: dict[str, Any] = {
        "name": "shop.revenue",
        "started_at": NOW,
        "seconds": 1.5,
        "mode": Mode.FULL,
        "reason": FullReason.FIRST_LOAD,
        "detail": "first load",
        "ok": True,
        "rows_inserted": 10,
        "rows_deleted": 0,
        "rows_after": 10,
        "stages": {"compute": 1.0},
        "frontier": {"shop.orders": 1},
        "error_code": None,
        "error_message": None,
        "publication": 7,
        "jobs": 2,
    }
    return HistoryRow(**values | changes)
