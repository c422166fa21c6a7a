"""Scheduling options of a stream table, parsed from texts and validated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from headrace.errors import UserError
from headrace.schedule.durations import parse_duration
from headrace.suggestions import did_you_mean


class Consistency(StrEnum):
    """Treatment of the diamonds that meet at a table."""

    NONE = "none"
    ATOMIC = "atomic"
    ALIGNED = "aligned"


class Policy(StrEnum):
    """The policy by which a group is due: with any of its members, or with all that are behind."""

    FASTEST = "fastest"
    SLOWEST = "slowest"


class Ties(StrEnum):
    """Treatment of a query whose result depends on ties that its ORDER BY leaves."""

    REFINE = "refine"
    """It is ordered further, so that there is one result."""
    REFINE_FLOATS = "refine_floats"
    """Likewise, and floats below another operator are added up in a fixed order, each group in memory."""
    REFUSE = "refuse"
    """It is refreshed FULL."""


TIERS: Mapping[str, float | None] = {"hot": 1.0, "warm": 2.0, "cold": 10.0, "frozen": None}
"""By how much a tier stretches durations; a frozen table is not refreshed by schedule."""


DEPLOY_POOL = "[deploy]"
"""The pool of stream tables that belong to a deployment, whatever theirs is once they are public."""


@dataclass(frozen=True, slots=True)
class Options:
    """Scheduling options of a stream table.

    Args:
        tier: One of `TIERS`.
        pool: The pool whose quota it counts against; "" for none.
        timeout: Seconds after which a refresh is cancelled; None for never.
        diamond_consistency: For the diamonds that meet at it; None for the project's.
        diamond_schedule_policy: For the group it ends; None for the project's.
        refresh_group: The group that the user declared it to be in; "" for none.
        fuse_ceiling: Changed rows of its sources above which its fuse blows; 0 for no limit, None for the project's.
        fuse_factor: The same as a multiple of the largest of its recent changes.
        ties: What becomes of ties; None for what was decided when the table was defined, which is to refine them.
    """

    tier: str = "hot"
    pool: str = ""
    timeout: int | None = None
    diamond_consistency: Consistency | None = None
    diamond_schedule_policy: Policy | None = None
    refresh_group: str = ""
    fuse_ceiling: int | None = None
    fuse_factor: float | None = None
    ties: Ties | None = None

    @property
    def factor(self) -> float | None:
        """Return the factor by which durations are stretched; None for a frozen table."""
        return TIERS[self.tier]


KEYS = tuple(Options.__dataclass_fields__)
_NOTHING_SAID = Options()


def parse_options(texts: Mapping[str, str]) -> Options:
    """Read options.

    Args:
        texts: Texts by key; keys in any case.

    Raises:
        UserError: `INVALID_OPTION`, naming key and choices.
    """
    if not texts:
        return _NOTHING_SAID
    given = {key.lower(): text.strip() for key, text in texts.items()}
    if unknown := sorted(set(given) - set(KEYS)):
        raise UserError(
            "INVALID_OPTION",
            f"No property is called {', '.join(unknown)}.",
            hint=f"{did_you_mean(unknown[0], KEYS)}Properties are {', '.join(KEYS)}.",
        )
    consistency = given.get("diamond_consistency")
    policy = given.get("diamond_schedule_policy")
    return Options(
        tier=choice("tier", given.get("tier", "hot"), TIERS),
        pool=given.get("pool", ""),
        timeout=_timeout(given.get("timeout")),
        diamond_consistency=None if consistency is None else parse_consistency(consistency),
        diamond_schedule_policy=None if policy is None else parse_policy(policy),
        refresh_group=given.get("refresh_group", ""),
        fuse_ceiling=None if (rows := given.get("fuse_ceiling")) is None else parse_ceiling(rows),
        fuse_factor=None if (factor := given.get("fuse_factor")) is None else parse_factor(factor),
        ties=None if (ties := given.get("ties")) is None else Ties(choice("ties", ties, tuple(Ties))),
    )


def parse_consistency(text: str) -> Consistency:
    """Read `diamond_consistency`.

    Raises:
        UserError: `INVALID_OPTION`.
    """
    return Consistency(choice("diamond_consistency", text, tuple(Consistency)))


def parse_policy(text: str) -> Policy:
    """Read `diamond_schedule_policy`.

    Raises:
        UserError: `INVALID_OPTION`.
    """
    return Policy(choice("diamond_schedule_policy", text, tuple(Policy)))


def parse_ceiling(text: str) -> int:
    """Read `fuse_ceiling`: a number of rows; 0 for `none`.

    Raises:
        UserError: `INVALID_OPTION`.
    """
    if text.lower() == "none":
        return 0
    if not re.fullmatch(r"\d{1,18}", text) or not int(text):
        raise UserError(
            "INVALID_OPTION", f"fuse_ceiling cannot be '{text}'.", hint="Write a number of rows above 0, or 'none'."
        )
    return int(text)


def parse_factor(text: str) -> float:
    """Read `fuse_factor`: a number of at least 1; 0 for `none`.

    Raises:
        UserError: `INVALID_OPTION`.
    """
    if text.lower() == "none":
        return 0.0
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text) or float(text) < 1:
        raise UserError(
            "INVALID_OPTION", f"fuse_factor cannot be '{text}'.", hint="Write a number of at least 1, or 'none'."
        )
    return float(text)


def choice(key: str, text: str, choices: Mapping[str, object] | tuple[str, ...]) -> str:
    """Return a text that must be one of several, in any case.

    Raises:
        UserError: `INVALID_OPTION`.
    """
    if text.lower() not in choices:
        raise UserError("INVALID_OPTION", f"{key} cannot be '{text}'.", hint=f"Use {', '.join(choices)}.")
    return text.lower()


def _timeout(text: str | None) -> int | None:
    if text is None:
        return None
    seconds = parse_duration(text)
    if not seconds:
        raise UserError(
            "INVALID_OPTION", f"timeout cannot be '{text}'.", hint="Write a duration, such as '10 minutes'."
        )
    return seconds
