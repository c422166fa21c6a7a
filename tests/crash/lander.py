"""A process that lands a source, refreshes what reads it, and is killed at a given point of it.

    python lander.py <project> <round> <kill point> <url> <way to capture>

Several URLs, with spaces between them, are shards of one source, the last of which is captured by triggers. The way
`citus` distributes the tables over the cluster's workers.

It first checks what a killed predecessor left: mirrors and stream tables are brought up to date, and equal the tables.
Then it moves money and refreshes until the kill point (the n-th event) sends it SIGKILL; a negative one never comes.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from contextlib import ExitStack, suppress

import psycopg
from refresher import Killer

import headrace
from headrace.errors import UserError

TABLES, CITUS = ("here", "there"), "citus"


def main(project: str, number: int, kill_point: int, url: str, way: str) -> None:
    urls = url.split()
    with headrace.open(project) as hr, ExitStack() as stack:
        dbs = [stack.enter_context(psycopg.connect(one, autocommit=True)) for one in urls]
        if number == 0:
            create(hr, dbs, urls, way)
        else:
            print("before", total(hr), flush=True)
            hr.refresh()
            print("recovered", [same(hr, dbs, t) for t in TABLES], total(hr), hr.verify("s.total").ok, flush=True)
        for place, db in enumerate(dbs):
            transfers(db, random.Random(number), 1000 * place)
        hr.events.subscribe(Killer(kill_point))
        hr.refresh()
        print("survived", [same(hr, dbs, t) for t in TABLES], "published", published(hr), flush=True)


def create(hr: headrace.Headrace, dbs: list[psycopg.Connection], urls: list[str], way: str) -> None:
    rows = 50 // len(dbs)
    for place, db in enumerate(dbs):
        for table in TABLES:
            db.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, amount bigint)")
            if way == CITUS:
                db.execute(f"SELECT create_distributed_table('{table}', 'id')")
            db.execute(f"INSERT INTO {table} SELECT g + {1000 * place}, 100 FROM generate_series(1, {rows}) g")
    shards = [{"url": one, "capture": "trigger" if one == urls[-1] else way} for one in urls]
    log = "wal" if way == CITUS else way
    hr.sources.create("bank", shards if len(urls) > 1 else urls[0], TABLES, capture=log)
    hr.sql("CREATE NAMESPACE lake.s")
    both = " UNION ALL ".join(f"SELECT amount FROM bank.{t}" for t in TABLES)
    hr.create_stream_table("s.total", f"SELECT sum(amount) AS total FROM ({both}) AS b", refresh_mode="DIFFERENTIAL")


def transfers(db: psycopg.Connection, chance: random.Random, first: int) -> None:
    [rows] = db.execute("SELECT count(*) FROM here").fetchone() or (0,)
    for _ in range(30):
        a, b = chance.sample(TABLES, 2)
        with db.transaction():
            amount, key = chance.randint(1, 50), first + chance.randint(1, rows)
            db.execute(f"UPDATE {a} SET amount = amount - %s WHERE id = %s", (amount, key))
            key = first + chance.randint(1, rows)
            db.execute(f"UPDATE {b} SET amount = amount + %s WHERE id = %s", (amount, key))


def total(hr: headrace.Headrace) -> tuple[int, int]:
    """What the mirrors hold, read as of one published state, and what the stream table says."""
    sums = " + ".join(f"(SELECT sum(amount) FROM bank.{t})" for t in TABLES)
    return int(hr.at().sql(f"SELECT {sums}").first()[0]), int(hr.sql("SELECT total FROM s.total").first()[0])


def published(hr: headrace.Headrace) -> set[int]:
    """What the mirrors held together in each of the last publications."""
    sums = " + ".join(f"(SELECT sum(amount) FROM bank.{t})" for t in TABLES)
    found: set[int] = set()
    for publication in hr._catalog.publications(20):
        with suppress(UserError):  # before the first stream table, or no longer kept
            found.add(int(hr.at(publication.id).sql(f"SELECT {sums}").first()[0]))
    return found


def same(hr: headrace.Headrace, dbs: list[psycopg.Connection], table: str) -> bool:
    mirrored = Counter(tuple(r) for r in hr.sql(f"SELECT id, amount FROM bank.{table}").collect())
    return mirrored == Counter(r for db in dbs for r in db.execute(f"SELECT id, amount FROM {table}").fetchall())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5])
