"""FULL against DIFFERENTIAL over TPC-H: the same stream table, the same change, one after the other in one run.

Each case has two stream tables of one query, one FULL and one DIFFERENTIAL, and then one FULL and one under AUTO. After
every change both are refreshed, in turns the one and the other first, so that none always finds the file cache warm.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from bench.measure import Figure, listed, median, project, show
from headrace.api.facade import Headrace
from headrace.demo import tpch

PAIRS = (("FULL", "DIFFERENTIAL"), ("FULL", "AUTO"))
"""Never three at once: two that follow the same change would share the reading of it."""
SHARES = (0.001, 0.01)


@dataclass(frozen=True, slots=True)
class Case:
    """A query and the speed-up it must reach."""

    name: str
    goal: float | None
    query: str


CASES = (
    Case(
        "join of customer, orders and lineitem, every line item in the result",
        3.0,
        "SELECT c_name, c_mktsegment, o_orderkey, o_orderdate, o_orderpriority, l_linenumber, l_quantity, "
        "l_extendedprice, l_discount FROM tpch.customer JOIN tpch.orders ON c_custkey = o_custkey "
        "JOIN tpch.lineitem ON o_orderkey = l_orderkey",
    ),
    Case(
        "aggregate over lineitem into few groups",
        2.0,
        "SELECT l_returnflag, l_linestatus, sum(l_quantity) AS quantity, sum(l_extendedprice) AS price, "
        "avg(l_discount) AS discount, count(*) AS lines FROM tpch.lineitem GROUP BY l_returnflag, l_linestatus",
    ),
    Case(
        "filter of lineitem",
        None,
        "SELECT l_orderkey, l_linenumber, l_extendedprice, l_shipdate FROM tpch.lineitem WHERE l_quantity > 25",
    ),
    Case(
        "min and max per supplier",
        None,
        "SELECT l_suppkey, min(l_shipdate) AS first, max(l_extendedprice) AS most FROM tpch.lineitem "
        "GROUP BY l_suppkey",
    ),
    Case("distinct customers with orders", None, "SELECT DISTINCT o_custkey FROM tpch.orders"),
)


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure all cases at 0.1 % and 1 % of orders and line items changed."""
    figures: list[Figure] = []
    with project(options.master) as hr:
        load(hr, options.scale)
        numbers = count(1)
        for case in CASES[: options.cases]:
            for modes in PAIRS:
                figures += pair(hr, case, modes, options, numbers)
    return figures


def pair(
    hr: Headrace, case: Case, modes: tuple[str, str], options: argparse.Namespace, numbers: Iterator[int]
) -> list[Figure]:
    """Measure one case in two modes, each refreshed first in every second turn."""
    figures: list[Figure] = []
    names = {mode: f"tpch.{mode.lower()}" for mode in modes}
    for mode, name in names.items():
        hr.create_stream_table(name, case.query, refresh_mode=mode)
    for share in SHARES:
        times: dict[str, list[float]] = {mode: [] for mode in modes}
        unmeasured = options.warm_up if share == SHARES[0] else 1
        for turn in range(unmeasured + options.rounds):
            change(hr, next(numbers), share)
            for mode in modes if turn % 2 else modes[::-1]:
                times[mode].append(hr.refresh(names[mode]).seconds)
        figures.append(compare(case, share, times, unmeasured))
    verified = hr.verify(names[modes[1]])
    if not verified.ok:
        raise SystemExit(f"{case.name}: the measured table is wrong: {verified}")
    for name in names.values():
        hr.drop_stream_table(name)
    return figures


def load(hr: Headrace, scale: float) -> None:
    """Generate and load the three tables the cases read."""
    tables = ("customer", "orders", "lineitem")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="headrace-tpch-") as folder:
        tpch.generate(Path(folder), scale, tables)
        for statement in tpch.load_statements(Path(folder), tables=tables):
            hr.sql(statement)
    print(f"  TPC-H at scale {scale:g} loaded in {time.perf_counter() - start:.0f} s", flush=True)


def change(hr: Headrace, number: int, share: float, close: float | None = None) -> None:
    """Half of `share` of the orders leaves, as many arrive, each with its line items.

    Args:
        hr: The project.
        number: Different for each change.
        share: How many change.
        close: The scale, for keys that are close together, as TPC-H's own are; None for keys from everywhere.
    """
    copied, gone = (None if close is None else tpch.stretch(2 * number + i, share / 2, close) for i in (0, 1))
    for step in (*tpch.rf1(number, share / 2, among=copied), *tpch.rf2(number, share / 2, among=gone)):
        hr.sql(step.sql)


def compare(case: Case, share: float, times: dict[str, list[float]], unmeasured: int) -> Figure:
    """The figure of one case at one share: medians without the first, unmeasured turns, which the detail shows too."""
    middle = {mode: median(values[unmeasured:]) for mode, values in times.items()}
    label = f"{case.name}, {share:.1%} changed"
    parts = ((mode, listed(values[:unmeasured]), listed(values[unmeasured:])) for mode, values in times.items())
    detail = ", ".join(f"{mode} warming up {first}, then {rest} s" for mode, first, rest in parts)
    if "AUTO" in times:
        return show(Figure("tpch", f"{label}: AUTO / FULL", middle["AUTO"] / middle["FULL"], "x", 1.1, detail=detail))
    ratio = middle["FULL"] / middle["DIFFERENTIAL"]
    return show(Figure("tpch", f"{label}: FULL / DIFFERENTIAL", ratio, "x", case.goal, True, detail))
