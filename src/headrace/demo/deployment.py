"""Changes a query of a running pipeline, promotes it, and takes it back, beside a reader."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self, TypeVar

from headrace.demo import tpch
from headrace.demo.run import Demo
from headrace.demo.views import View
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.api.facade import Headrace
    from headrace.deploy.deployment_results import GreenInfo, PromotionResult
    from headrace.results.refresh_results import RefreshResult

T = TypeVar("T")

SALES = View(
    "tpch.sales",
    "a join of two tables",
    """\
SELECT o.o_orderkey, l.l_linenumber, o.o_orderpriority, l.l_shipmode, l.l_returnflag,
       l.l_extendedprice * (1 - l.l_discount) AS revenue
FROM tpch.orders o
JOIN tpch.lineitem l ON l.l_orderkey = o.o_orderkey""",
)

BY_PRIORITY = View(
    "tpch.sales_by_priority",
    "an aggregate over it",
    """\
SELECT o_orderpriority, sum(revenue) AS revenue, count(*) AS line_items,
       sum(CASE WHEN l_returnflag = 'R' THEN 1 ELSE 0 END) AS returned
FROM tpch.sales
GROUP BY o_orderpriority""",
)

BY_SHIP_MODE = View(
    "tpch.sales_by_ship_mode",
    "another one",
    """\
SELECT l_shipmode, sum(revenue) AS revenue, count(*) AS line_items,
       sum(CASE WHEN l_returnflag = 'R' THEN 1 ELSE 0 END) AS returned
FROM tpch.sales
GROUP BY l_shipmode""",
)

TOTALS = View(
    "tpch.sales_totals",
    "where they meet",
    """\
SELECT 'priorities' AS part, sum(line_items) AS line_items, sum(returned) AS returned FROM tpch.sales_by_priority
UNION ALL
SELECT 'ship modes', sum(line_items), sum(returned) FROM tpch.sales_by_ship_mode""",
)

VIEWS = (SALES, BY_PRIORITY, BY_SHIP_MODE, TOTALS)
"""In the order they are created. The three that readers look at are published together, as ways meet in the last."""

NEW_QUERY = f"{SALES.query}\nWHERE l.l_returnflag <> 'R'"
"""The changed query: what was returned is no sale. The other tables keep theirs."""

LOOK = """\
SELECT (SELECT sum(line_items) FROM tpch.sales_by_priority) AS by_priority,
    (SELECT sum(returned) FROM tpch.sales_by_priority) AS returned_by_priority,
    (SELECT sum(line_items) FROM tpch.sales_by_ship_mode) AS by_ship_mode,
    (SELECT sum(returned) FROM tpch.sales_by_ship_mode) AS returned_by_ship_mode,
    (SELECT min(line_items) FROM tpch.sales_totals) AS least, (SELECT max(line_items) FROM tpch.sales_totals) AS most,
    (SELECT min(returned) FROM tpch.sales_totals) AS returned_least,
    (SELECT max(returned) FROM tpch.sales_totals) AS returned_most"""
"""Asked of one published state."""


class Seen(StrEnum):
    """The generations that somebody sees who reads three tables together."""

    OLD = "old"
    NEW = "new"
    MIXED = "mixed"
    MISSING = "missing"


def judged(by_priority: Any, by_ship_mode: Any, totals: tuple[Any, Any]) -> Seen:
    """Return which generation three tables belong to.

    Args:
        by_priority: Line items, and how many of them were returned, by one table.
        by_ship_mode: The same by the second.
        totals: The same by the third, whose rows must agree.
    """
    if not by_priority == by_ship_mode == totals:
        return Seen.MIXED
    return Seen.NEW if by_priority[1] == 0 else Seen.OLD


class Reader:
    """A thread that reads the three tables together, again and again, until the block ends.

    Args:
        hr: The project.
        pause: Seconds between two looks.
    """

    def __init__(self, hr: Headrace, pause: float = 0.05) -> None:
        self._hr = hr
        self._pause = pause
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._read, name="headrace-demo-reader", daemon=True)
        self._error: BaseException | None = None
        self.seen = Counter[Seen]()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._leave.set()
        self._thread.join()
        if self._error is not None and kind is None:
            raise self._error

    def look(self) -> Seen:
        """Read the tables once."""
        try:
            row = self._hr.at().sql(LOOK).first()
        except HeadraceError as error:
            if error.code != "TABLE_NOT_FOUND":
                raise
            return Seen.MISSING
        assert row is not None
        if (row.least, row.returned_least) != (row.most, row.returned_most):
            return Seen.MIXED
        first, second = (row.by_priority, row.returned_by_priority), (row.by_ship_mode, row.returned_by_ship_mode)
        return judged(first, second, (row.least, row.returned_least))

    def _read(self) -> None:
        try:
            while not self._leave.is_set():
                self.seen[self.look()] += 1
                self._leave.wait(self._pause)
        except BaseException as error:  # whoever ends the block is told
            self._error = error


@dataclass(frozen=True, slots=True)
class Phase:
    """One step of the deployment.

    Args:
        name: What was done.
        seconds: How long it took.
        looks: What the reader saw meanwhile.
        after: The generation that is public afterwards.
    """

    name: str
    seconds: float
    looks: dict[Seen, int]
    after: Seen

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        looks = {seen.value: self.looks.get(seen, 0) for seen in Seen}
        return {"phase": self.name, "seconds": round(self.seconds, 3), "looks": looks, "public": self.after.value}


class DeployDemo(Demo):
    """A demonstration of deployments, in a project of its own."""

    def build(self) -> tuple[tuple[View, RefreshResult], ...]:
        """Create the pipeline."""
        return tuple((view, self.create(view)) for view in VIEWS)

    def phase(self, name: str, reader: Reader, act: Callable[[], T]) -> tuple[T, Phase]:
        """Do something; return what came of it, and what the reader saw meanwhile."""
        before, began = Counter(reader.seen), time.monotonic()
        done = act()
        seconds = time.monotonic() - began
        return done, Phase(name, seconds, dict(Counter(reader.seen) - before), reader.look())

    def create_greens(self) -> tuple[GreenInfo, ...]:
        """Build the second generation: one table with a new query, the others over it."""
        self.hr.create_green(SALES.name, NEW_QUERY)
        for view in VIEWS[1:]:
            self.hr.create_green(view.name)
        return self.hr.green_status()

    def fall_behind(self) -> tuple[GreenInfo, ...]:
        """Change the sources and refresh the public tables only."""
        for change in tpch.rf1(1) + tpch.rf2(1):
            self.hr.spark.sql(change.sql)
        self.hr.refresh([view.name for view in VIEWS])
        return self.hr.green_status()

    def catch_up(self) -> tuple[GreenInfo, ...]:
        """Refresh what is behind: the greens."""
        self.hr.refresh()
        return self.hr.green_status()

    def promote(self) -> PromotionResult:
        """Put the greens in the place of the public tables."""
        return self.hr.promote_all_green()

    def roll_back(self) -> PromotionResult:
        """Take the promotion back."""
        return self.hr.rollback_green(deployment="green")
