"""Accounts in two tables of a database, and clients that move money between them all the time."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from headrace.api import Headrace

TABLES = ("here", "there")
ACCOUNTS, TOTAL = 40, 8_000


def create(db: psycopg.Connection) -> None:
    """Make the tables; from then on they hold TOTAL together, at every moment."""
    for table in TABLES:
        db.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, amount bigint)")
        db.execute(f"INSERT INTO {table} SELECT g, 100 FROM generate_series(1, {ACCOUNTS}) g")


class Transfers:
    """Threads that move money, in transactions that overlap.

    Args:
        url: The database.
        pause: Seconds that each client waits between two transactions.
    """

    def __init__(self, url: str, pause: float = 0.02) -> None:
        self.url, self.pause, self.count, self.leave = url, pause, 0, threading.Event()

    def move(self, seed: int) -> None:
        chance = random.Random(seed)
        with psycopg.connect(self.url, autocommit=True) as db:
            while not self.leave.wait(self.pause):
                tables, amount = chance.sample(TABLES, 2), chance.randint(1, 90)
                with db.transaction():  # always in one order: the two of them never wait for each other in a circle
                    for table, change in sorted(zip(tables, (-amount, amount), strict=True)):
                        key = chance.randint(1, ACCOUNTS)
                        db.execute(f"UPDATE {table} SET amount = amount + %s WHERE id = %s", (change, key))
                self.count += 1

    @contextmanager
    def going_on(self) -> Iterator[None]:
        threads = [threading.Thread(target=self.move, args=(seed,)) for seed in (1, 2)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.leave.set()
            for thread in threads:
                thread.join()


def same(hr: Headrace, source: str, db: psycopg.Connection) -> bool:
    """Whether the mirrors are the tables."""
    return all(
        Counter(tuple(r) for r in hr.sql(f"SELECT id, amount FROM lake.{source}.{table}").collect())
        == Counter(db.execute(f"SELECT id, amount FROM {table}").fetchall())
        for table in TABLES
    )
