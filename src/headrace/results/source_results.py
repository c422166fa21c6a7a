"""Results of landing, listing and checking sources: frozen data, printable, JSON-able."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.catalog import SourceStatus
from headrace.catalog.sources.source_health import SourceFailure
from headrace.results.refresh_results import Record

if TYPE_CHECKING:
    from headrace.sources.source_kind import HealthLine


@dataclass(frozen=True, slots=True)
class LandingResult(Record):
    """The result of landing a source.

    Args:
        source: The source.
        transactions: Transactions of the database that were landed.
        rows: Changes of rows they had, or rows of new snapshots.
        inserted: Rows that appeared in mirrors.
        deleted: Rows that disappeared.
        mirrors: Mirrors that changed.
        caught_up: Whether nothing more was committed when reading began.
        seconds: Wall time.
        held: Of a source of several servers, those of which nothing was landed, and why.
    """

    source: str
    transactions: int
    rows: int
    inserted: int
    deleted: int
    mirrors: tuple[str, ...]
    caught_up: bool
    seconds: float
    held: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class SourceInfo(Record):
    """One line of `headrace source list`.

    Args:
        name: The source.
        kind: What kind of database.
        url: Where it is, without a password.
        status: NEW, ACTIVE, PAUSED or STOPPED.
        mirrors: Its mirrors.
        gone: Mirrors whose table was dropped.
        follows: By mirror, the name of a table that was renamed since the source was created.
        position: What is landed, as the database writes positions; None before the first landing.
        landed_at: When something was last landed.
        stopped_reason: Why it is STOPPED.
    """

    name: str
    kind: str
    url: str
    status: SourceStatus
    mirrors: tuple[str, ...]
    gone: tuple[str, ...]
    follows: Mapping[str, str] = dataclasses.field(hash=False)
    position: str | None
    landed_at: dt.datetime | None
    stopped_reason: str | None


@dataclass(frozen=True, slots=True)
class LastError(SourceFailure, Record):
    """The last failure of landing a source, as users are given it."""

    @classmethod
    def of(cls, failure: SourceFailure | None) -> LastError | None:
        """Return the record of a failure that the catalog keeps; None for none."""
        return None if failure is None else cls(**dataclasses.asdict(failure))


@dataclass(frozen=True, slots=True)
class SourceHealth(Record):
    """A source's health at its server, as in `headrace source status`.

    Figures are attributes, too: `health.lag_seconds`. Which ones there are is the kind's to say; PostgreSQL's are
    those of its `Figures`.

    Args:
        name: The source.
        status: NEW, ACTIVE, PAUSED or STOPPED.
        figures: What its server says, for programs.
        lines: The same for people.
        landed_at: When something was last landed.
        stopped_reason: Why it is STOPPED.
        last_error: The last failure of landing it, also one that is over.
    """

    name: str
    status: SourceStatus
    figures: Mapping[str, Any] = dataclasses.field(hash=False)
    lines: tuple[HealthLine, ...]
    landed_at: dt.datetime | None
    stopped_reason: str | None
    last_error: LastError | None

    def __getattr__(self, name: str) -> Any:
        """Return a figure of that name."""
        if name in type(self).__slots__ or name not in self.figures:  # copying asks before anything is there
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        return self.figures[name]

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values; figures are fields beside the others."""
        own = Record.as_dict(self)
        del own["lines"]
        return {"name": own.pop("name"), "status": own.pop("status"), **own.pop("figures"), **own}


@dataclass(frozen=True, slots=True)
class SourceCheck(Record):
    """One thing that must be so before a source can be captured.

    Args:
        name: What it is about.
        ok: Whether it is as it must be.
        finding: How it is.
        remedy: What to run on the server, where something is wrong and a statement helps.
    """

    name: str
    ok: bool
    finding: str
    remedy: str | None
