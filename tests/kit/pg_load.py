"""A database that is written to for long, of which no table grows: whatever grows is what follows it.

The load is made by procedures on the server, thousands of transactions a second if need be; beside them, somebody keeps
a transaction open, fills and empties a table at once, prepares a transaction, alters a table, and cuts our connections.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import psycopg

from kit.pg_bank import side_by_side

TABLES = ("here", "there", "queue", "notes", "lots", "idle")
ACCOUNTS, QUEUED, NOTES, LOTS = 100, 200, 40, 2_000
TOTAL = 2 * ACCOUNTS * 100
"""Money in `here` and `there` together, at every moment."""

CLIENTS = 2
OPEN_SECONDS, DISTURBED_SECONDS = 4.0, 5.0
"""How long a transaction is open, and then none is, since new snapshots wait for it; and between two other events."""

SCHEMA = f"""
CREATE TABLE here (id int PRIMARY KEY, amount bigint NOT NULL);
CREATE TABLE there (id int PRIMARY KEY, amount bigint NOT NULL);
INSERT INTO here SELECT g, 100 FROM generate_series(1, {ACCOUNTS}) g;
INSERT INTO there SELECT g, 100 FROM generate_series(1, {ACCOUNTS}) g;
CREATE TABLE queue (client int, number bigint, told text, PRIMARY KEY (client, number));
CREATE TABLE notes (id int PRIMARY KEY, seen bigint NOT NULL, body text);
ALTER TABLE notes ALTER body SET STORAGE EXTERNAL;
INSERT INTO notes SELECT g, 0, repeat('n', 3000) FROM generate_series(1, {NOTES}) g;
CREATE TABLE lots (id int PRIMARY KEY, told text);
CREATE TABLE idle (id int PRIMARY KEY);
INSERT INTO idle VALUES (1);
CREATE TABLE uncaptured (client int PRIMARY KEY, done bigint NOT NULL);
INSERT INTO uncaptured SELECT g, 0 FROM generate_series(1, {CLIENTS}) g;
CREATE PROCEDURE work(client int, rate float, seconds float) LANGUAGE plpgsql AS $$
DECLARE
    began timestamptz := clock_timestamp();
    first bigint := (SELECT done FROM uncaptured u WHERE u.client = work.client);
    n bigint := 0;
    sum int;
    giver int;
    taker int;
BEGIN
    LOOP
        n := n + 1;
        sum := (random() * 90)::int - 45;
        giver := 1 + floor(random() * {ACCOUNTS});
        taker := 1 + floor(random() * {ACCOUNTS});
        UPDATE here SET amount = amount - sum WHERE id = giver;
        UPDATE there SET amount = amount + sum WHERE id = taker;
        IF n % 4 = 0 THEN
            INSERT INTO queue VALUES (client, first + n, md5(random()::text));
            DELETE FROM queue q WHERE q.client = work.client AND q.number <= first + n - 4 * {QUEUED};
        END IF;
        IF n % 50 = 0 THEN
            UPDATE notes SET seen = seen + 1 WHERE id % {CLIENTS} + 1 = client AND id % 7 = n % 7;
        END IF;
        IF n % 400 = 0 THEN
            UPDATE notes SET body = repeat(md5(random()::text), 100)
                WHERE id % {CLIENTS} + 1 = client AND id % 7 = n % 7;
        END IF;
        UPDATE uncaptured u SET done = first + n WHERE u.client = work.client;
        IF n % 97 = 0 THEN
            ROLLBACK;
        ELSE
            COMMIT;
        END IF;
        EXIT WHEN clock_timestamp() > began + seconds * interval '1 second';
        PERFORM pg_sleep(n / rate - extract(epoch FROM clock_timestamp() - began));
    END LOOP;
END $$
"""


class Load:
    """Clients of a database.

    Args:
        url: The database, empty.
        rate: Transactions a second, all clients together; as many as there is time for, if that is less.
    """

    def __init__(self, url: str, rate: float) -> None:
        self.url, self.rate, self.leave = url, rate, threading.Event()
        self._failed: list[BaseException] = []
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(SCHEMA)

    @property
    def transactions(self) -> int:
        """How many were committed, but for a few."""
        with psycopg.connect(self.url) as db:
            return int((db.execute("SELECT sum(done) FROM uncaptured").fetchone() or (0,))[0])

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Clients write until the end of the block."""
        clients = [partial(self._work, n) for n in range(1, CLIENTS + 1)]
        doing = [partial(self._watched, one) for one in (*clients, self._keep_open, self._disturb)]
        with side_by_side(self.leave, doing):
            yield
        assert not self._failed, self._failed

    def _watched(self, one: Callable[[], None]) -> None:
        try:
            one()
        except BaseException as error:
            self._failed.append(error)

    def _work(self, client: int) -> None:
        with psycopg.connect(self.url, autocommit=True) as db:
            while not self.leave.is_set():
                with suppress(psycopg.errors.DeadlockDetected):
                    db.execute("CALL work(%s, %s, 2)", (client, self.rate / CLIENTS))

    def _keep_open(self) -> None:
        """Transactions that are open for long, and prepared ones."""
        turn = 0
        with psycopg.connect(self.url, autocommit=True) as db:
            while not self.leave.is_set():
                turn += 1
                db.execute("BEGIN")
                db.execute("UPDATE idle SET id = id + 1")
                self.leave.wait(OPEN_SECONDS)
                if turn % 3 == 0:
                    db.execute("PREPARE TRANSACTION 'soaked'")
                    self.leave.wait(OPEN_SECONDS / 4)
                    db.execute("COMMIT PREPARED 'soaked'")
                else:
                    db.execute("COMMIT" if turn % 2 else "ROLLBACK")
                self.leave.wait(OPEN_SECONDS)

    def _disturb(self) -> None:
        doing = (self._fill, self._empty, self._alter, self._fill, self._cut, self._delete)
        turn = 0
        with psycopg.connect(self.url, autocommit=True) as db:
            while not self.leave.wait(DISTURBED_SECONDS):
                doing[turn % len(doing)](db, turn)
                turn += 1

    @staticmethod
    def _fill(db: psycopg.Connection, turn: int) -> None:
        db.execute(f"INSERT INTO lots SELECT g, 'of {turn}' FROM generate_series(1, {LOTS}) g ON CONFLICT DO NOTHING")

    @staticmethod
    def _empty(db: psycopg.Connection, _: int) -> None:
        db.execute("TRUNCATE lots")

    @staticmethod
    def _delete(db: psycopg.Connection, _: int) -> None:
        db.execute("DELETE FROM lots")

    @staticmethod
    def _alter(db: psycopg.Connection, turn: int) -> None:
        """A column comes, or goes."""
        db.execute(f"ALTER TABLE lots {'ADD more int' if turn % 12 < 6 else 'DROP more'}")

    @staticmethod
    def _cut(db: psycopg.Connection, _: int) -> None:
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'headrace' AND datname = current_database()"
        )
