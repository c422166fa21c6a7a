"""Random deployments over a random pipeline, each step written down, so that a failure prints its script."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from catalog_kit.stream_tables import empty_namespaces

from headrace.api.facade import Headrace
from headrace.catalog import Outcome
from headrace.catalog.state.reader import Reader
from headrace.errors import HeadraceError
from headrace.names import LAKE, STAGING, SYSTEM_NAMESPACE
from headrace.reasons import FullReason
from headrace.results.refresh_results import Status
from kit.random_dag import CURE, POISON, QUERIES, statement

Step = tuple[str, Callable[[], object]]
"""What is done, in words, and what does it."""

SOURCES, DEPLOYMENTS = ("x", "y"), ("one", "two")

REFUSALS = frozenset(
    {
        "ALREADY_PROMOTED",
        "CYCLE",
        "DEPLOYMENT_NOT_FOUND",
        "DEPLOYMENT_TORN",
        "GREEN_BEHIND",
        "GREEN_LOADING",
        "GREEN_OF_GREEN",
        "GREEN_OUTDATED",
        "GREEN_SOURCE",
        "GROUP_TORN",
        "IN_DEPLOYMENT",
        "NOT_PROMOTED",
        "READERS_BROKEN",
        "ROLLBACK_EXPIRED",
        "SOURCE_NOT_LOADED",
    }
)
"""What may be answered to a wish that makes no sense just now."""

ON_THE_WAY = frozenset(
    {
        "DEPLOYMENT_CHANGED",
        "DIVIDE_BY_ZERO",
        "GREEN_FAILED",
        "GROUP_CANNOT_FOLLOW",
        "GROUP_MEMBER_FAILED",
        "LEASE_HELD",
        "NOTHING_TO_PROMOTE",
        "NO_COMMON_CUT",
        "SCHEDULER_RUNNING",
        "STREAM_TABLE_NOT_FOUND",
        "TABLE_EXISTS",
        "TABLE_NOT_FOUND",
    }
)
"""What may be answered besides while queries fail, tables come and go, and others are at work."""

QUIET = frozenset(
    {
        None,
        FullReason.COST,
        FullReason.COMPANION_BEHIND,  # what was recomputed because of its cost before
        FullReason.FIRST_LOAD,
        FullReason.PROMOTED,
        FullReason.ROLLED_BACK,
    }
)
"""Why a public table may be recomputed that nobody defines anew."""


@dataclass
class RandomDeployments:
    """A pipeline, and whatever is done to it.

    Args:
        hr: The project.
        ns: Where the pipeline is.
        chance: Decides everything.
        tables: How many stream tables there are.
        steps: What is done, and how often.
        refusals: What may be answered to it.
        alone: Whether nobody else changes anything meanwhile.
    """

    hr: Headrace
    ns: str
    chance: random.Random
    tables: int = 6
    steps: Sequence[tuple[Callable[[RandomDeployments], Step], float]] = ()
    refusals: frozenset[str] = REFUSALS
    alone: bool = True
    script: list[str] = field(default_factory=list)
    done: dict[str, int] = field(default_factory=dict)
    redefined: set[str] = field(default_factory=set)
    came: int = 0

    def __post_init__(self) -> None:
        self.sources = [f"{self.ns}.{source}" for source in SOURCES]
        self.names = [f"{self.ns}.t{number}" for number in range(self.tables)]
        for source in self.sources:
            self.hr.sql(f"CREATE TABLE {source} (k BIGINT, g BIGINT, v BIGINT) USING iceberg")
            self.hr.sql(f"INSERT INTO {source} SELECT id, id % 5, id % 7 FROM range(20)")
        for place, name in enumerate(self.names):
            options = {"diamond_consistency": self.chance.choice(("none", "atomic", "aligned"))}
            query = self.query(place)
            self.script.append(f"{name} {options['diamond_consistency']}: {query}")
            self.hr.create_stream_table(name, query, options=options)

    def query(self, place: int) -> str:
        """Return a query over sources and tables before a place."""
        a, b = self.chance.sample([*self.sources, *self.names[max(0, place - 3) : place]], 2)
        return self.chance.choice(QUERIES).format(a=a, b=b)

    # ---- steps

    def step(self) -> None:
        """Do something, and look whether all is as it must be."""
        steps, weights = zip(*(self.steps or STEPS), strict=True)
        act: Callable[[RandomDeployments], Step]
        (act,) = self.chance.choices(steps, weights)
        words, call = act(self)
        self.script.append(words)
        before, error = self.definitions(), refusal(call)
        if error is None:
            kind = words.split()[0]
            self.done[kind] = self.done.get(kind, 0) + 1
        else:
            self.script[-1] += f"  -- {error.code}"
            assert error.code in self.refusals, self.told(f"{error} {error.detail}")
            assert not self.alone or self.definitions() == before, self.told("something was changed")
        self.check()

    def change(self) -> Step:
        sql = statement(self.chance, self.sources if self.alone else self.sources[:1])
        return sql, lambda: self.hr.sql(sql)

    def refresh(self) -> Step:
        if self.chance.random() < 0.4:
            return "refresh", self.hr.refresh
        name = self.chance.choice([t.name for t in self.hr.status() if t.name.startswith(self.ns)])
        return f"refresh {name}", lambda: self.hr.refresh(name)

    def create(self) -> Step:
        place = self.chance.randrange(self.tables)
        name, query = self.names[place], self.query(place) if self.chance.random() < 0.7 else None
        deployment, load = self.chance.choice(DEPLOYMENTS), self.chance.random() < 0.8
        words = f"create {name} in {deployment} load={load}: {query}"
        return words, lambda: self.hr.create_green(name, query, deployment=deployment, initialize=load)

    def promote(self) -> Step:
        how = {"force": self.chance.random() < 0.3, "verify": self.chance.random() < 0.3}
        kept = {"keep_fresh": self.chance.random() < 0.7, "rollback_window": dt.timedelta(self.chance.random() < 0.8)}
        name, deployment = self.one_or_all()
        words = f"promote {name or deployment} {how} {kept}"
        if name is not None:
            return words, lambda: self.hr.promote_green(name, **how, **kept)  # type: ignore[arg-type]
        return words, lambda: self.hr.promote_all_green(deployment or "", **how, **kept)  # type: ignore[arg-type]

    def roll_back(self) -> Step:
        name, deployment = self.one_or_all()
        return f"rollback {name or deployment}", lambda: self.hr.rollback_green(name, deployment=deployment)

    def cancel(self) -> Step:
        name, deployment = self.one_or_all()
        return f"cancel {name or deployment}", lambda: self.hr.cancel_green(name, deployment=deployment)

    def replace(self) -> Step:
        place = self.chance.randrange(self.tables)
        name, query = self.names[place], self.query(place)
        self.redefined.add(name)
        words = f"replace {name}: {query}"
        return words, lambda: self.hr.create_stream_table(name, query, or_replace=True)

    def maintain(self) -> Step:
        return "maintain", self.hr.maintain

    def new(self) -> Step:
        self.came += 1
        name, query, deployment = f"{self.ns}.n{self.came}", self.query(self.tables), self.chance.choice(DEPLOYMENTS)
        words = f"new {name} in {deployment}: {query}"
        return words, lambda: self.hr.create_green(name, query, deployment=deployment, new=True)

    def drop(self) -> Step:
        public = [t.name for t in self.hr.status() if t.name.startswith(f"{self.ns}.")]
        name, deployment = self.chance.choice(public), self.chance.choice(DEPLOYMENTS)
        return f"drop {name} in {deployment}", lambda: self.hr.drop_with_green(name, deployment)

    def auto(self) -> Step:
        deployment, conditions = self.chance.choice(DEPLOYMENTS), {"watch": "1 hour", "rollback_window": "2 hours"}
        if self.chance.random() < 0.5:
            conditions["check"] = f"SELECT k FROM {self.names[0]} WHERE v > 20"

        def call() -> object:
            self.hr.auto_promote(deployment, conditions)
            return self.hr.run(once=True) if self.alone else None

        return f"auto {deployment} {conditions}", call

    def run(self) -> Step:
        return "run", lambda: self.hr.run(once=True)

    def poison(self) -> Step:
        sql = POISON.replace("c.x", self.sources[0])
        return sql, lambda: self.hr.sql(sql)

    def cure(self) -> Step:
        sql = CURE.replace("c.x", self.sources[0])
        return sql, lambda: self.hr.sql(sql)

    def pause(self) -> Step:
        name = self.chance.choice([t.name for t in self.hr.status() if t.name.startswith(self.ns)])
        return f"pause {name}", lambda: self.hr.pause([name])

    def resume(self) -> Step:
        names = [t.name for t in self.hr.status() if t.name.startswith(self.ns)]
        return "resume", lambda: self.hr.resume(names)

    def one_or_all(self) -> tuple[str | None, str | None]:
        """Return a table that is in a deployment, mostly, or a deployment."""
        greens = [i for i in self.hr.green_status() if i.name.startswith(f"{self.ns}.")]
        if not greens or self.chance.random() < 0.05:
            return self.chance.choice(self.names), None
        chosen = self.chance.choice(greens)
        return (chosen.name, None) if self.chance.random() < 0.3 else (None, chosen.deployment)

    # ---- what must hold

    def definitions(self) -> object:
        """Return what must stay as it is when something is refused."""
        with self.hr._catalog.reading() as reader:
            return [(t.name, t.query, t.sources, t.companion) for t in reader.stream_tables()], reader.greens()

    def check(self) -> None:
        """Everything that was ever loaded equals its query; nothing lies about."""
        catalog = self.hr._catalog
        with catalog.reading() as reader:
            tables = {t.name: t for t in reader.stream_tables() if str(t.name).startswith(self.ns)}
            loaded = [str(n) for n in reader.frontiers() if n in tables and tables[n].status is not Status.NEW]
            assert not self.alone or not (found := left_behind(reader)), self.told(f"left behind: {found}")
            history = [e for n in tables for e in reader.history(n) if str(n) in self.names]
        assert not self.alone or catalog.dirty_staging() == (), self.told(str(catalog.dirty_staging()))
        wrong = [v for v in self.hr.verify(loaded) if not v.ok]
        assert not wrong, self.told(str(wrong))
        if not self.redefined:
            loud = [
                e for e in history if e.outcome is Outcome.OK and e.publication_id and _reason(e.reason) not in QUIET
            ]
            assert not loud, self.told(str(loud[:3]))

    def end(self) -> None:
        """Cancel everything: nothing of it may be left, and the pipeline goes on."""
        for deployment in {i.deployment for i in self.hr.green_status() if i.name.startswith(f"{self.ns}.")}:
            self.script.append(f"cancel {deployment}")
            self.hr.cancel_green(deployment=deployment)
        for sql in (CURE.replace("c.x", self.sources[0]), f"INSERT INTO {self.sources[0]} VALUES (1000, 1, 1)"):
            self.script.append(sql)
            self.hr.sql(sql)
        there = [t for t in self.hr.status() if t.name.startswith(f"{self.ns}.")]
        self.hr.resume([t.name for t in there])
        self.hr.refresh([t.name for t in there if t.status is not Status.STOPPED])
        self.check()
        with self.hr._catalog.reading() as reader:
            shown = [
                n for c in (LAKE, STAGING) for n in reader.pointers(c) if n.namespace[0].startswith(f"{self.ns}__")
            ]
            known = [r.name for r in reader.relations() if r.name.namespace[0].startswith(f"{self.ns}__")]
            held = [x for x in reader.leases() if x.owner is not None]
        assert [*shown, *known, *held] == [], self.told("something is left")

    def told(self, what: str) -> str:
        """Return a message with everything that was done so far."""
        return "\n".join([what, "after:", *self.script])


def refusal(call: Callable[[], object]) -> HeadraceError | None:
    """Return the error with which something ends."""
    try:
        call()
    except HeadraceError as error:
        return error
    return None


def left_behind(reader: Reader) -> set[str]:
    """Return stored tables that belong to no relation, change logs that nobody reads, and empty namespaces."""
    owned = {stored for t in reader.stream_tables() for stored in t.stored}
    owned |= {stored for source in reader.sources() for m in source.mirrors for stored in m.stored}
    names = {n.within(LAKE) for c in (LAKE, STAGING) for n in reader.pointers(c) if n.namespace[0] == SYSTEM_NAMESPACE}
    read = {source for sources in reader.dependencies().values() for source in sources}
    unread = {t.log for t in reader.stream_tables() if t.log is not None and t.name not in read}
    return {*map(str, names - owned), *map(str, unread), *empty_namespaces(reader)}


def _reason(text: str | None) -> FullReason | None:
    return None if text is None else FullReason(text)


STEPS = (
    (RandomDeployments.change, 6),
    (RandomDeployments.refresh, 5),
    (RandomDeployments.create, 5),
    (RandomDeployments.promote, 6),
    (RandomDeployments.roll_back, 4),
    (RandomDeployments.cancel, 1),
    (RandomDeployments.replace, 0.4),
    (RandomDeployments.maintain, 0.4),
)
"""What users do who are alone with a pipeline that never fails."""

TROUBLED = (
    *((act, often) for act, often in STEPS if act is not RandomDeployments.replace),
    (RandomDeployments.replace, 0.2),
    (RandomDeployments.new, 1),
    (RandomDeployments.drop, 0.7),
    (RandomDeployments.auto, 1),
    (RandomDeployments.run, 0.5),
    (RandomDeployments.poison, 0.5),
    (RandomDeployments.cure, 1.5),
    (RandomDeployments.pause, 0.4),
    (RandomDeployments.resume, 0.6),
)
"""Likewise while queries fail now and then, tables come and go, and schedulers promote."""
