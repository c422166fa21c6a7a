"""Errors that stop a source because changes may have been missed, with remedies. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.errors import UserError
from headrace.sources.postgres.wal.slots import Slot

RESNAPSHOT: Final = "`headrace source resnapshot`"
"""The command that cures, as hints have it."""

REASONS: Final[Mapping[str, tuple[str, str]]] = {
    "wal_removed": (
        "the server needed the room of the log that it kept for it (max_slot_wal_keep_size)",
        "Raise max_slot_wal_keep_size on the server, or land more often.",
    ),
    "idle_timeout": (
        "nobody read it for as long as idle_replication_slot_timeout allows",
        "Raise idle_replication_slot_timeout on the server, or land more often; a source that is paused is not landed.",
    ),
    "wal_level_insufficient": (
        "wal_level was no longer logical",
        "Run there: ALTER SYSTEM SET wal_level = 'logical'; -- then restart.",
    ),
    "rows_removed": (
        "the server was a standby, and its primary removed rows of catalogs that the slot needed",
        "Set hot_standby_feedback = on on standbys.",
    ),
}
"""By `invalidation_reason`: what it means, and what to do first. Servers before 17 say `lost` only: it is the first."""


def lost(name: str, slot: Slot | None) -> UserError:
    """Return the error for a lost replication slot.

    Args:
        name: The slot.
        slot: As the server has it, invalidated; None where it is gone.
    """
    first = ""
    if slot is None:
        why = "it was dropped"
    else:
        reason = slot.reason or "wal_removed"
        meaning, first = REASONS.get(reason, (f"reason {reason}", ""))
        why = f"the server invalidated it, as {meaning}"
    return _stopped("SLOT_LOST", f"The replication slot {name} is lost: {why}.", first)


def moved(name: str) -> UserError:
    """Return the error for a slot that somebody else has consumed changes from."""
    return _stopped("SLOT_LOST", f"Somebody else moved the replication slot {name}.")


def changed(message: str) -> UserError:
    """Return the error for a server that was replaced or set back."""
    return _stopped("SOURCE_CHANGED", message)


def removed(message: str) -> UserError:
    """Return the error for tables whose changes were not captured, perhaps for a while."""
    return _stopped("CAPTURE_REMOVED", message)


def _stopped(code: str, message: str, first: str = "") -> UserError:
    return UserError(
        code,
        f"{message} Changes may have been missed, so nothing is landed until a new snapshot is taken; mirrors stay as "
        "they are.",
        hint=f"{first} When the server is the right one, take a new snapshot: {RESNAPSHOT}.".strip(),
    )
