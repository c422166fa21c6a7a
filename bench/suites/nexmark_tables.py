"""Writes the tables of Nexmark and their changes in rounds: `python -m bench.suites.nexmark_tables FOLDER ROUNDS`.

Persons sell, auctions open and end, bids are placed within an hour and a half; `extra` tells bids apart. Unlike a
stream's, events are also corrected and withdrawn.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

from bench.suites.rounds import split

KEYS = {"person": ("id",), "auction": ("id",), "bid": ("extra",), "side_input": ("key",)}

_CHANNELS = "['Google', 'Facebook', 'Baidu', 'Apple', 'channel-7', 'channel-12', 'channel-40']"


def _at(seconds: str) -> str:
    return f"to_timestamp(1767225600 + {seconds})"  # from 2026-01-01 on


def _chance(what: str, below: int) -> str:
    return f"(hash(i, '{what}') % {below})::BIGINT"


TABLES = {
    "person": "SELECT i AS id, 'name ' || i % 17 AS name, 'p' || i || '@example.org' AS email, "
    "['Phoenix', 'Portland', 'Boise', 'Kent'][1 + i % 4] AS city, ['OR', 'ID', 'CA', 'WA', 'AZ'][1 + i % 5] AS state, "
    f"{_at('i * 60')} AS registered, 'person ' || i AS extra FROM range(90) AS r(i)",
    "auction": "SELECT i AS id, 'item ' || i % 23 AS item, 'description ' || i AS description, "
    f"100 + {_chance('initial', 400)} AS initial_bid, 200 + {_chance('reserve', 600)} AS reserve, "
    f"{_at('i * 30')} AS opens, {_at('i * 30 + 600 + ' + _chance('expires', 2400))} AS expires, "
    f"{_chance('seller', 90)} AS seller, 10 + i % 5 AS category, 'auction ' || i AS extra FROM range(160) AS r(i)",
    "bid": f"SELECT greatest(0, i // 8 - {_chance('auction', 20)}) AS auction, {_chance('bidder', 90)} AS bidder, "
    f"100 + {_chance('price', 1500)} AS price, {_CHANNELS}[1 + {_chance('channel', 7)}] AS channel, "
    "'https://www.nexmark.com/' || ['bid', 'see', 'sell'][1 + i % 3] || '/' || ['new', 'old'][1 + i % 2] || '/item.htm'"
    f" || CASE WHEN i % 4 > 0 THEN '?query=1&channel_id=' || {_chance('url', 9)} ELSE '' END AS url, "
    f"{_at('i * 4 + i % 3')} AS placed, 'bid ' || i AS extra FROM range(1200) AS r(i)",
    "side_input": "SELECT i AS key, 'value ' || i % 7 AS value FROM range(120) AS r(i)",
}


def main(folder: Path, rounds: int) -> None:
    """Write everything into a folder."""
    database = duckdb.connect()
    for table, text in TABLES.items():
        database.execute(f"CREATE TABLE {table} AS {text}")
        split(database, table, KEYS[table], folder, rounds)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
