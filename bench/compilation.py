"""Seconds from a text to a program, by the number of tables that it joins; without Spark."""

from __future__ import annotations

import argparse
import re
import time

from bench.measure import Figure, listed, median, show
from headrace.algebra.schema import Column
from headrace.algebra.tree import walk
from headrace.compiler.view_compiler import ViewCompiler
from headrace.names import TableName

LENGTHS = (9, 17, 25, 40, 60)
GOALS = {25: 0.3, 60: 2.0}
KINDS = ("INNER", "LEFT", "RIGHT", "FULL")


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure chains of joins of each kind, every source of which has changed, in seconds of this process."""
    return [figure for kind in KINDS for figure in _chains(kind, options.rounds)]


def _chains(kind: str, rounds: int) -> list[Figure]:
    figures, each_operator = [], {}
    for number in LENGTHS:
        times, operators = [], 0
        for _ in range(rounds):
            start = time.process_time()
            operators = _operators(_chain(kind, number))
            times.append(time.process_time() - start)
        each_operator[number] = median(times) / operators * 1e6
        label = f"{kind} JOIN of {number} tables, {operators} operators derived"
        figures.append(show(Figure("compile", label, median(times), "s", GOALS.get(number), detail=listed(times))))
    ratio = each_operator[60] / each_operator[25]
    detail = ", ".join(f"{number}: {value:.0f} µs" for number, value in each_operator.items())
    label = f"{kind} JOIN, time for each operator, 60 tables against 25"
    return [*figures, show(Figure("compile", label, ratio, "x", 2.0, detail=detail))]


def _operators(query: str) -> int:
    """Compile a query, derive its program for a change of all sources, and count the program's operators."""
    view = ViewCompiler(
        resolve=lambda parts: TableName("lake", ("bench",), parts[-1]),
        schema=lambda _: (Column("k", "int"), Column("v", "int")),
        describe=_describe,
    ).compile(query)
    program = view.delta_program(frozenset(view.sources))
    if program is None:
        raise SystemExit(f"not maintained: {view.refusals}")
    relations = [*(step.relation for step in program.steps), program.state.change]
    return sum(1 for relation in relations for _ in walk(relation))


def _chain(kind: str, number: int) -> str:
    shown = ", ".join(f"t{i}.v AS v{i}" for i in range(number))
    joins = " ".join(f"{kind} JOIN t{i} ON t{i - 1}.k = t{i}.k" for i in range(1, number))
    return f"SELECT t0.k, {shown} FROM t0 {joins}"


def _describe(sql: str) -> tuple[Column, ...]:
    """Take Spark's place: all columns are integers, and stand one by one behind the first SELECT."""
    items = re.split(r"\sFROM\s", sql[len("SELECT ") :], maxsplit=1)[0].split(",")
    names = (re.search(r"`([^`]+)`$|(\w+)$", item.strip()) for item in items)
    return tuple(Column(name[1] or name[2], "int") for name in names if name)
