"""TPC-H as a lakehouse: generating it, loading it, and its refresh functions as SQL text.

RF1 and RF2 follow TPC-H clause 2.5: new orders arrive with their line items, as many old ones leave. Here new orders
copy existing ones under new keys, so that no second generator is needed and every machine makes the same changes.
"""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import EnvironmentFault

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
MERGE_ON_READ = frozenset({"orders", "lineitem"})
"""Written merge-on-read; the others are written copy-on-write, Iceberg's own default, so that both kinds are read."""

NEW_KEYS = 10_000_000_000
"""Distance between the order keys of one round of RF1 and the next; generated keys lie below it up to scale 1,600."""


NAMESPACE = "tpch"
"""The namespace of the tables."""

_LAKE = f"lake.{NAMESPACE}"


@dataclass(frozen=True, slots=True)
class Change:
    """One statement that changes the lakehouse.

    Args:
        what: What it does, for people.
        sql: The statement, Spark SQL.
    """

    what: str
    sql: str


def generate(folder: Path, scale: float, tables: Sequence[str] = TABLES, parts: int | None = None) -> None:
    """Write the tables as Parquet: `<table>.parquet`, or in parts in a folder `<table>`.

    Args:
        folder: Where to; created if missing.
        scale: TPC-H scale factor; 1 is about 1 GB of text.
        tables: Which tables.
        parts: How many files each table is written to, one after the other by its key; None for one file.

    Raises:
        EnvironmentFault: `GENERATOR_MISSING`, `GENERATOR_FAILED`.
    """
    command = [generator(), "parquet", "--scale-factor", str(scale), "--output-dir", str(folder)]
    command += ["--tables", ",".join(tables), "--quiet", *(["--parts", str(parts)] if parts else [])]
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EnvironmentFault(
            "GENERATOR_FAILED", "TPC-H data could not be generated.", detail=(done.stderr or done.stdout).strip()[-500:]
        )


def generator() -> str:
    """Return the program that generates TPC-H.

    Raises:
        EnvironmentFault: `GENERATOR_MISSING`.
    """
    beside = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    found = str(beside) if beside.is_file() else shutil.which("tpchgen-cli")
    if found is None:
        raise EnvironmentFault(
            "GENERATOR_MISSING",
            "The program tpchgen-cli, which generates TPC-H data, was not found.",
            hint="It comes with an extra: pip install 'headrace[demo]'.",
        )
    return found


def load_statements(folder: Path, namespace: str = NAMESPACE, tables: Sequence[str] = TABLES) -> Iterator[str]:
    """Yield the Spark SQL that makes Iceberg tables of generated files.

    What any user would write.
    """
    yield f"CREATE NAMESPACE IF NOT EXISTS lake.{namespace}"
    for table in tables:
        yield _view_of(folder / f"{table}.parquet", table)
        yield _create(table, namespace)
        yield f"DROP VIEW generated_{table}"


def adopt_statements(folder: Path, *, tables: Sequence[str] = TABLES) -> Iterator[str]:
    """Yield the Spark SQL that makes Iceberg tables out of generated files where they lie.

    Nothing is written again: the files become the tables' first data files, and must stay.

    Args:
        folder: Where `generate` wrote them, in parts.
        tables: Which of them.
    """
    yield f"CREATE NAMESPACE IF NOT EXISTS lake.{NAMESPACE}"
    for table in tables:
        files = folder / table
        yield _view_of(files, table)
        yield f"{_create(table, NAMESPACE)} WHERE false"
        source = f"`parquet`.`{files}`".replace("'", "\\'")
        yield f"CALL lake.system.add_files(table => '{NAMESPACE}.{table}', source_table => '{source}')"
        yield f"DROP VIEW generated_{table}"


def _view_of(files: Path, table: str) -> str:
    path = str(files).replace("'", "\\'")
    return f"CREATE OR REPLACE TEMPORARY VIEW generated_{table} USING parquet OPTIONS (path '{path}')"


def _create(table: str, namespace: str) -> str:
    mode = "merge-on-read" if table in MERGE_ON_READ else "copy-on-write"
    modes = ", ".join(f"'write.{verb}.mode' = '{mode}'" for verb in ("delete", "update", "merge"))
    return (
        f"CREATE TABLE lake.{namespace}.{table} USING iceberg TBLPROPERTIES ({modes}) "
        f"AS SELECT * FROM generated_{table}"
    )


Stretch = tuple[int, int]
"""The first and the last of some keys."""


def stretch(number: int, share: float, scale: float) -> Stretch:
    """Return a range of adjacent keys with about `share` of the orders.

    Args:
        number: Different numbers give stretches that do not overlap, as long as shares add up to less than all.
        share: How many, as a share of the generated orders.
        scale: The scale they were generated at: 1,500,000 orders, which have eight of every 32 keys.
    """
    keys = round(6_000_000 * scale * share)
    return number * keys + 1, (number + 1) * keys


def _chosen(key: str, number: int, share: float, among: Stretch | None = None) -> str:
    """Return a condition true for about `share` of the generated keys.

    Different numbers choose different keys.
    """
    if among is not None:
        return f"{key} BETWEEN {among[0]} AND {among[1]}"
    buckets = max(1, round(1 / share))
    return f"{key} < {NEW_KEYS} AND pmod(xxhash64({key}), {buckets}) = {number % buckets}"


def rf1(number: int, share: float = 0.001, *, among: Stretch | None = None) -> tuple[Change, ...]:
    """Return new orders with their line items.

    Args:
        number: The round, from 1; every round inserts other keys.
        share: How many, as a share of the generated orders.
        among: The keys of the orders that are copied, instead of a share of all.
    """
    shift = number * NEW_KEYS
    orders, lines = (_chosen(key, 3 * number, share, among) for key in ("o_orderkey", "l_orderkey"))
    return (
        Change(
            "new orders",
            f"INSERT INTO {_LAKE}.orders SELECT o_orderkey + {shift}, o_custkey, o_orderstatus, o_totalprice, "
            f"o_orderdate, o_orderpriority, o_clerk, o_shippriority, o_comment FROM {_LAKE}.orders WHERE {orders}",
        ),
        Change(
            "their line items",
            f"INSERT INTO {_LAKE}.lineitem SELECT l_orderkey + {shift}, l_partkey, l_suppkey, l_linenumber, "
            "l_quantity, l_extendedprice, l_discount, l_tax, l_returnflag, l_linestatus, l_shipdate, l_commitdate, "
            f"l_receiptdate, l_shipinstruct, l_shipmode, l_comment FROM {_LAKE}.lineitem WHERE {lines}",
        ),
    )


def rf2(number: int, share: float = 0.001, *, among: Stretch | None = None) -> tuple[Change, ...]:
    """Delete old orders with their line items; arguments as for `rf1`."""
    return tuple(
        Change(what, f"DELETE FROM {_LAKE}.{table} WHERE {_chosen(key, 3 * number + 1, share, among)}")
        for what, table, key in (
            ("old line items deleted", "lineitem", "l_orderkey"),
            ("old orders deleted", "orders", "o_orderkey"),
        )
    )


def price_changes(number: int, share: float = 0.001, *, among: Stretch | None = None) -> Change:
    """Return a change of prices of line items; arguments as for `rf1`."""
    return Change(
        "prices changed",
        f"UPDATE {_LAKE}.lineitem SET l_extendedprice = l_extendedprice + 1.00 "
        f"WHERE {_chosen('l_orderkey', 3 * number + 2, share, among)}",
    )


def changes(number: int, scale: float, share: float = 0.001) -> tuple[Change, ...]:
    """Return a whole round over adjacent orders: RF1, RF2 and changed prices.

    Args:
        number: The round, from 0; every round changes other keys.
        scale: As for `stretch`.
        share: How many of the orders are copied, deleted, and changed in price, each.
    """
    copied, gone, changed = (stretch(3 * number + i, share, scale) for i in range(3))
    return (
        *rf1(number + 1, share, among=copied),
        *rf2(number + 1, share, among=gone),
        price_changes(number + 1, share, among=changed),
    )
