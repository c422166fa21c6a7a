"""Recursions through random histories of graphs: what comes and what goes is followed, whatever cycles there are.

Edges come, go, move and are there several times; cycles appear where no way leads, or where the depth ends them.
"""

from __future__ import annotations

from random import Random

import pytest
from kit.case import Case, Row, Table, Weighted, Window
from kit.duck import DuckExecutor
from kit.long_tests import LONG
from kit.maintained import Maintained, replay

from headrace.algebra.relations import Recursive, Stored
from headrace.algebra.schema import Column
from headrace.algebra.tree import walk

EXECUTOR = DuckExecutor()
SEEDS = range(60 if LONG else 4)
"""So many histories of each recursion, or fewer where its result has changed often enough before."""
WINDOWS = 5

COLUMNS = {
    "edges": (Column("a", "int"), Column("b", "int"), Column("w", "int")),
    "tops": (Column("n", "int"),),
    "banned": (Column("n", "int"),),
}

WITH_AN_END = {
    "every way": """WITH RECURSIVE r(n) AS (SELECT n FROM tops UNION ALL
        SELECT e.b FROM r JOIN edges e ON e.a = r.n) SELECT n FROM r""",
    "two starts, shown changed": """WITH RECURSIVE r(n, top) AS (
        (SELECT n, n FROM tops UNION ALL SELECT b, a FROM edges WHERE a = 0) UNION ALL
        SELECT e.b, r.top FROM r JOIN edges e ON e.a = r.n) SELECT top, n, n + 1 AS next FROM r""",
}
"""Recursions that only the data end: ways must not lead back."""

ENDED = {
    "depth": """WITH RECURSIVE r(n, d) AS (SELECT n, 0 FROM tops UNION ALL
        SELECT e.b, d + 1 FROM r JOIN edges e ON e.a = r.n WHERE d < 3) SELECT d, n FROM r""",
    "without the depth": """WITH RECURSIVE r(n, d, w) AS (SELECT n, 0, 0 FROM tops UNION ALL
        SELECT e.b, d + 1, r.w + e.w FROM r JOIN edges e ON e.a <=> r.n AND d < 3) SELECT * FROM r""",
    "allowed": """WITH RECURSIVE r(n, d) AS (SELECT n, 0 FROM tops UNION ALL
        SELECT e.b, d + 1 FROM r JOIN edges e ON e.a = r.n WHERE d < 3
        AND NOT EXISTS (SELECT 1 FROM banned x WHERE x.n = e.b)) SELECT d, n FROM r""",
    "asked for": """WITH RECURSIVE r(n, d) AS (SELECT n, 0 FROM tops UNION ALL
        SELECT r.n + 1, d + 1 FROM r WHERE d < 3 AND EXISTS (SELECT 1 FROM edges e WHERE e.a = r.n AND e.w < 2))
        SELECT d, n FROM r""",
    "padded": """WITH RECURSIVE r(n, d) AS (SELECT n, 0 FROM tops UNION ALL
        SELECT e.b, d + 1 FROM r LEFT JOIN edges e ON e.a = r.n AND e.w > 0 WHERE d < 2) SELECT d, n FROM r""",
    "branches": """WITH RECURSIVE r(n, d) AS (SELECT n, 0 FROM tops UNION ALL (
        SELECT e.b, d + 1 FROM r JOIN edges e ON e.a = r.n WHERE d < 2
        UNION ALL SELECT e.a, d + 1 FROM edges e JOIN r ON e.b = r.n WHERE d < 2)) SELECT d, n FROM r""",
    "groups": """WITH RECURSIVE r(n, d) AS (SELECT n, 0 FROM tops UNION ALL
        SELECT e.m, d + 1 FROM r JOIN (SELECT a, max(b) AS m FROM edges GROUP BY a) e ON e.a = r.n WHERE d < 3)
        SELECT d, n FROM r""",
    "two changed sides": """WITH RECURSIVE r(n, d) AS (SELECT n, 0 FROM tops UNION ALL
        SELECT e.b, d + 1 FROM r JOIN edges e ON e.a = r.n JOIN tops t ON t.n <> e.w WHERE d < 2) SELECT d, n FROM r""",
}
"""Recursions that end by themselves, whatever the data."""

_R = """WITH RECURSIVE r(n, d) AS (SELECT n, 0 FROM tops UNION ALL
    SELECT e.b, d + 1 FROM r JOIN edges e ON e.a = r.n WHERE d < 3) """

BELOW = {
    "a condition": _R + "SELECT n, d FROM r WHERE d > 0 AND n <> 2",
    "a join": _R + "SELECT r.n, d, e.w FROM r LEFT JOIN edges e ON e.b = r.n AND e.w > 0",
    "groups": _R + "SELECT n, count(*) AS c, min(d) AS least FROM r GROUP BY n",
    "a join and groups": _R
    + "SELECT e.w, sum(r.d) AS s FROM r JOIN edges e ON e.a = r.n GROUP BY e.w HAVING count(*) > 1",
    "distinct": _R + "SELECT DISTINCT n FROM r",
    "first rows": _R + "SELECT n, d FROM r ORDER BY d DESC NULLS LAST, n LIMIT 3",
    "first groups": _R + "SELECT n, count(*) AS c FROM r GROUP BY n ORDER BY c DESC, n LIMIT 2 OFFSET 1",
    "a window": _R + "SELECT n, d, rank() OVER (PARTITION BY n ORDER BY d) AS k FROM r",
    "itself": _R + "SELECT x.n, y.d FROM r x JOIN r y ON x.n = y.n AND x.d < y.d",
    "not exists": _R + "SELECT e.a, e.b FROM edges e WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.n = e.a)",
    "a value": _R + "SELECT e.a, (SELECT count(*) FROM r) AS c FROM edges e WHERE e.w = 0",
    "a union": _R + "SELECT n FROM r UNION ALL SELECT b FROM edges",
}
"""Recursions below other operators."""

COMPUTED_AGAIN = {
    "a median": _R + "SELECT n, CAST(median(d) AS DECIMAL(9,2)) AS m FROM r GROUP BY n",
    "another recursion": """WITH RECURSIVE r(n, d) AS (SELECT n, 0 FROM tops UNION ALL
        SELECT e.b, d + 1 FROM r JOIN edges e ON e.a = r.n WHERE d < 2), q(n, d) AS (SELECT n, d FROM r UNION ALL
        SELECT n + 1, d + 1 FROM q WHERE d < 1) SELECT q.n, q.d FROM q JOIN r ON r.n = q.n""",
}
"""Those that are computed as they were and as they are."""


def _case(query: str, seed: int, *, cycles: bool) -> Case:
    random = Random(f"{query} {seed}")
    contents: dict[str, list[Row]] = {name: [] for name in COLUMNS}
    _window(contents, random, cycles=cycles, most=12)
    tables = tuple(Table(name, COLUMNS[name], tuple(contents[name])) for name in COLUMNS if name in query)
    read = {table.name for table in tables}
    windows = []
    for _ in range(WINDOWS):
        window = _window(contents, random, cycles=cycles, most=random.choice([1, 2, 6]))
        windows.append({name: change for name, change in window.items() if name in read})
    return Case(query, tables, tuple(windows))


def _window(contents: dict[str, list[Row]], random: Random, *, cycles: bool, most: int) -> Window:
    """Some rows come, go, move, or come twice; none that would make a way without an end, where that is asked."""
    window: dict[str, list[Weighted]] = {}
    for _ in range(random.randint(1, most)):
        table = random.choice(["edges", "edges", "edges", "tops", "banned"])
        present = contents[table]
        gone = [random.choice(present)] if present and random.random() < 0.55 else []
        come = [_row(table, random)] if not gone or random.random() < 0.5 else []
        come += come if random.random() < 0.2 else []
        after = {**contents, table: _without(present, gone) + come}
        if cycles or _ends(after):
            contents[table] = after[table]
            window.setdefault(table, []).extend([*((-1, row) for row in gone), *((1, row) for row in come)])
    return {name: tuple(change) for name, change in window.items()}


def _without(rows: list[Row], gone: list[Row]) -> list[Row]:
    left = list(rows)
    for row in gone:
        left.remove(row)
    return left


def _row(table: str, random: Random) -> Row:
    nodes = [0, 1, 2, 3, 4, 5, None]
    if table != "edges":
        return (random.choice(nodes[:4]),)
    return (random.choice(nodes), random.choice(nodes), random.choice([0, 1, 2]))


def _ends(contents: dict[str, list[Row]]) -> bool:
    """Whether no way from a top leads back to where it was."""
    reached = {row[0] for row in contents["tops"]} | {b for a, b, _ in contents["edges"] if a == 0}
    edges = {(a, b) for a, b, _ in contents["edges"]}
    for _ in range(8):
        reached |= {b for a, b in edges if a in reached}
    left = {(a, b) for a, b in edges if a in reached and a is not None and b is not None}
    while any(b not in {a for a, _ in left} for _, b in left):
        left = {(a, b) for a, b in left if b in {x for x, _ in left}}
    return not left


def _query(name: str) -> str:
    return (WITH_AN_END | ENDED | {f"below {key}": query for key, query in (BELOW | COMPUTED_AGAIN).items()})[name]


@pytest.mark.parametrize("name", [*WITH_AN_END, *ENDED, *(f"below {key}" for key in (*BELOW, *COMPUTED_AGAIN))])
def test_a_recursion_follows_a_graph(name: str) -> None:
    moved = 0
    for seed in SEEDS:
        case = _case(_query(name), seed, cycles=name not in WITH_AN_END)
        try:
            moved += replay(EXECUTOR, case)
        except Exception:
            print(case.script())
            raise
        if moved > 1 and not LONG:
            break
    assert moved > 1


@pytest.mark.parametrize("name", [*WITH_AN_END, *ENDED, *(f"below {key}" for key in BELOW)])
def test_no_round_goes_over_what_a_change_does_not_concern(name: str) -> None:
    view = Maintained(EXECUTOR, _case(_query(name), 0, cycles=name not in WITH_AN_END)).view
    program = view.delta_program(frozenset(view.sources))
    assert program is not None
    found = [node for step in program.steps for node in walk(step.relation) if isinstance(node, Recursive)]
    assert len(found) == 2
    assert all(isinstance(node.start, Stored) for node in found)
    assert all(step.only_if is not None for step in program.steps if isinstance(step.relation, Recursive))


def test_a_cycle_that_no_way_leads_to_any_more() -> None:
    """Rows that rest on each other only are gone with the edge that led to them."""
    window = {"edges": ((-1, (0, 1, 0)), (1, (2, 1, 0)))}
    tables = (Table("edges", COLUMNS["edges"], ((0, 1, 0), (1, 2, 0))), Table("tops", COLUMNS["tops"], ((0,),)))
    view = Maintained(EXECUTOR, Case(WITH_AN_END["every way"], tables))
    assert view.step(window) == {(1,): -1, (2,): -1}


def test_what_equals_and_is_not_the_same_is_computed_again() -> None:
    """From 0.0 may follow what does not follow from −0.0; a table has either."""
    tables = (Table("nodes", (Column("x", "double"),), ((0.0,), (1.0,))),)
    query = "WITH RECURSIVE r(x) AS (SELECT x FROM nodes UNION ALL SELECT x - 1 FROM r WHERE x > 0) SELECT x FROM r"
    view = Maintained(EXECUTOR, Case(query, tables))
    assert view.step({"nodes": ((-1, (1.0,)), (1, (-0.0,)))}) == {(1.0,): -1}
    program = view.view.delta_program(frozenset(view.view.sources), frozenset(view.view.sources))
    assert program is not None
    assert [step.name for step in program.steps] == ["change"]


def test_both_sides_read_what_stands_before_them() -> None:
    """A WITH around start and step, which itself may recur, is no part of either."""
    below = "WITH RECURSIVE s(i) AS (SELECT top FROM tops UNION ALL SELECT i + 1 FROM s WHERE i < 2)"
    step = "SELECT n + i FROM r JOIN s ON n < i"
    query = f"WITH RECURSIVE r(n) AS ({below} SELECT i FROM s UNION ALL {step}) SELECT n FROM r"
    tables = (Table("tops", (Column("top", "int"),), ((0,), (1,))),)
    replay(EXECUTOR, Case(query, tables, ({"tops": ((1, (0,)), (-1, (1,)))}, {"tops": ((1, (2,)),)})))
