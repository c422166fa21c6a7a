"""Creates, promotes, takes back and cancels second generations of stream tables."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.api.project_handle import ProjectHandle
from headrace.api.refresh_mode import parse_mode
from headrace.clock import SystemClock
from headrace.errors import UserError
from headrace.results.refresh_results import RefreshResult
from headrace.schedule import parse_schedule
from headrace.schedule.options import parse_options

if TYPE_CHECKING:
    from headrace.catalog import Green
    from headrace.deploy.deployment_results import GreenInfo, PromotionResult
    from headrace.deploy.promotion import Promotion
    from headrace.deploy.promotion_options import PromotionOptions
    from headrace.deploy.unattended.promotion_conditions import PromotionConditions

DAY = dt.timedelta(hours=24)
NO_LAG = dt.timedelta(0)
NO_CONDITIONS: Mapping[str, str] = {}


class DeployVerbs(ProjectHandle):
    """Verbs that change a running pipeline without anybody noticing."""

    def create_green(
        self,
        name: str,
        query: str | None = None,
        schedule: str | None = None,
        refresh_mode: str | None = None,
        options: Mapping[str, str] | None = None,
        deployment: str = "green",
        initialize: bool = True,
        auto_promote: Mapping[str, str] | None = None,
        new: bool = False,
    ) -> RefreshResult | None:
        """Build a second generation of a stream table beside the running one, and load it.

        Greens of one deployment read each other where the originals read the original, and public tables elsewhere.
        They are kept up like all stream tables, and are queried as `<namespace>__<deployment>.<table>`.

        Args:
            name: The public stream table.
            query: Its new query; None keeps the one it has.
            schedule: As for `create_stream_table`; None keeps it.
            refresh_mode: `AUTO`, `FULL` or `DIFFERENTIAL`; None keeps it.
            options: As for `create_stream_table`; None keeps them.
            deployment: What is promoted together.
            initialize: Load it now; else a scheduler, or the next refresh, does.
            auto_promote: Have schedulers promote the deployment on these conditions, as `auto_promote` does; give them
                with the last of its greens.
            new: There is no public stream table of that name yet: the promotion brings it. It needs a query.

        Returns:
            The first load; None when `initialize` is off.

        Raises:
            UserError: `GREEN_OF_GREEN`, `IN_DEPLOYMENT`, `GREEN_IN_CYCLE`, `CYCLE`, `TABLE_EXISTS`, `INVALID_NAME`, or
                what is wrong with the query or a check; nothing was created then.
        """
        from headrace.deploy.create_green import GreenSpec, create_green
        from headrace.deploy.load_journal import noting_loads

        self._catalog.refuse_one_by_one()
        if options is not None:
            parse_options(options)
        conditions = None if auto_promote is None else self._parsed(auto_promote)
        wanted = GreenSpec(
            self._name(name),
            deployment,
            query,
            None if schedule is None else parse_schedule(schedule).text,
            None if refresh_mode is None else parse_mode(refresh_mode),
            options,
            initialize,
            new,
            checks={} if conditions is None else conditions.options.checks,
        )
        engine, clock = self._engine(), SystemClock()
        with noting_loads(self._catalog, self.events, clock):
            loaded = create_green(
                wanted,
                catalog=self._catalog,
                session=self._lazy,
                plans=engine.views,
                creator=engine.creator,
                clock=clock,
            )
        if auto_promote is not None:
            self.auto_promote(deployment, auto_promote)
        return loaded

    def auto_promote(self, deployment: str = "green", conditions: Mapping[str, str] | None = NO_CONDITIONS) -> None:
        """Have schedulers promote a deployment as soon as conditions hold; or not any more.

        That is: all its greens have converged, the window is open, and the promotion is not refused. A refusal is told
        once as an event, stands in `green_status`, and is tried again every minute. The promotion ends it.

        Args:
            deployment: The deployment.
            conditions: Texts by key; None to leave promoting to users again. `window`: when, `02:00-04:00` of each day
                in UTC, or `FROM/UNTIL`. `check`, or `check_NAME`: queries of rows that must not be; they name public
                tables in full, for which the greens are read. `verify`, `force`, `lag_threshold`, `rollback_window`,
                `keep_fresh`, `watch`, `on_trouble`: as for `promote_green`.

        Raises:
            UserError: `DEPLOYMENT_NOT_FOUND`, `NOTHING_TO_PROMOTE`, `INVALID_OPTION`, or what is wrong with a check.
        """
        from headrace.deploy.promotion_checks import refuse_invalid
        from headrace.deploy.unattended.promotion_conditions import conditions_to_json

        chosen = self._chosen(None, deployment)
        if conditions is None:
            self._catalog.set_auto_promote(deployment, None)
            return
        options = self._parsed(conditions).options
        greens = {green.original: green.name for green in chosen if green.promoted_at is None}
        if not greens:
            raise UserError(
                "NOTHING_TO_PROMOTE",
                f"All of deployment {deployment} was promoted already.",
                hint=f"`headrace deploy status --all {deployment}` shows where it stands.",
            )
        refuse_invalid(options.checks, greens, self._lazy)
        self._catalog.set_auto_promote(deployment, conditions_to_json(conditions))

    def _parsed(self, conditions: Mapping[str, str]) -> PromotionConditions:
        from headrace.deploy.unattended.promotion_conditions import parse_conditions

        return parse_conditions(conditions)

    def drop_with_green(self, name: str, deployment: str = "green") -> None:
        """Make a public stream table part of a deployment whose promotion drops it.

        Until then nothing changes. The promotion is refused while tables that remain read it; afterwards it is
        `<namespace>__<deployment>_previous.<table>` as long as the promotion can be taken back, which makes it public
        again with all that it had.

        Args:
            name: The public stream table.
            deployment: The deployment; it is one from then on, if there was none of that name.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`, `GREEN_OF_GREEN`, `IN_DEPLOYMENT`, `GREEN_IN_CYCLE`, `INVALID_NAME`.
        """
        self._catalog.refuse_one_by_one()
        from headrace.deploy.create_green import drop_with

        drop_with(self._name(name), deployment, catalog=self._catalog, clock=SystemClock())

    def green_status(
        self, name: str | None = None, *, deployment: str | None = None, lag_threshold: dt.timedelta | None = None
    ) -> tuple[GreenInfo, ...]:
        """Tell where deployments stand; reads the catalog only.

        Args:
            name: A stream table; None for all.
            deployment: A deployment; None for all.
            lag_threshold: A green that is behind for no longer counts as converged; None for the one on which its
                deployment promotes itself.

        Raises:
            UserError: `DEPLOYMENT_NOT_FOUND`.
        """
        from headrace.api.schedules.project_defaults import defaults_of
        from headrace.deploy.green_status import green_infos

        greens = self._catalog.greens() if name is None and deployment is None else self._chosen(name, deployment)
        now = dt.datetime.now(dt.UTC)
        return green_infos(self._catalog, greens, now, lag_threshold, defaults=defaults_of(self.settings))

    def promote_green(
        self,
        name: str,
        *,
        force: bool = False,
        verify: bool = False,
        dry_run: bool = False,
        rollback_window: dt.timedelta = DAY,
        keep_fresh: bool = True,
        lag_threshold: dt.timedelta = NO_LAG,
        checks: Mapping[str, str] = NO_CONDITIONS,
        watch: dt.timedelta | None = None,
        on_trouble: str = "rollback",
    ) -> PromotionResult:
        """Put a green in the place of its public stream table, in one transaction.

        Both generations are brought to one cut first. The public table keeps its identity, its versions and whoever
        reads it; these receive the difference as one change. What was public is kept as
        `<namespace>__<deployment>_previous.<table>`.

        Args:
            name: The public stream table.
            force: Stop stream tables outside that read columns which are gone or have another type.
            verify: Refuse a green of the same definition whose rows differ.
            dry_run: Check, and tell what would happen; refreshes nothing, so that it looks at greens as they are.
            rollback_window: How long the former generation is kept.
            keep_fresh: Whether it is refreshed meanwhile, so that taking the promotion back is quick.
            lag_threshold: A green that is behind for no longer is ready.
            checks: By name, queries of rows that must not be; they name public tables in full, for which the greens
                are read.
            watch: For so long schedulers look out for a blown fuse, failing checks and failed refreshes.
            on_trouble: What they do then: `rollback`, or `tell`, which is an event only.

        Raises:
            UserError: `DEPLOYMENT_NOT_FOUND`, `DEPLOYMENT_TORN`, `ALREADY_PROMOTED`, `GREEN_OUTDATED`, `GREEN_FAILED`,
                `READERS_BROKEN`, `CHECK_FAILED`, `GREEN_DIFFERS`, `INVALID_OPTION`, `TABLE_EXISTS`.
            EnvironmentFault: `GREEN_LOADING`, `GREEN_BEHIND`, `NO_COMMON_CUT`, `LEASE_HELD`; retryable.
        """
        from headrace.deploy.promotion_options import PromotionOptions

        how = PromotionOptions(
            force, verify, dry_run, rollback_window, keep_fresh, lag_threshold, checks, watch, on_trouble
        )
        return self._promote(self._chosen(name, None), how)

    def promote_all_green(
        self,
        deployment: str = "green",
        *,
        force: bool = False,
        verify: bool = False,
        dry_run: bool = False,
        rollback_window: dt.timedelta = DAY,
        keep_fresh: bool = True,
        lag_threshold: dt.timedelta = NO_LAG,
        checks: Mapping[str, str] = NO_CONDITIONS,
        watch: dt.timedelta | None = None,
        on_trouble: str = "rollback",
    ) -> PromotionResult:
        """Put all greens of a deployment in the place of their public stream tables.

        Those that were promoted before stay so. Arguments and errors are those of `promote_green`.
        """
        from headrace.deploy.promotion_options import PromotionOptions

        how = PromotionOptions(
            force, verify, dry_run, rollback_window, keep_fresh, lag_threshold, checks, watch, on_trouble
        )
        return self._promote(_left(self._chosen(None, deployment), None, promoted=False), how)

    def rollback_green(self, name: str | None = None, *, deployment: str | None = None) -> PromotionResult:
        """Take a promotion back: former generations become public again, in one transaction.

        They are brought to the public tables' cut first. The greens are greens again afterwards.

        Args:
            name: The public stream table.
            deployment: The deployment, in place of a name: what of it was promoted.

        Raises:
            UserError: `DEPLOYMENT_NOT_FOUND`, `NOT_PROMOTED`, `ROLLBACK_EXPIRED`, `GREEN_OUTDATED`, `DEPLOYMENT_TORN`,
                `READERS_BROKEN`, `TABLE_EXISTS`.
            EnvironmentFault: `NO_COMMON_CUT`, `LEASE_HELD`; retryable.
        """
        from headrace.events import RolledBack

        done = self._promotion().roll_back(_left(self._chosen(name, deployment), name, promoted=True))
        self._decided(RolledBack(done.deployment, tuple(table.name for table in done.tables)))
        return done

    def cancel_green(self, name: str | None = None, *, deployment: str | None = None) -> tuple[str, ...]:
        """Drop second generations with all that they store.

        Of a promotion that ends the time in which it can be taken back.

        Args:
            name: The public stream table.
            deployment: The deployment, in place of a name.

        Returns:
            What was dropped.

        Raises:
            UserError: `DEPLOYMENT_NOT_FOUND`, `DEPLOYMENT_TORN`.
            EnvironmentFault: `LEASE_HELD` while one of them is refreshed; retryable.
        """
        return tuple(str(n) for n in self._promotion().cancel(self._chosen(name, deployment)))

    def _promote(self, chosen: tuple[Green, ...], how: PromotionOptions) -> PromotionResult:
        from headrace.events import Promoted

        done = self._promotion().promote(chosen, how)
        if not done.dry_run:
            self._decided(Promoted(done.deployment, tuple(table.name for table in done.tables)))
        return done

    def _chosen(self, name: str | None, deployment: str | None) -> tuple[Green, ...]:
        from headrace.deploy.readiness import find

        if (name is None) == (deployment is None):
            raise UserError("INVALID_OPTION", "Name either a stream table or a deployment.")
        return find(self._catalog, name=None if name is None else self._name(name), deployment=deployment)

    def _promotion(self) -> Promotion:
        from headrace.api.deploying.promoting import promotion_of

        return promotion_of(self._engine().creator, self._lazy)


def _left(found: tuple[Green, ...], name: str | None, *, promoted: bool) -> tuple[Green, ...]:
    """Return the members of a deployment that an exchange is still to be made of.

    All of them where none is left, so that the exchange itself says why it cannot be; so for a table that was named.
    """
    return found if name is not None else tuple(g for g in found if (g.promoted_at is not None) is promoted) or found
