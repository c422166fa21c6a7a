"""A shop under load in PostgreSQL: payments between accounts that keep the total."""

from __future__ import annotations

import random
import threading
import time
from typing import Self

import psycopg

ACCOUNTS = 1_000
OPENING = 1_000
"""Accounts, and what each holds at first: round sums that anybody can check."""
TOTAL = ACCOUNTS * OPENING
"""The sum of all accounts, the same at every moment."""

TABLES = (
    "CREATE TABLE accounts (id int PRIMARY KEY, region text NOT NULL, balance bigint NOT NULL)",
    "CREATE TABLE payments (id bigint PRIMARY KEY, payer int NOT NULL, payee int NOT NULL, amount bigint NOT NULL, "
    "placed_at timestamptz NOT NULL DEFAULT clock_timestamp())",
)
FILL = """
INSERT INTO accounts SELECT g, (ARRAY['north', 'east', 'south', 'west'])[g %% 4 + 1], %s FROM generate_series(1, %s) g
"""


def open_shop(url: str) -> None:
    """Make the shop's tables."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in TABLES:
            connection.execute(statement)
        connection.execute(FILL, (OPENING, ACCOUNTS))


class Customers:
    """A thread that makes payments, and sometimes reverses one, until the block ends.

    Args:
        url: The database.
        per_second: Transactions a second, about.
    """

    def __init__(self, url: str, per_second: int = 100) -> None:
        self._url = url
        self._pause = 1 / per_second
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._shop, name="headrace-demo-customers", daemon=True)
        self.committed = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.go_home()

    def go_home(self) -> None:
        """Finish the transaction that is under way, and begin no other."""
        self._leave.set()
        self._thread.join()

    def _shop(self) -> None:
        chance, number = random.Random(7), 0
        with psycopg.connect(self._url, autocommit=True) as connection:
            due = time.monotonic()
            while not self._leave.is_set():
                with connection.transaction():
                    if number and chance.random() < 0.1:
                        _take_back(connection, chance.randint(1, number))
                    else:
                        number += 1
                        payer, payee = chance.sample(range(1, ACCOUNTS + 1), 2)
                        _pay(connection, number, payer, payee, chance.randint(1, 50))
                self.committed += 1
                due = max(due + self._pause, time.monotonic() - 1)
                self._leave.wait(max(0.0, due - time.monotonic()))


_MOVE = "UPDATE accounts SET balance = balance + %s WHERE id = %s"


def _pay(connection: psycopg.Connection, number: int, payer: int, payee: int, amount: int) -> None:
    insert = "INSERT INTO payments (id, payer, payee, amount) VALUES (%s, %s, %s, %s)"
    connection.execute(insert, (number, payer, payee, amount))
    connection.execute(_MOVE, (-amount, payer))
    connection.execute(_MOVE, (amount, payee))


def _take_back(connection: psycopg.Connection, number: int) -> None:
    found = connection.execute("DELETE FROM payments WHERE id = %s RETURNING payer, payee, amount", (number,))
    for payer, payee, amount in found.fetchall():
        connection.execute(_MOVE, (amount, payer))
        connection.execute(_MOVE, (-amount, payee))
