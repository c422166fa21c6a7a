"""Makes finished refreshes visible, puts unfinished ones back, and records what failed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from headrace.catalog import Catalog, ForeignWrite, HistoryEntry, Lease, Outcome, Publication
from headrace.clock import Clock
from headrace.errors import HeadraceError
from headrace.events import Events, GroupPublished, Notice, RefreshFailed, RefreshFinished, RefreshGivenUp
from headrace.names import TableName
from headrace.refresh import gather_facts
from headrace.refresh.guards import STOPPING
from headrace.refresh.preparation import Attempt
from headrace.refresh.publication_builder import (
    Finished,
    along_with,
    published_together,
    result_of,
    rolled_back,
    unpublished,
)
from headrace.results.refresh_results import Mode, RefreshResult


class Publishing:
    """Ends refreshes, in one way or the other.

    Args:
        catalog: The catalog.
        events: Told what happens.
        clock: Tells the time.
    """

    def __init__(self, catalog: Catalog, events: Events, clock: Clock) -> None:
        self.catalog = catalog
        self.events = events
        self.clock = clock
        self._recordings: list[dict[TableName, Finished]] = []

    @contextmanager
    def recording(self) -> Iterator[Mapping[TableName, Finished]]:
        """Give the refreshes that are published while the block lasts, as they were planned and run."""
        found: dict[TableName, Finished] = {}
        self._recordings.append(found)
        try:
            yield found
        finally:
            self._recordings = [each for each in self._recordings if each is not found]

    def publish(
        self,
        done: Sequence[Finished],
        leases: tuple[Lease, ...],
        group: tuple[TableName, ...] = (),
        along: Publication | None = None,
    ) -> dict[TableName, RefreshResult]:
        """Publish refreshes in one transaction.

        Args:
            done: The refreshes; what reads another of them comes after it.
            leases: Leases on all the tables.
            group: All members of the group that they are, also unchanged ones; () for a table alone.
            along: What else becomes visible in that transaction.

        Returns:
            Their results, by table.
        """
        begin = time.perf_counter()
        if done or along is not None:
            publication = published_together(done, leases, group)
            self.catalog.publish_or_settle(publication if along is None else along_with(along, publication))
        took = time.perf_counter() - begin
        results = {}
        for one in done:
            one.outcome.seconds["publish"] = round(took, 4)
            if one.outcome.written.keys() != one.published.keys():
                self.catalog.reset_staging(one.outcome.written, held=leases)
            result = result_of(one, one.seconds + took)
            self.events.emit(
                RefreshFinished(
                    result.name, result.mode.value, result.rows_inserted, result.rows_deleted, result.seconds
                )
            )
            results[one.facts.name] = result
            if one.choice.mode is Mode.NO_CHANGE:  # a member that was defined anew has a record already
                continue
            for recording in self._recordings:
                recording[one.facts.name] = one
        if group and done:
            self.events.emit(GroupPublished(str(group[-1]), tuple(str(one.facts.name) for one in done)))
        return results

    def put_back(self, tables: Sequence[TableName], leases: tuple[Lease, ...]) -> None:
        """Reset the staging pointers of a group that cannot be published."""
        with suppress(HeadraceError):  # whoever refreshes these tables next puts them back first
            self.catalog.reset_staging(tables, held=leases)

    def recover(self, state: gather_facts.TableState, leases: tuple[Lease, ...]) -> None:
        """Put back what an unfinished refresh left in `staging`."""
        if back := self.catalog.reset_staging(state.table.stored, held=leases):
            names = ", ".join(str(t) for t in back)
            self.events.emit(Notice(f"Recovered {names}: an unfinished refresh was put back."))

    def begun_again(self, names: Sequence[TableName], error: HeadraceError) -> None:
        """Tell of stream tables that are computed again, because of an error that is none of theirs."""
        self.events.emit(Notice(f"{error.message} Computing {', '.join(map(str, names))} again."))

    def restored(self, back: Sequence[ForeignWrite]) -> None:
        """Tell of stored tables that are again what was published, not what others made of them."""
        for write in back:
            self.events.emit(Notice(f"{write.name} {write.what}; what Headrace had published was restored."))

    def failed(self, name: TableName, attempt: Attempt, error: HeadraceError, done: Sequence[Finished] = ()) -> None:
        """Record a failure, stop the table where no refresh can help, and put back what was written.

        Args:
            name: The stream table.
            attempt: Its refresh.
            error: What went wrong.
            done: Refreshes of other members of its group, which come to nothing; history has them, too.
        """
        if error.code == "LEASE_HELD":
            return  # it never began; of two schedulers that look at one table this happens to one all the time
        self.events.emit(RefreshFailed(str(name), error.code, error.message))
        failure = HistoryEntry(
            stream=name,
            started_at=attempt.started,
            finished_at=self.clock.now(),
            mode=attempt.mode,
            outcome=Outcome.FAILED,
            stages=dict(attempt.stages),
            error_code=error.code,
            error_message=str(error),
        )
        try:
            self.catalog.record((*(rolled_back(one, name, error) for one in done if one.facts.name != name), failure))
            if error.code in STOPPING:
                self.catalog.stop(name, error.code, f"{error.message} {error.hint or ''}".strip())
            table = self.catalog.find_stream_table(name)
            if table is not None:
                self.catalog.reset_staging(table.stored)
        except HeadraceError:
            return  # the catalog itself is the trouble; the error that is already on its way says so

    def tell_given_up(self, names: Sequence[TableName]) -> None:
        """Tell that nothing comes of the refreshes of a group, whichever of them have begun."""
        for name in names:
            self.events.emit(RefreshGivenUp(str(name)))

    def given_up(self, done: Sequence[Finished], error: HeadraceError) -> None:
        """Record that refreshes come to nothing though no member of their group has failed.

        Args:
            done: The refreshes.
            error: Why they are given up.
        """
        with suppress(HeadraceError):  # the catalog itself may be the trouble
            self.catalog.record(tuple(unpublished(one, f"It was not published: {error.message}") for one in done))
