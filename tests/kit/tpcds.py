"""Queries in the manner of TPC-DS, over the part of its schema that they read: the most different of its 99.

Each is named after the query whose construct it has; they are shortened where TPC-DS repeats itself, and LIMIT 100
behind ORDER BY is left out but where it shows something.
"""

from __future__ import annotations

from headrace.algebra.schema import Column
from kit import tpcds_long

COLUMNS: dict[str, tuple[Column, ...]] = {
    table: tuple(
        Column(name, "decimal(7,2)" if type_ == "money" else type_)
        for name, type_ in (each.split() for each in columns.split(", "))
    )
    for table, columns in {
        "date_dim": "d_date_sk int, d_date date, d_year int, d_moy int, d_qoy int, d_dow int, d_month_seq int, "
        "d_day_name string",
        "item": "i_item_sk int, i_item_id string, i_item_desc string, i_current_price money, i_brand_id int, "
        "i_brand string, i_class string, i_category string, i_manufact_id int, i_manager_id int, i_color string",
        "customer": "c_customer_sk int, c_customer_id string, c_current_cdemo_sk int, c_current_hdemo_sk int, "
        "c_current_addr_sk int, c_first_name string, c_last_name string, c_birth_month int",
        "customer_address": "ca_address_sk int, ca_city string, ca_county string, ca_state string, ca_zip string, "
        "ca_country string, ca_gmt_offset decimal(5,2)",
        "customer_demographics": "cd_demo_sk int, cd_gender string, cd_marital_status string, "
        "cd_education_status string, cd_dep_count int",
        "household_demographics": "hd_demo_sk int, hd_buy_potential string, hd_dep_count int, hd_vehicle_count int",
        "store": "s_store_sk int, s_store_id string, s_store_name string, s_state string, s_city string, s_zip string, "
        "s_gmt_offset decimal(5,2)",
        "promotion": "p_promo_sk int, p_channel_email string, p_channel_event string",
        "warehouse": "w_warehouse_sk int, w_warehouse_name string",
        "inventory": "inv_date_sk int, inv_item_sk int, inv_warehouse_sk int, inv_quantity_on_hand int",
        "store_sales": "ss_sold_date_sk int, ss_item_sk int, ss_customer_sk int, ss_cdemo_sk int, ss_hdemo_sk int, "
        "ss_addr_sk int, ss_store_sk int, ss_promo_sk int, ss_ticket_number int, ss_quantity int, ss_list_price money, "
        "ss_sales_price money, ss_ext_sales_price money, ss_coupon_amt money, ss_net_profit money",
        "store_returns": "sr_returned_date_sk int, sr_item_sk int, sr_customer_sk int, sr_store_sk int, "
        "sr_ticket_number int, sr_return_quantity int, sr_return_amt money, sr_reason_sk int",
        "catalog_sales": "cs_sold_date_sk int, cs_item_sk int, cs_bill_customer_sk int, cs_ship_addr_sk int, "
        "cs_warehouse_sk int, cs_order_number int, cs_quantity int, cs_ext_sales_price money, "
        "cs_ext_discount_amt money, cs_net_profit money",
        "catalog_returns": "cr_order_number int, cr_item_sk int, cr_return_amount money",
        "web_sales": "ws_sold_date_sk int, ws_item_sk int, ws_bill_customer_sk int, ws_bill_addr_sk int, "
        "ws_order_number int, ws_quantity int, ws_ext_sales_price money, ws_ext_discount_amt money",
    }.items()
}

_CHANNEL = (
    "SELECT DISTINCT c_last_name, c_first_name, d_date FROM {t}, date_dim, customer "
    "WHERE {p}_sold_date_sk = d_date_sk AND {c} = c_customer_sk AND d_month_seq BETWEEN 1 AND 24"
)
_STORE = _CHANNEL.format(t="store_sales", p="ss", c="ss_customer_sk")
_CATALOG = _CHANNEL.format(t="catalog_sales", p="cs", c="cs_bill_customer_sk")
_WEB = _CHANNEL.format(t="web_sales", p="ws", c="ws_bill_customer_sk")

QUERIES: dict[str, str] = {
    "q1": """
WITH ctr AS (
  SELECT sr_customer_sk, sr_store_sk, sum(sr_return_amt) AS total FROM store_returns, date_dim
  WHERE sr_returned_date_sk = d_date_sk AND d_year = 2000 GROUP BY sr_customer_sk, sr_store_sk)
SELECT c_customer_id FROM ctr ctr1, store, customer
WHERE ctr1.total > (SELECT avg(total) * 1.2 FROM ctr ctr2 WHERE ctr1.sr_store_sk = ctr2.sr_store_sk)
  AND s_store_sk = ctr1.sr_store_sk AND s_state = 'TN' AND ctr1.sr_customer_sk = c_customer_sk""",
    "q3": """
SELECT d_year, i_brand_id, i_brand, sum(ss_ext_sales_price) AS sum_agg FROM date_dim, store_sales, item
WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manufact_id = 12 AND d_moy = 11
GROUP BY d_year, i_brand, i_brand_id ORDER BY d_year, sum_agg DESC, i_brand_id, i_brand LIMIT 100""",
    "q6": """
SELECT ca_state, count(*) AS cnt FROM customer_address, customer, store_sales, date_dim, item i
WHERE ca_address_sk = c_current_addr_sk AND c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk
  AND ss_item_sk = i_item_sk
  AND i.i_current_price > 1.2 * (SELECT avg(j.i_current_price) FROM item j WHERE j.i_category = i.i_category)
GROUP BY ca_state HAVING count(*) >= 2""",
    "q7": """
SELECT i_item_id, avg(ss_quantity) AS agg1, sum(ss_coupon_amt) AS agg2
FROM store_sales, customer_demographics, date_dim, item, promotion
WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND ss_cdemo_sk = cd_demo_sk
  AND ss_promo_sk = p_promo_sk AND cd_gender = 'M' AND (p_channel_email = 'N' OR p_channel_event = 'N')
GROUP BY i_item_id""",
    "q9": """
SELECT CASE WHEN (SELECT count(*) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20) > 10
  THEN (SELECT max(ss_list_price) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20)
  ELSE (SELECT min(ss_net_profit) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20) END AS bucket1
FROM promotion WHERE p_promo_sk = 1""",
    "q10": """
SELECT cd_gender, cd_education_status, count(*) AS cnt1 FROM customer c, customer_address ca, customer_demographics
WHERE c.c_current_addr_sk = ca.ca_address_sk AND ca_county IN ('Rush County', 'Toole County')
  AND cd_demo_sk = c.c_current_cdemo_sk
  AND EXISTS (SELECT * FROM store_sales, date_dim WHERE c.c_customer_sk = ss_customer_sk
    AND ss_sold_date_sk = d_date_sk AND d_year = 2002)
  AND (EXISTS (SELECT * FROM web_sales WHERE c.c_customer_sk = ws_bill_customer_sk)
    OR EXISTS (SELECT * FROM catalog_sales WHERE c.c_customer_sk = cs_bill_customer_sk))
GROUP BY cd_gender, cd_education_status""",
    "q12": """
SELECT i_item_id, i_class, sum(ws_ext_sales_price) AS itemrevenue,
  sum(ws_ext_sales_price) * 100 / sum(sum(ws_ext_sales_price)) OVER (PARTITION BY i_class) AS revenueratio
FROM web_sales, item, date_dim
WHERE ws_item_sk = i_item_sk AND i_category IN ('Sports', 'Books', 'Home') AND ws_sold_date_sk = d_date_sk
GROUP BY i_item_id, i_class""",
    "q13": """
SELECT avg(ss_quantity) AS q, sum(ss_ext_sales_price) AS s
FROM store_sales, store, customer_demographics, household_demographics, customer_address
WHERE s_store_sk = ss_store_sk AND ((ss_hdemo_sk = hd_demo_sk AND cd_demo_sk = ss_cdemo_sk
    AND cd_marital_status = 'M' AND hd_dep_count = 3) OR (ss_hdemo_sk = hd_demo_sk AND cd_demo_sk = ss_cdemo_sk
    AND cd_marital_status = 'S' AND hd_dep_count = 1))
  AND ss_addr_sk = ca_address_sk AND ca_country = 'United States'""",
    "q16": """
SELECT count(DISTINCT cs_order_number) AS order_count, sum(cs_net_profit) AS profit
FROM catalog_sales cs1, customer_address
WHERE cs1.cs_ship_addr_sk = ca_address_sk AND ca_state = 'GA'
  AND EXISTS (SELECT * FROM catalog_sales cs2 WHERE cs1.cs_order_number = cs2.cs_order_number
    AND cs1.cs_warehouse_sk <> cs2.cs_warehouse_sk)
  AND NOT EXISTS (SELECT * FROM catalog_returns cr1 WHERE cs1.cs_order_number = cr1.cr_order_number)""",
    "q19": """
SELECT i_brand_id, i_brand, sum(ss_ext_sales_price) AS ext_price
FROM date_dim, store_sales, item, customer, customer_address, store
WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manager_id = 8 AND ss_customer_sk = c_customer_sk
  AND c_current_addr_sk = ca_address_sk AND substr(ca_zip, 1, 5) <> substr(s_zip, 1, 5) AND ss_store_sk = s_store_sk
GROUP BY i_brand_id, i_brand""",
    "q22": """
SELECT i_brand, i_class, i_category, avg(inv_quantity_on_hand) AS qoh FROM inventory, date_dim, item
WHERE inv_date_sk = d_date_sk AND inv_item_sk = i_item_sk AND d_month_seq BETWEEN 1 AND 12
GROUP BY ROLLUP (i_brand, i_class, i_category)""",
    "q28": """
SELECT * FROM (SELECT count(ss_list_price) AS b1_cnt, count(DISTINCT ss_list_price) AS b1_cntd FROM store_sales
  WHERE ss_quantity BETWEEN 0 AND 5) b1, (SELECT count(ss_list_price) AS b2_cnt FROM store_sales
  WHERE ss_quantity BETWEEN 6 AND 10) b2""",
    "q33": """
WITH ss AS (SELECT i_manufact_id, sum(ss_ext_sales_price) AS total FROM store_sales, item WHERE i_manufact_id IN
    (SELECT i_manufact_id FROM item WHERE i_category = 'Books') AND ss_item_sk = i_item_sk GROUP BY i_manufact_id),
  ws AS (SELECT i_manufact_id, sum(ws_ext_sales_price) AS total FROM web_sales, item WHERE i_manufact_id IN
    (SELECT i_manufact_id FROM item WHERE i_category = 'Books') AND ws_item_sk = i_item_sk GROUP BY i_manufact_id)
SELECT i_manufact_id, sum(total) AS total FROM (SELECT * FROM ss UNION ALL SELECT * FROM ws) t
GROUP BY i_manufact_id""",
    "q36": """
SELECT i_category, i_class, sum(ss_net_profit) AS profit,
  CAST(grouping(i_category) + grouping(i_class) AS INT) AS lochierarchy
FROM store_sales, item, store WHERE i_item_sk = ss_item_sk AND s_store_sk = ss_store_sk
GROUP BY ROLLUP (i_category, i_class)""",
    "q38": f"SELECT count(*) AS n FROM ({_STORE} INTERSECT {_CATALOG} INTERSECT {_WEB}) hot_cust",
    "q43": """
SELECT s_store_name, s_store_id, sum(CASE WHEN d_day_name = 'Sunday' THEN ss_sales_price ELSE NULL END) AS sun_sales,
  sum(CASE WHEN d_day_name = 'Monday' THEN ss_sales_price ELSE NULL END) AS mon_sales
FROM date_dim, store_sales, store
WHERE d_date_sk = ss_sold_date_sk AND s_store_sk = ss_store_sk GROUP BY s_store_name, s_store_id""",
    "q44": """
SELECT asceding.rnk, i1.i_item_id AS best FROM (SELECT item_sk, rank() OVER (ORDER BY total DESC) AS rnk FROM
  (SELECT ss_item_sk AS item_sk, sum(ss_net_profit) AS total FROM store_sales WHERE ss_store_sk = 4
   GROUP BY ss_item_sk HAVING sum(ss_net_profit) > (SELECT 0.9 * min(ss_net_profit) FROM store_sales)) v1) asceding,
  item i1 WHERE asceding.rnk < 11 AND i1.i_item_sk = asceding.item_sk""",
    "q45": """
SELECT ca_zip, ca_city, sum(ws_ext_sales_price) AS total FROM web_sales, customer, customer_address, item
WHERE ws_bill_customer_sk = c_customer_sk AND c_current_addr_sk = ca_address_sk AND ws_item_sk = i_item_sk
  AND (substr(ca_zip, 1, 5) IN ('85669', '86197')
    OR i_item_id IN (SELECT i_item_id FROM item WHERE i_item_sk IN (2, 3, 5, 7)))
GROUP BY ca_zip, ca_city""",
    "q51": """
WITH web AS (SELECT ws_item_sk AS item_sk, d_date, sum(sum(ws_ext_sales_price)) OVER (PARTITION BY ws_item_sk
    ORDER BY d_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS cume
  FROM web_sales, date_dim WHERE ws_sold_date_sk = d_date_sk GROUP BY ws_item_sk, d_date),
  shop AS (SELECT ss_item_sk AS item_sk, d_date, sum(sum(ss_ext_sales_price)) OVER (PARTITION BY ss_item_sk
    ORDER BY d_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS cume
  FROM store_sales, date_dim WHERE ss_sold_date_sk = d_date_sk GROUP BY ss_item_sk, d_date)
SELECT COALESCE(web.item_sk, shop.item_sk) AS item_sk, COALESCE(web.d_date, shop.d_date) AS d_date,
  web.cume AS web_sales, shop.cume AS store_sales
FROM web FULL OUTER JOIN shop ON web.item_sk = shop.item_sk AND web.d_date = shop.d_date""",
    "q65": """
WITH sales AS (SELECT ss_store_sk, ss_item_sk, sum(ss_sales_price) AS revenue FROM store_sales, date_dim
  WHERE ss_sold_date_sk = d_date_sk AND d_month_seq BETWEEN 1 AND 12 GROUP BY ss_store_sk, ss_item_sk)
SELECT s_store_name, i_item_desc, sc.revenue FROM store, item, sales sc,
  (SELECT ss_store_sk, min(revenue) AS least FROM sales GROUP BY ss_store_sk) sb
WHERE sb.ss_store_sk = sc.ss_store_sk AND sc.revenue <= 2 * sb.least AND s_store_sk = sc.ss_store_sk
  AND i_item_sk = sc.ss_item_sk""",
    "q67": """
SELECT * FROM (SELECT i_category, i_class, sumsales, rank() OVER (PARTITION BY i_category ORDER BY sumsales DESC) AS rk
  FROM (SELECT i_category, i_class, sum(COALESCE(ss_sales_price * ss_quantity, 0)) AS sumsales
    FROM store_sales, item WHERE ss_item_sk = i_item_sk GROUP BY ROLLUP (i_category, i_class)) dw1) dw2
WHERE rk <= 100""",
    "q73": """
SELECT c_last_name, c_first_name, ss_ticket_number, cnt FROM (SELECT ss_ticket_number, ss_customer_sk, count(*) AS cnt
  FROM store_sales, household_demographics WHERE ss_hdemo_sk = hd_demo_sk AND hd_vehicle_count > 0
    AND CASE WHEN hd_vehicle_count > 0 THEN hd_dep_count / hd_vehicle_count ELSE NULL END > 1
  GROUP BY ss_ticket_number, ss_customer_sk) dj, customer
WHERE ss_customer_sk = c_customer_sk AND cnt BETWEEN 1 AND 5""",
    "q82": """
SELECT i_item_id, i_item_desc, i_current_price FROM item, inventory, date_dim, store_sales
WHERE i_current_price BETWEEN 2 AND 92 AND inv_item_sk = i_item_sk AND d_date_sk = inv_date_sk
  AND d_date BETWEEN DATE '2000-05-25' AND DATE '2000-05-25' + INTERVAL '60' DAY AND ss_item_sk = i_item_sk
GROUP BY i_item_id, i_item_desc, i_current_price""",
    "q87": f"SELECT count(*) AS n FROM (({_STORE}) EXCEPT ({_CATALOG}) EXCEPT ({_WEB})) cool_cust",
    "q88": """
SELECT * FROM (SELECT count(*) AS h8 FROM store_sales, store WHERE ss_store_sk = s_store_sk AND s_state = 'TN') s1,
  (SELECT count(*) AS h9 FROM store_sales, household_demographics WHERE ss_hdemo_sk = hd_demo_sk
   AND hd_dep_count = 4) s2""",
    "q92": """
SELECT sum(ws_ext_discount_amt) AS excess FROM web_sales, item, date_dim
WHERE i_manufact_id = 35 AND i_item_sk = ws_item_sk AND d_date_sk = ws_sold_date_sk AND ws_ext_discount_amt > (
  SELECT 1.3 * avg(ws_ext_discount_amt) FROM web_sales, date_dim
  WHERE ws_item_sk = i_item_sk AND d_date_sk = ws_sold_date_sk)""",
    "q93": """
SELECT ss_customer_sk, sum(act_sales) AS sumsales FROM (SELECT ss_item_sk, ss_ticket_number, ss_customer_sk,
  CASE WHEN sr_return_quantity IS NOT NULL THEN (ss_quantity - sr_return_quantity) * ss_sales_price
    ELSE ss_quantity * ss_sales_price END AS act_sales
  FROM store_sales LEFT OUTER JOIN store_returns
    ON sr_item_sk = ss_item_sk AND sr_ticket_number = ss_ticket_number WHERE sr_reason_sk = 1 OR sr_reason_sk IS NULL) t
GROUP BY ss_customer_sk""",
    "q97": """
WITH ssci AS (SELECT ss_customer_sk AS customer_sk, ss_item_sk AS item_sk FROM store_sales GROUP BY ss_customer_sk,
    ss_item_sk),
  csci AS (SELECT cs_bill_customer_sk AS customer_sk, cs_item_sk AS item_sk FROM catalog_sales
    GROUP BY cs_bill_customer_sk, cs_item_sk)
SELECT sum(CASE WHEN ssci.customer_sk IS NOT NULL AND csci.customer_sk IS NULL THEN 1 ELSE 0 END) AS store_only,
  sum(CASE WHEN ssci.customer_sk IS NOT NULL AND csci.customer_sk IS NOT NULL THEN 1 ELSE 0 END) AS both_of_them
FROM ssci FULL OUTER JOIN csci ON ssci.customer_sk = csci.customer_sk AND ssci.item_sk = csci.item_sk""",
} | tpcds_long.QUERIES

REFUSED = frozenset[str]()
"""Those that are refreshed FULL: none."""

UNMOVED = frozenset(["q39"])
"""Those whose result random rows leave empty: q39 has two months of one item in one warehouse side by side."""
