"""Auctions in the manner of Nexmark: persons, auctions, bids, and queries that need no event-time windows.

Source: Tucker, Tufte, Papadimos, Maier, NEXMark – A Benchmark for Queries over Data Streams, 2002; numbering and shapes
follow Apache Beam's suite. Q7 looks for the highest bid of all time instead of that of a window, Q8 for persons who
sold on the day they came.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from random import Random

from headrace.algebra.schema import Column
from kit.case import Row, Table, Weighted, Window


def _columns(text: str) -> tuple[Column, ...]:
    return tuple(Column(*each.split()) for each in text.split(", "))


COLUMNS: dict[str, tuple[Column, ...]] = {
    "person": _columns("id bigint, name string, email string, city string, state string, registered date"),
    "auction": _columns(
        "id bigint, item string, initial_bid decimal(10,2), reserve decimal(10,2), opens date, expires date, "
        "seller bigint, category int"
    ),
    "bid": _columns("auction bigint, bidder bigint, price decimal(10,2), channel string, placed date"),
}

_WINNING = """
  SELECT a.id, a.category, a.seller, a.expires, max(b.price) AS final
  FROM auction a JOIN bid b ON a.id = b.auction
  WHERE b.placed BETWEEN a.opens AND a.expires
  GROUP BY a.id, a.category, a.seller, a.expires"""

QUERIES: dict[str, str] = {
    # currency conversion
    "q1": "SELECT auction, bidder, CAST(0.908 * price AS DECIMAL(14,4)) AS price, placed FROM bid",
    # selection
    "q2": "SELECT auction, price FROM bid WHERE auction % 7 IN (1, 3)",
    # local item suggestion
    "q3": "SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id "
    "WHERE a.category = 2 AND p.state IN ('OR', 'ID', 'CA')",
    # average price of a category
    "q4": f"SELECT w.category, CAST(avg(w.final) AS DECIMAL(14,6)) AS price FROM ({_WINNING}) w GROUP BY w.category",
    # hot items
    "q5": "WITH n AS (SELECT auction, count(*) AS bids FROM bid GROUP BY auction) "
    "SELECT auction, bids FROM n WHERE bids >= (SELECT max(bids) FROM n)",
    # average selling price of a seller's last three auctions
    "q6": "SELECT seller, CAST(avg(final) AS DECIMAL(14,6)) AS price FROM (SELECT w.seller, w.final, row_number() OVER "
    f"(PARTITION BY w.seller ORDER BY w.expires DESC, w.id, w.category) AS r FROM ({_WINNING}) w) l "
    "WHERE r <= 3 GROUP BY seller",
    # highest bid
    "q7": "SELECT auction, bidder, price FROM bid WHERE price = (SELECT max(price) FROM bid)",
    # monitor new users
    "q8": "SELECT p.id, p.name, p.registered FROM person p WHERE EXISTS (SELECT 1 FROM auction a WHERE a.seller = p.id "
    "AND a.opens = p.registered)",
    # winning bids
    "q9": "SELECT a.id, a.item, b.bidder, b.price FROM auction a JOIN bid b ON a.id = b.auction WHERE b.placed BETWEEN "
    "a.opens AND a.expires AND b.price >= a.reserve AND NOT EXISTS (SELECT 1 FROM bid o WHERE o.auction = b.auction "
    "AND o.price > b.price AND o.placed BETWEEN a.opens AND a.expires)",
    # people who neither sell nor bid
    "idle": "SELECT id, name FROM person WHERE id NOT IN (SELECT bidder FROM bid WHERE bidder IS NOT NULL) "
    "AND id NOT IN (SELECT seller FROM auction WHERE seller IS NOT NULL)",
    # every auction with its bids, if any
    "board": "SELECT a.id, a.item, p.name, count(b.price) AS bids, max(b.price) AS best FROM auction a "
    "LEFT JOIN person p ON a.seller = p.id LEFT JOIN bid b ON a.id = b.auction GROUP BY a.id, a.item, p.name",
    # the ten best sellers
    "ten": "SELECT p.id, p.name, sum(b.price) AS volume FROM person p JOIN auction a ON a.seller = p.id "
    "JOIN bid b ON b.auction = a.id GROUP BY p.id, p.name ORDER BY volume DESC NULLS LAST, p.id, p.name LIMIT 10",
}


def _day(random: Random) -> datetime.date:
    return datetime.date(2026, 1, 1) + datetime.timedelta(days=random.randrange(6))


def _price(random: Random) -> Decimal | None:
    return None if random.random() < 0.04 else Decimal(random.randrange(1, 16)) / 4


def row(table: str, number: int, random: Random) -> Row:
    """A row of a table, a function of its number and of chance."""
    if table == "person":
        state = random.choice(["OR", "ID", "CA", "WA", None])
        return number, f"name {number % 17}", f"{number}@example.org", f"city {number % 5}", state, _day(random)
    if table == "auction":
        opens = _day(random)
        expires = opens + datetime.timedelta(days=random.randrange(4))
        seller = None if random.random() < 0.05 else random.randrange(60)
        return number, f"item {number % 9}", _price(random), _price(random), opens, expires, seller, random.randrange(4)
    bidder = None if random.random() < 0.05 else random.randrange(60)
    return random.randrange(40), bidder, _price(random), random.choice(["web", "phone"]), _day(random)


SIZES = {"person": 25, "auction": 35, "bid": 160}


def tables(random: Random) -> tuple[Table, ...]:
    """The tables with their first rows."""
    return tuple(
        Table(name, columns, tuple(row(name, number, random) for number in range(SIZES[name])))
        for name, columns in COLUMNS.items()
    )


def windows(first: tuple[Table, ...], count: int, random: Random) -> tuple[Window, ...]:
    """What happens: persons, auctions and bids come, are corrected and withdrawn; sometimes one table only."""
    contents = {table.name: list(table.rows) for table in first}
    return tuple(_window(contents, random) for _ in range(count))


def _window(contents: dict[str, list[Row]], random: Random) -> Window:
    chosen = random.sample(sorted(contents), random.choice([1, 2, 3]))
    return {table: tuple(_changes(table, contents[table], random)) for table in chosen}


def _changes(table: str, present: list[Row], random: Random) -> list[Weighted]:
    found: list[Weighted] = []
    for _ in range(random.randrange(1, 8)):
        old = random.choice(present) if present else None
        kind = random.choice(["come", "go", "change", "copy"])
        if kind != "come" and old is None:
            continue
        if kind in ("go", "change") and old is not None:
            found.append((-1, old))
            present.remove(old)
        if kind != "go":
            number = random.randrange(40) if kind == "come" or old is None else int(str(old[0]))
            new = old if kind == "copy" and old is not None else row(table, number, random)
            found.append((1, new))
            present.append(new)
    return found
