"""Options of a promotion, as data and as `key = value` texts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.errors import UserError
from headrace.schedule.durations import parse_duration
from headrace.schedule.options import choice

ROLLBACK, TELL = "rollback", "tell"
ON_TROUBLE = (ROLLBACK, TELL)
"""Choices of what follows when something goes wrong within the watch."""

KEYS = ("lag_threshold", "verify", "force", "rollback_window", "keep_fresh", "watch", "on_trouble")
CHECK = "check"
"""`check`, and `check_` with a name, for as many checks as there are to be."""


@dataclass(frozen=True, slots=True)
class PromotionOptions:
    """Options of a promotion.

    Args:
        force: Stop readers outside that miss columns.
        verify: Refuse unless generations of one definition have the same rows.
        dry_run: Only say what would happen.
        rollback_window: How long the former generation is kept.
        keep_fresh: Whether it is refreshed meanwhile.
        lag_threshold: A green that is behind for no longer is ready.
        checks: By name, queries of rows that must not be; they name public tables.
        watch: For how long schedulers watch what was promoted.
        on_trouble: `rollback` or `tell`, when something goes wrong within that.
    """

    force: bool = False
    verify: bool = False
    dry_run: bool = False
    rollback_window: dt.timedelta = dt.timedelta(hours=24)
    keep_fresh: bool = True
    lag_threshold: dt.timedelta = dt.timedelta(0)
    checks: Mapping[str, str] = field(default_factory=dict)
    watch: dt.timedelta | None = None
    on_trouble: str = ROLLBACK

    def __post_init__(self) -> None:
        """Refuse what contradicts itself.

        Raises:
            UserError: `INVALID_OPTION`.
        """
        choice("on_trouble", self.on_trouble, ON_TROUBLE)
        if self.watch is not None and self.on_trouble == ROLLBACK and self.watch > self.rollback_window:
            raise UserError(
                "INVALID_OPTION",
                "The watch is longer than the rollback_window, after which nothing can be taken back.",
                hint="Shorten the watch, or lengthen the rollback_window.",
            )


def parse_promotion_options(texts: Mapping[str, str], *others: str) -> PromotionOptions:
    """Read options of a promotion.

    Args:
        texts: Texts by key.
        others: Keys that somebody else reads.

    Raises:
        UserError: `INVALID_OPTION`, naming key and choices.
    """
    given = lowered(texts)
    checks = {key.removeprefix(CHECK + "_"): text for key, text in given.items() if is_check(key)}
    known = (*KEYS, *others)
    if unknown := sorted(key for key in given if key not in known and key not in checks and not is_check(key)):
        raise UserError(
            "INVALID_OPTION",
            f"No option of a promotion is called {', '.join(unknown)}.",
            hint=f"Options are {', '.join(known)}, check, and check_NAME.",
        )
    return PromotionOptions(
        force=_switch(given, "force", otherwise=False),
        verify=_switch(given, "verify", otherwise=False),
        rollback_window=duration("rollback_window", given.get("rollback_window", "24 hours")),
        keep_fresh=_switch(given, "keep_fresh", otherwise=True),
        lag_threshold=duration("lag_threshold", given.get("lag_threshold", "0 s")),
        checks=checks,
        watch=duration("watch", given["watch"]) if "watch" in given else None,
        on_trouble=given.get("on_trouble", ROLLBACK).lower(),
    )


def lowered(texts: Mapping[str, str]) -> dict[str, str]:
    """Return options with keys in lower case, as they are stored and shown."""
    return {key.strip().lower(): text.strip() for key, text in texts.items()}


def is_check(key: str) -> bool:
    """Return whether a key is that of a check."""
    return key == CHECK or (key.startswith(CHECK + "_") and len(key) > len(CHECK) + 1)


def duration(key: str, text: str) -> dt.timedelta:
    """Read a duration.

    Raises:
        UserError: `INVALID_OPTION`.
    """
    seconds = parse_duration(text)
    if seconds is None:
        raise UserError("INVALID_OPTION", f"{key} cannot be '{text}'.", hint="Write a duration: '10 minutes', '1h30m'.")
    return dt.timedelta(seconds=seconds)


def _switch(given: Mapping[str, str], key: str, *, otherwise: bool) -> bool:
    text = given.get(key, "true" if otherwise else "false")
    return choice(key, text.lower(), ("true", "false")) == "true"
