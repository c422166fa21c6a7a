"""A process that lands a source, refreshes what reads it, and is killed at a given point of it.

    python lander.py <project> <round> <kill point> <url> <way to capture>

It first checks what its predecessor left: mirrors and stream tables are brought up to date, and equal the tables.
Then it moves money and refreshes until the kill point (the n-th event) sends it SIGKILL; a negative one never comes.
"""

from __future__ import annotations

import random
import sys
from collections import Counter

import psycopg
from refresher import Killer

import headrace

TABLES = ("here", "there")


def main(project: str, number: int, kill_point: int, url: str, way: str) -> None:
    with headrace.open(project) as hr, psycopg.connect(url, autocommit=True) as db:
        if number == 0:
            create(hr, db, url, way)
        print("before", total(hr), flush=True)
        hr.refresh()
        print("recovered", [same(hr, db, t) for t in TABLES], total(hr), hr.verify("s.total").ok, flush=True)
        transfers(db, random.Random(number))
        hr.events.subscribe(Killer(kill_point))
        hr.refresh()
        print("survived", [same(hr, db, t) for t in TABLES], flush=True)


def create(hr: headrace.Headrace, db: psycopg.Connection, url: str, way: str) -> None:
    for table in TABLES:
        db.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, amount bigint)")
        db.execute(f"INSERT INTO {table} SELECT g, 100 FROM generate_series(1, 50) g")
    hr.sources.create("bank", url, TABLES, capture=way)
    hr.sql("CREATE NAMESPACE lake.s")
    both = " UNION ALL ".join(f"SELECT amount FROM bank.{t}" for t in TABLES)
    hr.create_stream_table("s.total", f"SELECT sum(amount) AS total FROM ({both}) AS b", refresh_mode="DIFFERENTIAL")


def transfers(db: psycopg.Connection, chance: random.Random) -> None:
    for _ in range(30):
        a, b = chance.sample(TABLES, 2)
        with db.transaction():
            amount, key = chance.randint(1, 50), chance.randint(1, 50)
            db.execute(f"UPDATE {a} SET amount = amount - %s WHERE id = %s", (amount, key))
            db.execute(f"UPDATE {b} SET amount = amount + %s WHERE id = %s", (amount, chance.randint(1, 50)))


def total(hr: headrace.Headrace) -> tuple[int, int]:
    """What the mirrors hold, read as of one published state, and what the stream table says."""
    sums = " + ".join(f"(SELECT sum(amount) FROM bank.{t})" for t in TABLES)
    return int(hr.at().sql(f"SELECT {sums}").first()[0]), int(hr.sql("SELECT total FROM s.total").first()[0])


def same(hr: headrace.Headrace, db: psycopg.Connection, table: str) -> bool:
    mirrored = Counter(tuple(r) for r in hr.sql(f"SELECT id, amount FROM bank.{table}").collect())
    return mirrored == Counter(db.execute(f"SELECT id, amount FROM {table}").fetchall())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5])
