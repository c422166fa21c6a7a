"""Writes the tables of TPC-DS, their changes in rounds, and its 99 queries: `python -m bench.suites.tpcds_tables`.

Needs DuckDB's extension `tpcds` from PyPI, which goes with another DuckDB than that of the tests: `scripts/setup-beside
tpcds` makes an environment for it. Tables are those of scale 0.01, with fewer facts whose keys meet more often, and
more stores, warehouses and the like, of which that scale has one each.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb

from bench.suites.rounds import split

KEYS = {
    "call_center": ("cc_call_center_sk",),
    "catalog_page": ("cp_catalog_page_sk",),
    "catalog_returns": ("cr_item_sk", "cr_order_number"),
    "catalog_sales": ("cs_item_sk", "cs_order_number"),
    "customer": ("c_customer_sk",),
    "customer_address": ("ca_address_sk",),
    "customer_demographics": ("cd_demo_sk",),
    "date_dim": ("d_date_sk",),
    "household_demographics": ("hd_demo_sk",),
    "income_band": ("ib_income_band_sk",),
    "inventory": ("inv_date_sk", "inv_item_sk", "inv_warehouse_sk"),
    "item": ("i_item_sk",),
    "promotion": ("p_promo_sk",),
    "reason": ("r_reason_sk",),
    "ship_mode": ("sm_ship_mode_sk",),
    "store": ("s_store_sk",),
    "store_returns": ("sr_item_sk", "sr_ticket_number"),
    "store_sales": ("ss_item_sk", "ss_ticket_number"),
    "time_dim": ("t_time_sk",),
    "warehouse": ("w_warehouse_sk",),
    "web_page": ("wp_web_page_sk",),
    "web_returns": ("wr_item_sk", "wr_order_number"),
    "web_sales": ("ws_item_sk", "ws_order_number"),
    "web_site": ("web_site_sk",),
}

SAME = frozenset(
    ["d_date", "d_week_seq", "d_month_seq", "ca_gmt_offset", "s_gmt_offset", "cc_gmt_offset", "web_gmt_offset"]
)
"""Columns that no change touches, as hardly any row would be found by them afterwards."""

SEVERAL = {"store": 6, "warehouse": 3, "call_center": 3, "web_site": 3, "web_page": 4, "reason": 6, "promotion": 9}
"""Small tables get so many rows: copies of their own under new keys, some of whose columns are turned around."""

FEWER = {
    "customer": (80, 1),
    "customer_demographics": (140, 137),
    "household_demographics": (1028, 7),
    "catalog_page": (60, 1),
    "item": (60, 1),
}
"""Tables that keep so many rows, each so many apart; whatever refers to them refers to these."""

KEPT = {
    "store_sales": "ss_ticket_number % 3 = 0",
    "store_returns": "sr_ticket_number % 3 = 0",
    "catalog_sales": "cs_order_number % 2 = 0",
    "catalog_returns": "cr_order_number % 2 = 0",
    "inventory": "inv_item_sk <= 60",
    "date_dim": "d_year BETWEEN 1998 AND 2003",
    "time_dim": "t_time % 600 = 0",
}

_REFERRED = {
    "customer_sk": ("customer", None),
    "cdemo_sk": ("customer_demographics", None),
    "hdemo_sk": ("household_demographics", None),
    "catalog_page_sk": ("catalog_page", None),
    "item_sk": ("item", None),
    "store_sk": ("store", "ticket_number"),
    "warehouse_sk": ("warehouse", "item_sk"),
    "call_center_sk": ("call_center", "order_number"),
    "web_site_sk": ("web_site", "order_number"),
    "web_page_sk": ("web_page", "order_number"),
    "reason_sk": ("reason", "item_sk"),
    "promo_sk": ("promotion", "item_sk"),
}
"""By the end of a column's name: the table it refers to, and the column of its own row that chooses there."""


def main(folder: Path, rounds: int) -> None:
    """Write everything into a folder."""
    from duckdb_extensions import import_extension

    import_extension("tpcds")
    database = duckdb.connect()
    database.execute("LOAD tpcds")
    database.execute("CALL dsdgen(sf = 0.01)")
    folder.mkdir(parents=True, exist_ok=True)
    queries = {f"q{number}": text for number, text in database.execute("FROM tpcds_queries()").fetchall()}
    (folder / "queries.json").write_text(json.dumps(queries, indent=1))
    for table, keys in KEYS.items():
        shape(database, table)
        split(database, table, keys, folder, rounds, same=SAME)


def shape(database: duckdb.DuckDBPyConnection, table: str) -> None:
    """Leave fewer rows whose keys meet more often, and none of a key that is there already."""
    columns = [name for name, *_ in database.execute(f"DESCRIBE {table}").fetchall()]
    own = KEYS[table]
    rows = SEVERAL.get(table)
    shown = [_shaped(name, columns, own) for name in columns]
    source = table
    if rows is not None:
        source = f"(SELECT * FROM {table} LIMIT 1), range({rows}) AS n(n)"
        shown = [_copied(name, table) for name in columns]
    where = KEPT.get(table, "true")
    if table in FEWER:
        count, apart = FEWER[table]
        where = f"{own[0]} % {apart} = 0 AND {own[0]} <= {count * apart}"
    database.execute(
        f"CREATE OR REPLACE TABLE {table} AS FROM (SELECT {', '.join(shown)} FROM {source} WHERE {where}) "
        f"QUALIFY row_number() OVER (PARTITION BY {', '.join(own)} ORDER BY {', '.join(columns)}) = 1"
    )


def _shaped(name: str, columns: list[str], own: tuple[str, ...]) -> str:
    if name in _COARSER:
        return f"{_COARSER[name]} AS {name}"
    if name.endswith("_time_sk") and name not in own:
        return f"{name} - {name} % 600 AS {name}"
    end = next((end for end in _REFERRED if name.endswith(f"_{end}")), None)
    if end is None or (len(own) == 1 and name == own[0]):
        return name
    table, by = _REFERRED[end]
    chooser = next((each for each in columns if by is not None and each.endswith(f"_{by}")), name)
    count, apart = (SEVERAL[table], 1) if table in SEVERAL else FEWER[table]
    chosen = f"{apart} * (1 + hash({chooser}::BIGINT) % {count})::INTEGER"
    return f"CASE WHEN {name} IS NOT NULL THEN {chosen} END AS {name}"


_COARSER = {
    "i_manager_id": "1 + i_manager_id % 4",
    "i_manufact_id": "1 + i_manufact_id % 8",
    "i_color": "['powder', 'khaki', 'peach'][1 + i_item_sk % 3]",
    "i_size": "['medium', 'N/A', 'economy'][1 + i_item_sk // 2 % 3]",
    "i_units": "['Ounce', 'Bunch'][1 + i_item_sk % 2]",
    "ca_zip": "['60576', '24671', '45549', '85669', '31016', '67301'][1 + ca_address_sk % 6]",
    "ca_state": "['TX', 'GA', 'TN', 'IN', 'KY', 'OH', 'NE', 'IL', 'CA'][1 + ca_address_sk % 9]",
    "ca_city": "['Midway', 'Fairview', 'Edgewood', 'Oakland'][1 + ca_address_sk % 4]",
    "ca_county": "['Williamson County', 'Ziebach County', 'Walker County', 'Rush County'][1 + ca_address_sk % 4]",
    "ca_gmt_offset": "(-5 - ca_address_sk % 2)::DECIMAL(5, 2)",
    **{f"{table}_ext_sales_price": f"greatest({table}_ext_sales_price, 0.01)" for table in ("cs", "ss", "ws")},
}
"""Columns of dimensions that have fewer values here, and prices that are nowhere 0, as queries divide by their sums."""

_TURNED = {
    "s_state": "['TN', 'AL', 'SD', 'TN', 'GA', 'OH'][1 + n]",
    "s_county": "['Williamson County', 'Ziebach County', 'Walker County'][1 + n % 3]",
    "s_city": "['Midway', 'Fairview'][1 + n % 2]",
    "s_zip": "['60576', '24671', '45549'][1 + n % 3]",
    "s_market_id": "5 + n",
    "s_number_employees": "200 + 20 * n",
    "s_store_name": "['ought', 'able', 'ese'][1 + n % 3]",
    "w_warehouse_name": "['Bad cards must make.', 'Conventional childr', 'Doors canno'][1 + n % 3]",
    "cc_county": "['Williamson County', 'Ziebach County', 'Walker County'][1 + n % 3]",
    "cc_name": "['NY Metro', 'Mid Atlantic', 'Midwest'][1 + n % 3]",
    "web_company_name": "['pri', 'able', 'ese'][1 + n % 3]",
    "web_name": "'site_' || n",
    "wp_char_count": "5000 + 100 * n",
    "r_reason_desc": "['Package was damaged', 'Stopped working', 'reason 28'][1 + n % 3]",
    "p_channel_email": "['N', 'Y'][1 + n % 2]",
    "p_channel_event": "['N', 'Y', 'N'][1 + n % 3]",
    "p_channel_dmail": "['Y', 'N'][1 + n % 2]",
    "p_channel_tv": "['Y', 'N', 'N'][1 + n % 3]",
}


def _copied(name: str, table: str) -> str:
    if name in KEYS[table]:
        return f"(1 + n)::INTEGER AS {name}"
    if name.endswith("_id") and name != "s_market_id" and name.split("_", 1)[1] not in ("division_id", "company_id"):
        return f"{name} || n AS {name}"
    return f"{_TURNED[name]} AS {name}" if name in _TURNED else name


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
