"""Cycles iterated on DuckDB: random graphs and histories, against closures computed by plain Python loops."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from kit.duck import DuckExecutor
from kit.duck_runner import DuckRunner
from kit.maintained import table_name

from headrace.algebra.relations import Scan, Stored
from headrace.algebra.schema import Column
from headrace.compiler.compiled_view import CompiledView
from headrace.compiler.view_compiler import ViewCompiler
from headrace.errors import UserError
from headrace.names import WEIGHT, TableName, quote
from headrace.refresh.groups import cycle_fixpoint
from headrace.refresh.groups.cycle_fixpoint import Fixpoint, Member, Outside
from headrace.sql.lower import lower

Edge = tuple[int, ...]

EVEN_ODD = {
    "odd": "SELECT s, d FROM edges UNION SELECT e.s, o.d FROM even AS o JOIN edges AS e ON e.d = o.s",
    "even": "SELECT e.s, o.d FROM odd AS o JOIN edges AS e ON e.d = o.s WHERE o.s IS NOT NULL",
}
"""Ways of odd and of even length. Copies are removed on one side only: `even` is a bag."""


def even_odd(edges: Iterable[Edge]) -> dict[str, Counter[Edge]]:
    edges = list(edges)
    odd: set[Edge] = set()
    while True:
        even = Counter((s, d) for s, m in edges for n, d in odd if m == n)
        more = set(edges) | {(s, d) for s, m in edges for n, d in even if m == n}
        if more == odd:
            return {"odd": Counter(odd), "even": even}
        odd = more


CLOSURE = {"path": "SELECT s, d FROM edges UNION SELECT a.s, b.d FROM path AS a JOIN path AS b ON a.d = b.s"}
"""Reads itself twice in one join."""


def closure(edges: Iterable[Edge]) -> dict[str, Counter[Edge]]:
    found = set(edges)
    while more := {(s, d) for s, m in found for n, d in found if m == n} - found:
        found |= more
    return {"path": Counter(found)}


MARKED = {
    "near": "SELECT DISTINCT d AS n FROM edges WHERE s = 0 UNION ALL SELECT n FROM far WHERE n % 2 = 0",
    "far": "SELECT d AS n FROM edges WHERE EXISTS (SELECT 1 FROM near WHERE near.n = edges.s) "
    "AND d NOT IN (SELECT n FROM walls) UNION SELECT n + 1 FROM near WHERE n < 3",
}
"""EXISTS over a member, NOT IN over something else, and a member that keeps copies of another."""


def marked(edges: Iterable[Edge], walls: Iterable[Edge]) -> dict[str, Counter[Edge]]:
    edges, blocked = list(edges), {w for (w,) in walls}
    far: set[Edge] = set()
    while True:
        near = Counter({(d,): 1 for s, d in edges if s == 0})
        near.update((n,) for (n,) in far if n % 2 == 0)
        more = {(d,) for s, d in edges if (s,) in near and d not in blocked} | {(n + 1,) for (n,) in near if n < 3}
        if more == far:
            return {"near": near, "far": Counter(far)}
        far = more


class Recorded(DuckRunner):
    """Tells by their temporary names for what Spark would have been asked to broadcast something."""

    def __init__(self, executor: DuckExecutor) -> None:
        super().__init__(executor)
        self.sending: dict[str, bool] = {}

    def materialize(self, name: str, sql: str, aggregates: Mapping[str, str] | None = None) -> dict[str, Any]:
        self.sending[name] = "BROADCAST(" in sql
        return super().materialize(name, sql, aggregates)

    def sent(self, number: int) -> bool:
        """Whether that was so in a round of the fixpoint that was computed last."""
        return any(sending for name, sending in self.sending.items() if f"_{number}_" in name)


class Cycle:
    """Members over base tables in one DuckDB."""

    def __init__(self, queries: Mapping[str, str], bases: Mapping[str, tuple[str, ...]]) -> None:
        self.duck = DuckExecutor()
        self.runner = Recorded(self.duck)
        self.bases = {name: [Column(c, "int") for c in columns] for name, columns in bases.items()}
        for name, columns in self.bases.items():
            self.duck.define(name, columns, [])
        self.columns: dict[str, tuple[Column, ...]] = {name: tuple(c) for name, c in self.bases.items()}
        for name in queries:
            self.columns[name] = tuple(Column(c, "int") for c in (("n",) if queries is MARKED else ("s", "d")))
            self.duck.define(name, self.columns[name], [])
        self.views = {name: self._compiled(query) for name, query in queries.items()}
        self.number = 0

    def _compiled(self, query: str) -> CompiledView:
        def describe(sql: str) -> tuple[Column, ...]:
            for name in self.columns:
                sql = sql.replace(table_name(name).sql, quote(name))
            return self.duck.describe(sql)

        found = ViewCompiler(
            resolve=lambda parts: table_name(parts[-1]), schema=lambda name: self.columns[name.table], describe=describe
        ).compile(query)
        assert not found.refusals, found.refusals
        return found

    def fixpoint(self, outside: Mapping[str, Outside], *, onwards: bool, limit: int = 100) -> Fixpoint:
        self.number += 1
        members: dict[TableName, Member] = {}
        for name, view in self.views.items():
            own = {source: outside[source.table] for source in view.sources if source.table in self.bases}
            members[table_name(name)] = Member(view, own, quote(name) if onwards else None)
        found = Fixpoint(members, self.runner, tag=f"t{self.number}", limit=limit)
        if onwards:
            found.onwards()
        else:
            found.from_nothing()
        return found

    def define(self, name: str, rows: Iterable[Edge]) -> None:
        self.duck.define(name, self.bases[name], list(rows))

    def load(self, *, limit: int = 100) -> dict[str, Counter[Edge]]:
        """From nothing; the members' tables then hold the result."""
        plain = {name: Outside(quote(name)) for name in self.bases}
        return self._stored(self.fixpoint(plain, onwards=False, limit=limit))

    def follow(self, gained: Mapping[str, list[Edge]], *, counted: bool = True) -> dict[str, Counter[Edge]]:
        """Onwards from the members' tables, after base tables gained rows."""
        outside = {}
        self.runner.sending.clear()
        for name, columns in self.bases.items():
            outside[name] = Outside(quote(name))
            if rows := gained.get(name):
                self.duck.keep(f"{name}_before", f"SELECT * FROM {quote(name)}")
                weighted = [(*row, 1) for row in rows]
                self.duck.define(f"{name}_change", [*columns, Column(WEIGHT, "bigint")], weighted)
                held = self.duck.rows(f"SELECT * FROM {quote(name)}")
                self.define(name, [*held, *rows])
                change = f"SELECT * FROM {quote(f'{name}_change')}"
                outside[name] = Outside(quote(name), quote(f"{name}_before"), change, len(rows) if counted else None)
        fixpoint = self.fixpoint(outside, onwards=True)
        before = {name: self.rows(name) for name in self.views}
        gains = {name: fixpoint.gains(table_name(name)) for name in self.views}
        news = {
            name: Counter({tuple(r[:-1]): r[-1] for r in self.duck.rows(lower(gained[0], _by_name))})
            for name, gained in gains.items()
            if gained
        }
        after = self._stored(fixpoint)
        assert {n: before[n] + news.get(n, Counter()) for n in before} == after, "what was gained is not what came"
        return after

    def rows(self, name: str) -> Counter[Edge]:
        return Counter(self.duck.rows(f"SELECT * FROM {quote(name)}"))

    def _stored(self, fixpoint: Fixpoint) -> dict[str, Counter[Edge]]:
        for name in self.views:
            self.duck.keep(f"{name}_next", f"SELECT * FROM {quote(fixpoint.contents(table_name(name)))}")
        fixpoint.close()
        assert not self.runner.kept, "temporary results were left behind"
        for name in self.views:
            self.duck.keep(name, f"SELECT * FROM {quote(f'{name}_next')}")
        return {name: self.rows(name) for name in self.views}


def _by_name(leaf: Scan | Stored) -> str:
    assert isinstance(leaf, Stored)
    return quote(leaf.name)


def edges_of(rng: random.Random, nodes: int, count: int) -> list[Edge]:
    return sorted({(rng.randrange(nodes), rng.randrange(nodes)) for _ in range(count)})


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("queries", "expected"), [(EVEN_ODD, even_odd), (CLOSURE, closure)])
def test_random_histories(queries: Mapping[str, str], expected: type[even_odd], seed: int) -> None:
    rng = random.Random(seed)
    cycle = Cycle(queries, {"edges": ("s", "d")})
    edges = edges_of(rng, 9, 6)
    cycle.define("edges", edges)
    assert cycle.load() == expected(edges)
    for _ in range(4):
        if rng.random() < 0.6:
            new = [e for e in edges_of(rng, 9, 3) if e not in edges]
            edges += new
            found = cycle.follow({"edges": new})
        else:
            edges = [e for e in edges if rng.random() < 0.7]
            cycle.define("edges", edges)
            found = cycle.load()
        assert found == expected(edges)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_judged_by_something_else(seed: int) -> None:
    rng = random.Random(seed)
    cycle = Cycle(MARKED, {"edges": ("s", "d"), "walls": ("n",)})
    edges, walls = edges_of(rng, 8, 12), [(rng.randrange(8),)]
    cycle.define("edges", edges)
    cycle.define("walls", walls)
    assert cycle.load() == marked(edges, walls)
    for _ in range(3):
        new = [e for e in edges_of(rng, 8, 2) if e not in edges]
        edges += new
        assert cycle.follow({"edges": new}) == marked(edges, walls)


def test_a_long_way_takes_as_many_rounds() -> None:
    cycle = Cycle(EVEN_ODD, {"edges": ("s", "d")})
    edges = [(i, i + 1) for i in range(30)]
    cycle.define("edges", edges)
    assert cycle.load(limit=30) == even_odd(edges)
    with pytest.raises(UserError) as caught:
        cycle.load(limit=29)
    assert caught.value.code == "CYCLE_NOT_SETTLED"
    assert "shop.odd" in caught.value.message or "shop.even" in caught.value.message


def test_what_never_ends_is_an_error() -> None:
    cycle = Cycle({"up": "SELECT s, d FROM edges UNION SELECT s + 1, d FROM up"}, {"edges": ("s", "d")})
    cycle.define("edges", [(1, 1)])
    with pytest.raises(UserError, match=r"still gained rows after 20 rounds .*shop.up 1\)"):
        cycle.load(limit=20)


def test_nothing_comes_of_nothing() -> None:
    cycle = Cycle(EVEN_ODD, {"edges": ("s", "d")})
    assert cycle.load() == {"odd": Counter(), "even": Counter()}
    assert cycle.follow({"edges": [(1, 1)]}) == even_odd([(1, 1)])


def test_what_is_known_already_is_no_gain() -> None:
    cycle = Cycle(EVEN_ODD, {"edges": ("s", "d")})
    cycle.define("edges", [(1, 2), (2, 3), (3, 4)])
    before = cycle.load()
    after = cycle.follow({"edges": [(1, 4)]})
    assert after["odd"] == before["odd"]


def test_what_changed_outside_is_sent_to_every_task_only_where_it_is_known_to_be_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cycle = Cycle(EVEN_ODD, {"edges": ("s", "d")})
    edges = [(i, i + 1) for i in range(4)]
    cycle.define("edges", edges)
    cycle.load()
    sent = []
    monkeypatch.setattr(cycle_fixpoint, "FEW_CHANGED_ROWS", 2)
    for gained, counted in (([(5, 6)], True), ([(7, 8)], False), ([(8, 9), (9, 10), (10, 11)], True)):
        edges += gained
        assert cycle.follow({"edges": gained}, counted=counted) == even_odd(edges)
        sent.append(cycle.runner.sent(1))
    assert sent == [True, False, False]
