"""Random concurrent histories on a real PostgreSQL, driven from one thread so that every moment is a known one.

Several sessions have transactions open at once; each step lets one of them do one thing. A session that would wait for
a lock of another gives up after some milliseconds and rolls back, as applications do.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from typing import Any

import psycopg

from kit.pg_alterations import Alterations

TABLES = ("here", "there", "bag", "parted")
SCHEMA = """
CREATE TABLE here (id int PRIMARY KEY, owner text, amount bigint, body text);
CREATE TABLE there (id int, kind text, amount bigint, body text);
CREATE UNIQUE INDEX there_key ON there (kind, id) ;
ALTER TABLE there ALTER id SET NOT NULL, ALTER kind SET NOT NULL, REPLICA IDENTITY USING INDEX there_key;
CREATE TABLE bag (x int, y text);
ALTER TABLE bag REPLICA IDENTITY FULL;
CREATE TABLE parted (id int PRIMARY KEY, body text) PARTITION BY RANGE (id);
CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (10);
CREATE TABLE parted_high PARTITION OF parted FOR VALUES FROM (10) TO (MAXVALUE);
ALTER TABLE here ALTER body SET STORAGE EXTERNAL;
ALTER TABLE bag ALTER y SET STORAGE EXTERNAL;
INSERT INTO here SELECT g, 'o' || g % 3, 100, NULL FROM generate_series(1, 12) g;
INSERT INTO there SELECT g, 'k', 100, repeat('t', 3000) FROM generate_series(1, 12) g;
INSERT INTO bag SELECT g % 3, 'v' FROM generate_series(1, 9) g;
INSERT INTO parted SELECT g, 'p' FROM generate_series(5, 15) g
"""
TOTAL = 2400
"""Money in `here` and `there` together, at every moment."""


class Session:
    """One client."""

    def __init__(self, url: str, number: int) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self.connection.execute("SET lock_timeout = '15ms'; SET deadlock_timeout = '10ms'")
        self.number = number
        self.open = False
        self.patience = 0
        self.exclusive = False


class History:
    """Sessions on a database.

    Args:
        url: The database.
        seed: Chooses everything.
        sessions: How many.
        altering: Tables are altered, too; can be changed between steps.
    """

    def __init__(self, url: str, seed: int, sessions: int = 4, *, altering: bool = False) -> None:
        self._url = url
        self._chance = random.Random(seed)
        self._count = sessions
        self._prepared: list[str] = []
        self._numbers = 0
        self.altering = altering
        self._alterations = Alterations()
        self.connect()
        self._sessions[0].connection.execute(SCHEMA)

    def connect(self) -> None:
        """Connect anew, after the server was killed; what was open is rolled back, what was prepared stays."""
        self._sessions = [Session(self._url, i) for i in range(self._count)]

    def step(self) -> None:
        """Let one session do one thing."""
        session = self._chance.choice(self._sessions)
        try:
            if not session.open:
                self._finish_prepared(session)
                session.connection.execute("BEGIN")
                session.open, session.patience = True, self._chance.choice((1, 2, 4, 30))
                session.exclusive = False
            self._change(session)
            session.patience -= 1
            if session.patience <= 0:
                self._end(session)
        except psycopg.Error:
            session.connection.execute("ROLLBACK")
            session.open = False

    def truth(self) -> dict[str, Counter[tuple[Any, ...]]]:
        """All tables as of now, with their columns in the order of names."""
        with psycopg.connect(self._url, autocommit=True) as reader, reader.transaction():
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            return {t: _by_name(reader.execute(f"SELECT * FROM {t}")) for t in TABLES}

    def settle(self, but: psycopg.Connection | None = None) -> None:
        """End what is open and prepared, which keeps tables from being altered, and snapshots from being taken."""
        for session in self._sessions:
            if session.open and session.connection is not but:
                with contextlib.suppress(psycopg.Error):
                    session.connection.execute(self._chance.choice(("COMMIT", "COMMIT", "ROLLBACK")))
                session.open = False
        with psycopg.connect(self._url, autocommit=True) as connection:
            while self._prepared:
                connection.execute(f"{self._chance.choice(('COMMIT', 'ROLLBACK'))} PREPARED '{self._prepared[-1]}'")
                self._prepared.pop()

    def close(self) -> None:
        """End everything, so that nothing is open or prepared."""
        for session in self._sessions:
            with contextlib.suppress(psycopg.Error):
                session.connection.execute("ROLLBACK")
            session.connection.close()
        with psycopg.connect(self._url, autocommit=True) as connection:
            for name in self._prepared:
                connection.execute(f"ROLLBACK PREPARED '{name}'")

    # ---- what sessions do

    def _finish_prepared(self, session: Session) -> None:
        if self._prepared and self._chance.random() < 0.3:
            name = self._prepared.pop()
            session.connection.execute(f"{self._chance.choice(('COMMIT', 'ROLLBACK'))} PREPARED '{name}'")

    def _end(self, session: Session) -> None:
        session.open = False
        dice = self._chance.random()
        if dice < 0.1 and not session.exclusive:
            self._numbers += 1
            name = f"p{session.number}_{self._numbers}"
            session.connection.execute(f"PREPARE TRANSACTION '{name}'")
            self._prepared.append(name)
        else:
            session.connection.execute("ROLLBACK" if dice < 0.2 else "COMMIT")

    def _change(self, session: Session) -> None:
        run, chance = session.connection.execute, self._chance
        if chance.random() < 0.15:  # a subtransaction, kept or not
            run("SAVEPOINT s")
            self._one(session)
            run(chance.choice(("ROLLBACK TO s", "RELEASE s")))
        self._one(session)

    def _one(self, session: Session) -> None:
        chance = self._chance
        usual = (
            self._transfer,
            self._transfer,
            self._move_key,
            self._swap_keys,
            self._replace_row,
            self._large_value,
            self._bag,
            self._parted,
            self._truncate,
        )
        doing = chance.choice((*usual, self._fill, self._alter, self._alter) if self.altering else usual)
        doing(session.connection, chance)
        if doing in (self._truncate, self._alter):  # nobody can read the table until it ends, so it ends at once
            session.patience, session.exclusive = 0, True

    @staticmethod
    def _transfer(connection: psycopg.Connection, chance: random.Random) -> None:
        amount = chance.randint(1, 9)
        pick = "(SELECT min(id) FROM {} WHERE id > %s)"
        taken = connection.execute(
            f"UPDATE here SET amount = amount - %s WHERE id = {pick.format('here')}", (amount, chance.randint(0, 9))
        ).rowcount
        if taken:
            given = f"UPDATE there SET amount = amount + %s WHERE id = {pick.format('there')}"
            if connection.execute(given, (amount, chance.randint(0, 9))).rowcount != 1:
                raise psycopg.DataError("nobody takes it")

    @staticmethod
    def _move_key(connection: psycopg.Connection, chance: random.Random) -> None:
        table = chance.choice(("here", "there", "parted"))
        old, new = chance.randint(1, 16), chance.randint(1, 16)
        connection.execute(f"UPDATE {table} SET id = %s WHERE id = %s", (new, old))

    @staticmethod
    def _swap_keys(connection: psycopg.Connection, chance: random.Random) -> None:
        table = chance.choice(("here", "parted"))
        a, b = chance.sample(range(1, 16), 2)
        for old, new in ((a, -1), (b, a), (-1, b)):
            connection.execute(f"UPDATE {table} SET id = %s WHERE id = %s", (new, old))

    @staticmethod
    def _replace_row(connection: psycopg.Connection, chance: random.Random) -> None:
        key = chance.randint(1, 16)
        row = connection.execute("DELETE FROM here WHERE id = %s RETURNING amount", (key,)).fetchone()
        if row is not None:
            into = chance.choice((key, key + 100))
            connection.execute(
                "INSERT INTO here (id, owner, amount, body) VALUES (%s, 'again', %s, %s)",
                (into, row[0], "r" * chance.randint(0, 4000)),
            )

    @staticmethod
    def _large_value(connection: psycopg.Connection, chance: random.Random) -> None:
        table, column = chance.choice((("here", "body"), ("there", "body"), ("bag", "y")))
        key = "x" if table == "bag" else "id"
        text = chance.choice((None, "", "z" * chance.randint(2100, 5000)))
        least = chance.randint(0, 9)
        connection.execute(f"UPDATE {table} SET {column} = %s WHERE {key} BETWEEN %s AND %s", (text, least, least + 2))

    @staticmethod
    def _bag(connection: psycopg.Connection, chance: random.Random) -> None:
        connection.execute(
            chance.choice(
                (
                    "INSERT INTO bag SELECT g %% 3, CASE g WHEN 4 THEN NULL ELSE 'v' END FROM generate_series(1, %s) g",
                    "DELETE FROM bag WHERE ctid IN (SELECT ctid FROM bag LIMIT %s)",
                    "UPDATE bag SET x = x + 1 WHERE x < %s",
                )
            ),
            (chance.randint(1, 6),),
        )

    @staticmethod
    def _parted(connection: psycopg.Connection, chance: random.Random) -> None:
        connection.execute(
            "INSERT INTO parted VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET body = excluded.body || 'x'",
            (chance.randint(1, 18), str(chance.random())),
        )

    @staticmethod
    def _truncate(connection: psycopg.Connection, chance: random.Random) -> None:
        if chance.random() < 0.3:
            connection.execute(chance.choice(("TRUNCATE bag", "TRUNCATE bag RESTART IDENTITY CASCADE")))
            if chance.random() < 0.5:
                connection.execute("INSERT INTO bag VALUES (77, 'after')")

    def _fill(self, connection: psycopg.Connection, chance: random.Random) -> None:
        self._alterations.fill(connection, chance)

    def _alter(self, connection: psycopg.Connection, chance: random.Random) -> None:
        if chance.random() < 0.7:  # else whoever has touched the table has it given up
            self.settle(connection)
        self._alterations.alter(connection, chance)


def _by_name(found: psycopg.Cursor[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Rows with their columns in the order of names, after a row of these."""
    names = [column.name for column in found.description or ()]
    order = sorted(range(len(names)), key=names.__getitem__)
    rows = Counter(tuple(row[place] for place in order) for row in found.fetchall())
    return rows + Counter([tuple(names[place] for place in order)])
