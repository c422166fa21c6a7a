"""The PostgreSQL demo: a shop under load, mirrored and followed by stream tables."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import psycopg

from headrace.demo.run import prepare_folder
from headrace.demo.shop import ACCOUNTS, TOTAL, Customers, open_shop
from headrace.demo.views import View

if TYPE_CHECKING:
    from headrace.api.facade import Headrace
    from headrace.results.refresh_results import VerifyResult
    from headrace.results.source_results import LandingResult

VIEWS = (
    View(
        "bank.by_region",
        "an aggregate",
        "SELECT region, count(*) AS accounts, sum(balance) AS balance FROM shop.accounts GROUP BY region",
    ),
    View(
        "bank.flows",
        "an aggregate over a join",
        """\
SELECT a.region, count(*) AS payments, sum(p.amount) AS paid
FROM shop.payments p JOIN shop.accounts a ON a.id = p.payer
GROUP BY a.region""",
    ),
    View("bank.savers", "one side of a diamond", "SELECT id, balance FROM shop.accounts WHERE balance >= 1000"),
    View("bank.spenders", "the other side", "SELECT id, balance FROM shop.accounts WHERE balance < 1000"),
    View(
        "bank.everybody",
        "where they meet",
        """\
SELECT count(*) AS accounts, sum(balance) AS balance
FROM (SELECT id, balance FROM bank.savers UNION ALL SELECT id, balance FROM bank.spenders) AS b""",
    ),
)
"""In the order they are created."""

LOOK = """\
SELECT (SELECT sum(balance) FROM shop.accounts) AS mirrored, (SELECT balance FROM bank.everybody) AS met,
    (SELECT sum(balance) FROM bank.by_region) AS summed, (SELECT accounts FROM bank.everybody) AS accounts,
    (SELECT count(*) FROM shop.payments) AS payments, (SELECT coalesce(sum(payments), 0) FROM bank.flows) AS flows,
    (SELECT max(placed_at) FROM shop.payments) AS newest"""
"""Asked of one published state; the sums must agree whatever the customers are doing."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the lake while the shop goes on.

    Args:
        seconds: Time since the customers came.
        committed: Transactions they have committed.
        payments: Payments that the lake shows.
        changed: Rows of stream tables that came or went since the look before.
        behind: Seconds since the newest payment that the lake shows was made; None while it shows none.
        total: What all accounts hold together, as the lake shows it.
        agree: Whether every sum over mirrors, stream tables and the diamond says the same, and what it must be.
    """

    seconds: float
    committed: int
    payments: int
    changed: int
    behind: float | None
    total: int
    agree: bool

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


class PostgresDemo:
    """The act, in a project of its own.

    Args:
        folder: The project folder; see `prepare_folder`.
        url: An empty database of a server that can be captured.
    """

    def __init__(self, folder: Path, url: str) -> None:
        import headrace

        self.folder = folder
        self.url = url
        self.hr: Headrace = headrace.open(prepare_folder(folder))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hr.close()

    def build(self) -> LandingResult:
        """Open the shop, capture it, and create the stream tables; returns the first landing."""
        open_shop(self.url)
        landed = self.hr.sources.create("shop", self.url, ("accounts", "payments"))
        assert landed is not None
        self.hr.spark.sql("CREATE NAMESPACE lake.bank")
        for view in VIEWS:
            self.hr.create_stream_table(view.name, view.query, refresh_mode="DIFFERENTIAL")
        return landed

    def follow(self, customers: Customers, seconds: float) -> Iterator[Look]:
        """Refresh as often as possible for a time; after each refresh, a look."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            yield self._refreshed(customers, began)

    def catch_up(self, customers: Customers, began: float) -> Look:
        """Send the customers home and bring everything to the end."""
        customers.go_home()
        return self._refreshed(customers, began)

    def _refreshed(self, customers: Customers, began: float) -> Look:
        results = self.hr.refresh()
        row = self.hr.at().sql(LOOK).first()
        assert row is not None
        behind = None if row.newest is None else (dt.datetime.now() - row.newest).total_seconds()
        return Look(
            seconds=time.monotonic() - began,
            committed=customers.committed,
            payments=int(row.payments),
            changed=sum(r.rows_inserted + r.rows_deleted for r in results),
            behind=behind,
            total=int(row.mirrored),
            agree=(row.mirrored == row.met == row.summed == TOTAL)
            and row.accounts == ACCOUNTS
            and row.payments == row.flows,
        )

    def verify(self) -> tuple[VerifyResult, ...]:
        """Compare every stream table with its query."""
        return self.hr.verify()

    def same_rows(self) -> bool:
        """Return whether mirrors and database agree, with nothing left to land."""
        columns = {"accounts": "id, region, balance", "payments": "id, payer, payee, amount"}
        with psycopg.connect(self.url) as connection:
            there = {
                table: sorted(connection.execute(f"SELECT {names} FROM {table}").fetchall())
                for table, names in columns.items()
            }
        here = {
            table: sorted(tuple(r) for r in self.hr.sql(f"SELECT {names} FROM lake.shop.{table}").collect())
            for table, names in columns.items()
        }
        self.hr.sources.pause("shop")  # its server goes; the project stays to be looked at
        return there == here
