"""Promotes greens, and takes promotions back, at one cut and under leases of all concerned."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.catalog import Catalog, Green, Role, StreamTable, resource_of
from headrace.catalog.state.reader import Reader
from headrace.clock import Clock
from headrace.definitions.details import Details, from_json
from headrace.deploy.blue_settings import settings_of, was_paused, with_pauses
from headrace.deploy.deployment_results import BrokenReader, Exchanged, LostKey, PromotionResult
from headrace.deploy.deployment_state import reading_deployments
from headrace.deploy.ending import end
from headrace.deploy.exchanging.column_changes import stops
from headrace.deploy.exchanging.common_cut import refuse_apart, refuse_cut_apart, refuse_followers_apart
from headrace.deploy.exchanging.differing import refuse_different
from headrace.deploy.exchanging.exchange import Exchange
from headrace.deploy.exchanging.followers import NONE_FOLLOW, Followers, cannot_follow, followers_in
from headrace.deploy.exchanging.halves import Half, Halves, Move, Pair
from headrace.deploy.exchanging.lost_keys import lost_keys
from headrace.deploy.generation_names import promoted_name, taken_back_name
from headrace.deploy.objections import READERS_BROKEN, against_promotion, against_roll_back, broken_in, refuse
from headrace.deploy.promotion_checks import refuse_failing
from headrace.deploy.promotion_options import PromotionOptions
from headrace.deploy.readiness import already_exchanged, ordered, refuse_altered, refuse_changed, refuse_torn
from headrace.deploy.unattended.watch import watch_of
from headrace.errors import HeadraceError
from headrace.names import TableName
from headrace.reasons import FullReason
from headrace.refresh import gather_facts
from headrace.refresh.cut.cut import Cut
from headrace.refresh.definition.create import Creator
from headrace.refresh.groups.group_refresh import GroupRefresh
from headrace.refresh.groups.grouping import grouping_of
from headrace.refresh.held_leases import Held, holding_leases_in_turn

TRIES = 4
"""Attempts to bring generations to one cut; between two of them, others may have moved one."""

PATIENCE = 60.0
"""Seconds to wait for refreshes of what is exchanged."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """An exchange that was asked for.

    Args:
        chosen: The second generations, producers first.
        after: The same members as they are afterwards.
        reason: `PROMOTED` or `ROLLED_BACK`.
        begun: When it was asked for.
        broken: Readers outside that stop with it.
        how: How to promote; None for a roll-back.
        why: Why, for the history; "" where somebody asked for it.
    """

    chosen: Sequence[Green]
    after: Sequence[Green]
    reason: FullReason
    begun: dt.datetime
    broken: Sequence[BrokenReader] = ()
    how: PromotionOptions | None = None
    why: str = ""

    @property
    def tolerant(self) -> bool:
        """Return whether tables that cannot be refreshed stay behind, rather than have it refused."""
        return self.reason is FullReason.ROLLED_BACK

    @property
    def stopping(self) -> frozenset[str]:
        """Return the names of readers that stop with it."""
        return frozenset(b.reader for b in self.broken)


class Promotion:
    """Exchanges the generations of stream tables.

    Args:
        catalog: The catalog.
        creator: Refreshes units.
        exchange: Writes and publishes.
        clock: Tells the time.
    """

    def __init__(self, catalog: Catalog, creator: Creator, exchange: Exchange, clock: Clock) -> None:
        self.catalog = catalog
        self.creator = creator
        self.exchange = exchange
        self.clock = clock

    def promote(self, chosen: Sequence[Green], how: PromotionOptions) -> PromotionResult:
        """Put greens in the place of the public stream tables.

        Args:
            chosen: The greens, of one deployment.
            how: What was asked for.

        Raises:
            UserError: `ALREADY_PROMOTED`, `DEPLOYMENT_TORN`, `GREEN_OUTDATED`, `GREEN_FAILED`, `READERS_BROKEN`,
                `CHECK_FAILED`, `GREEN_DIFFERS`, `TABLE_EXISTS`, `GROUP_TORN`, `GROUP_CANNOT_FOLLOW`.
            EnvironmentFault: `GREEN_LOADING`, `GREEN_BEHIND`, `NO_COMMON_CUT`, `LEASE_HELD`; retryable.
        """
        if done := next((g for g in chosen if g.promoted_at is not None), None):
            raise already_exchanged(done)
        begin = time.monotonic()
        chosen = ordered(chosen, self.catalog)
        after = [replace(g, name=promoted_name(g)) for g in chosen]
        defaults, begun = self.creator.refresher.defaults, self.clock.now()
        with reading_deployments(self.catalog) as state:
            objections = tuple(against_promotion(chosen, state, begun, how, defaults))
            refuse(o for o in objections if not (how.dry_run and o.error.code == READERS_BROKEN))
            broken = broken_in(chosen, state)
            followers = followers_in(state, chosen, defaults, stopping={b.reader for b in broken})
            tables = state.tables  # of this one state: somebody may drop the greens right after it
        keys = self._lost_keys(chosen, tables)
        if how.dry_run:
            if how.checks:  # over the greens as they are: nothing is refreshed for a dry run
                refuse_failing(how.checks, {g.original: g.name for g in chosen}, self.exchange.session)
            return PromotionResult(
                chosen[0].deployment,
                tuple(_exchanged(g, later.name, tables) for g, later in zip(chosen, after, strict=True)),
                broken=broken,
                dry_run=True,
                followed=tuple(map(str, followers.names)),
                lost_keys=keys,
                blocked_by=tuple(o.words for o in objections),
            )
        result = self._exchange(_Asked(chosen, after, FullReason.PROMOTED, begun, broken, how))
        seconds = round(time.monotonic() - begin, 3)
        return replace(result, seconds=seconds, lost_keys=keys)

    def roll_back(self, chosen: Sequence[Green], why: str = "") -> PromotionResult:
        """Put former generations back in the place of the public stream tables.

        Args:
            chosen: The former generations, of one deployment.
            why: Why, for the history; "" where somebody asked for it.

        Raises:
            UserError: `NOT_PROMOTED`, `ROLLBACK_EXPIRED`, `DEPLOYMENT_TORN`, `GREEN_OUTDATED`, `READERS_BROKEN`,
                `TABLE_EXISTS`.
            EnvironmentFault: `NO_COMMON_CUT`, `LEASE_HELD`; retryable.
        """
        begin = time.monotonic()
        chosen = ordered(chosen, self.catalog)
        begun = self.clock.now()
        with reading_deployments(self.catalog) as state:
            refuse(against_roll_back(chosen, state, begun))
        after = [replace(g, name=taken_back_name(g), promoted_at=None, keep_until=None, watch=None) for g in chosen]
        result = self._exchange(_Asked(chosen, after, FullReason.ROLLED_BACK, begun, why=why))
        return replace(result, seconds=round(time.monotonic() - begin, 3))

    def cancel(self, chosen: Sequence[Green]) -> tuple[TableName, ...]:
        """Drop second generations with all that they store; what is public stays so.

        Args:
            chosen: The members; greens that read each other go together.

        Returns:
            What was dropped, producers first.

        Raises:
            UserError: `DEPLOYMENT_TORN`.
            EnvironmentFault: `LEASE_HELD` while one of them is refreshed; retryable.
        """
        chosen = ordered(chosen, self.catalog)
        refuse_torn(chosen, self.catalog.greens(), self.catalog.dependencies(), dropped=True)
        return end(chosen, self.catalog, self.creator, patience=PATIENCE)

    # ---- steps

    def _exchange(self, asked: _Asked) -> PromotionResult:
        """Bring generations to one cut, and exchange them there; others may move them meanwhile."""
        chosen = asked.chosen
        for number in range(TRIES):
            whole = number % 2 == 1  # every other time, as a group that fails may stand still without the exchange
            followers = self._followers(chosen, asked.stopping, tolerant=asked.tolerant, whole=whole)
            self._bring_together(chosen, followers, self.creator.refresher.heads(), tolerant=asked.tolerant)
            names = {g.original for g in chosen} | {g.name for g in (*chosen, *asked.after)} | set(followers.names)
            resources = [resource_of(n) for n in sorted(names)]
            with holding_leases_in_turn(self.catalog, resources, patience=PATIENCE) as leases:
                # once more, as somebody may have been faster; under the leases it is little, and nobody is
                heads = self.creator.refresher.heads()
                failed = self._bring_together(chosen, followers, heads, tolerant=asked.tolerant, held=leases)
                asked = self._still_asked(asked)
                grouping = grouping_of(self.catalog, self.creator.refresher.defaults)
                members = {g.original: grouping.members(g.original) for g in chosen if g.role is Role.EXCHANGE}
                try:
                    cut, moved_on = self._common_cut(asked, members, followers, heads, whole=whole and failed is None)
                except HeadraceError as error:
                    if error.code != "NO_COMMON_CUT" or number == TRIES - 1 or failed is not None:
                        raise failed or error from None
                    continue
                return self._publish(asked, leases, heads, cut, moved_on=moved_on)
        raise AssertionError("the last try returns or raises")

    def _still_asked(self, asked: _Asked) -> _Asked:
        """Look once more, under the leases, what stands against an exchange, and who stops with it.

        Somebody may have created a reader meanwhile. What is to pass by itself is seen to where it matters.

        Raises:
            UserError: As for `promote` and `roll_back`.
        """
        chosen, how = asked.chosen, asked.how
        with reading_deployments(self.catalog) as state:
            if how is None:
                objections = against_roll_back(chosen, state, asked.begun)
            else:
                objections = against_promotion(chosen, state, asked.begun, how, self.creator.refresher.defaults)
            refuse(o for o in objections if not o.error.retryable)
            return replace(asked, broken=broken_in(chosen, state))

    def _common_cut(
        self,
        asked: _Asked,
        members: Mapping[TableName, Collection[TableName]],
        followers: Followers,
        heads: Cut,
        *,
        whole: bool,
    ) -> tuple[dict[TableName, int], bool]:
        """Return the cut of an exchange, and whether that is what moves a group on to it.

        Raises:
            EnvironmentFault: `NO_COMMON_CUT`, retryable.
        """
        with self.catalog.reading() as reader:
            try:
                cut = refuse_apart(asked.chosen, reader, members)
            except HeadraceError:
                if not whole:
                    raise
                return self._moved_on(asked.chosen, reader, members, followers, heads), True
            if not asked.tolerant:
                refuse_followers_apart(followers.names, reader, cut)
            return cut, False

    def _publish(
        self,
        asked: _Asked,
        leases: Held,
        heads: Cut,
        cut: Mapping[TableName, int],
        *,
        moved_on: bool,
    ) -> PromotionResult:
        """Write both generations at a cut and publish; on an error nothing is left of it."""
        chosen, how = asked.chosen, asked.how
        tolerant = asked.tolerant and not moved_on
        if how is not None and how.checks:
            refuse_failing(how.checks, {g.original: g.name for g in chosen}, self.exchange.session)
        pairs, moves = self._states(chosen, asked.after)
        self.exchange.put_back(pairs, moves, leases())  # what a process that was killed has left
        tables = {t.name: t for t in self.catalog.stream_tables()}
        settings = {p.green.name: settings_of(p.other.table) for p in pairs}
        settings |= {m.green.name: settings_of(m.state.table) for m in moves}
        settings = with_pauses(settings, self.catalog.scheduling_states())
        following: GroupRefresh | None = None
        try:
            halves = self.exchange.write(pairs, moves, chosen[0].deployment)
            if how is not None and how.verify:
                refuse_different(halves, self.exchange.session)
            moved = {half.name for half, _ in halves.pairs if half.moved}
            followers = self._followers(chosen, asked.stopping, tolerant=tolerant, changed=moved, whole=moved_on)
            following = self._following(followers, halves, heads, leases, tolerant=tolerant, moved_on=moved_on)
            greens = [replace(then, blue=settings[g.name]) for g, then in zip(chosen, asked.after, strict=True)]
            if how is not None:  # only now, or its window and its watch would pass while it waits
                greens = _stamped(greens, how, self.clock.now())
            record, seconds = self.exchange.publish(
                halves,
                greens,
                leases,
                reason=asked.reason,
                stops=stops(asked.broken, tables),
                why=asked.why,
                following=following,
                groups=followers.groups if following is not None else (),
                **_pauses(chosen, greens, how),
            )
        except BaseException as error:
            if following is not None:
                following.give_up(error)
            self.exchange.put_back(pairs, moves, leases())
            raise
        return PromotionResult(
            chosen[0].deployment,
            _results(halves, chosen),
            publication=record.id,
            publish_seconds=round(seconds, 4),
            broken=tuple(asked.broken),
            frontier={str(root): version for root, version in cut.items()},
            keep_until=greens[0].keep_until,
            followed=tuple(map(str, followers.names)) if following is not None else (),
        )

    def _states(self, chosen: Sequence[Green], after: Sequence[Green]) -> tuple[list[Pair], list[Move]]:
        pairs, moves = [], []
        for green, later in zip(chosen, after, strict=True):
            state = gather_facts.known(self.catalog, green.name)
            if green.role is Role.EXCHANGE:
                pairs.append(Pair(green, gather_facts.known(self.catalog, green.original), state, later.name))
            else:
                moves.append(Move(green, state, later.name))
        return pairs, moves

    def _followers(
        self,
        chosen: Sequence[Green],
        stopping: Collection[str],
        *,
        tolerant: bool,
        changed: Collection[TableName] | None = None,
        whole: bool = False,
    ) -> Followers:
        """Return members of groups that are published with an exchange of others.

        Args:
            chosen: The second generations.
            stopping: Readers that stop with it.
            tolerant: Have nobody follow where not all can, rather than refuse that.
            changed: The public tables whose rows change; None where only definitions can tell.
            whole: As for `followers_of`; then also those follow whose last refresh failed, as groups fail together.
        """
        defaults = self.creator.refresher.defaults
        with reading_deployments(self.catalog) as state:
            refuse_changed(chosen, state.greens)  # else one that was dropped just now has no definition here
            try:
                return followers_in(state, chosen, defaults, stopping=stopping, changed=changed, whole=whole)
            except HeadraceError:
                if not tolerant:
                    raise
                return NONE_FOLLOW

    def _moved_on(
        self,
        chosen: Sequence[Green],
        reader: Reader,
        members: Mapping[TableName, Collection[TableName]],
        followers: Followers,
        heads: Cut,
    ) -> dict[TableName, int]:
        """Return the cut to which an exchange moves groups that stand still without it.

        Raises:
            EnvironmentFault: `NO_COMMON_CUT`, retryable.
        """
        moving = {*followers.names, *followers.behind}
        cut = refuse_apart(chosen, reader, {name: set(unit) - moving for name, unit in members.items()})
        refuse_cut_apart(cut, heads.versions(cut))
        exchanged, tables = {g.original for g in chosen}, {t.name: t for t in reader.stream_tables()}
        read = {source for name in followers.names for source in tables[name].sources if source in tables}
        refuse_followers_apart(sorted(read - exchanged - moving), reader, cut)
        return cut

    def _following(
        self,
        followers: Followers,
        halves: Halves,
        heads: Cut,
        leases: Held,
        *,
        tolerant: bool,
        moved_on: bool,
    ) -> GroupRefresh | None:
        """Refresh what follows an exchange over what is staged of it, up to publishing.

        Where the exchange moves a group on, its members follow whether rows are exchanged or not.

        Raises:
            HeadraceError: `GROUP_CANNOT_FOLLOW`, or what may pass, unless that is to be tolerated.
        """
        staged = {half.name: head for half, _ in halves.pairs if (head := half.staged) is not None}
        if not followers.names or not (staged or moved_on):
            return None
        beside = {half.name: half.details for half, _ in halves.pairs if half.name in staged}
        following = self.creator.follow(followers.names, heads, staged, beside, leases)
        try:
            if following.begin() is not None:
                return None
            for part in following.parts:
                following.prepare(part)
        except BaseException as error:
            following.give_up(error)
            if not isinstance(error, HeadraceError) or (error.retryable and not tolerant):
                raise
            if not tolerant:
                raise cannot_follow(followers, error) from error
            return None
        return following

    def _bring_together(
        self,
        chosen: Sequence[Green],
        followers: Followers,
        heads: Cut,
        *,
        tolerant: bool,
        held: Held = tuple,
    ) -> HeadraceError | None:
        """Refresh both generations against one cut; public tables that cannot be stay behind.

        Args:
            chosen: The second generations.
            followers: What is published with them.
            heads: The cut.
            tolerant: Let these stay behind as well, as a fuse that has blown on both sides leaves them at one cut.
            held: Leases that the caller holds.

        Returns:
            Why a second generation stayed behind.
        """
        failed: HeadraceError | None = None
        grouping = grouping_of(self.catalog, self.creator.refresher.defaults)
        self._refuse_changed(chosen)
        greens = {grouping.units.unit_of[g.name] for g in chosen if not g.public}
        public = {g.original for g in chosen}.union(*followers.groups)
        public = {grouping.units.unit_of[name] for name in public if name in grouping.units.unit_of}
        # what lies between them and the root sources, too: or they would reflect these at different ages
        for unit in grouping.units.dag.order({*greens, *public, *grouping.units.dag.upstream(*greens, *public)}):
            try:
                self.creator.refresh_group(grouping.units.members[unit], heads, patience=PATIENCE, held=held)
            except HeadraceError as error:
                if error.code == "CUT_OVERTAKEN":  # whoever was waited for has seen more
                    continue
                if unit in greens and not tolerant:
                    raise
                failed = failed or (error if unit in greens else None)
        return failed

    def _refuse_changed(self, chosen: Sequence[Green]) -> None:
        """Refuse, under the leases, what somebody else has exchanged or altered meanwhile."""
        with self.catalog.reading() as reader:
            refuse_changed(chosen, reader.greens())
            tables = {t.name: t for t in reader.stream_tables()}
        for green in chosen:
            refuse_altered(green, tables)

    def _lost_keys(self, chosen: Sequence[Green], tables: Mapping[TableName, StreamTable]) -> tuple[LostKey, ...]:
        after = {g.original: from_json(tables[g.name].details) for g in chosen if g.role is Role.EXCHANGE}
        return lost_keys(self.catalog, tables, after, {n for g in chosen for n in (g.original, g.name)})


def _exchanged(green: Green, then: TableName, tables: Mapping[TableName, StreamTable]) -> Exchanged:
    """Return what a promotion would make of a member."""
    if green.role is not Role.EXCHANGE:
        return Exchanged(str(green.original), None if then == green.original else str(then), role=green.role.value)
    before, after = (from_json(tables[name].details) for name in (green.original, green.name))
    added, dropped = _columns_changed(before, after)
    return Exchanged(str(green.original), str(then), columns_added=added, columns_dropped=dropped)


def _stamped(greens: Sequence[Green], how: PromotionOptions, now: dt.datetime) -> list[Green]:
    """Return members as they are once they are promoted, now."""
    watch, until = watch_of(how, now), now + how.rollback_window
    noted = None if watch is None else watch.to_json()
    return [replace(g, promoted_at=now, keep_until=until, watch=noted) for g in greens]


def _pauses(
    chosen: Sequence[Green], greens: Sequence[Green], how: PromotionOptions | None
) -> dict[str, tuple[TableName, ...]]:
    """Return what a promotion pauses to keep it frozen, or a roll-back has refreshed again."""
    if how is not None:
        return {"pauses": () if how.keep_fresh else tuple(g.name for g in greens if not g.public)}
    both = zip(chosen, greens, strict=True)
    return {"unpauses": tuple(then.name for g, then in both if not (g.public or was_paused(g.blue)))}


def _columns_changed(before: Details, after: Details) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return names of columns that come, and of those that go."""
    old, new = ([c.name for c in details.output] for details in (before, after))
    return tuple(c for c in new if c not in old), tuple(c for c in old if c not in new)


def _results(halves: Halves, chosen: Sequence[Green]) -> tuple[Exchanged, ...]:
    """Return what became of members, producers first."""
    found = {public.name: _result(public, other) for public, other in halves.pairs}
    for half in (*halves.arriving, *halves.leaving):
        green = next(g for g in chosen if g.name == half.state.table.name)
        rows, arrives = half.state.newest.row_count if half.state.newest else None, half in halves.arriving
        found[green.original] = Exchanged(
            str(green.original),
            None if arrives else str(half.name),
            rows if arrives else 0,
            0 if arrives else rows,
            role=green.role.value,
        )
    return tuple(found[g.original] for g in chosen)


def _result(public: Half, other: Half) -> Exchanged:
    added, dropped = _columns_changed(from_json(public.state.table.details), public.details)
    return Exchanged(str(public.name), str(other.name), public.outcome.inserted, public.outcome.deleted, added, dropped)
