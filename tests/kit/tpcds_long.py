"""The longer queries in the manner of TPC-DS: several channels, several levels of subqueries; see `kit.tpcds`."""

from __future__ import annotations

_YEAR = """SELECT c_customer_id, c_first_name, d_year AS dyear, sum({total}) AS year_total, '{mark}' AS sale_type
  FROM customer, {table}, date_dim WHERE c_customer_sk = {customer} AND {date} = d_date_sk
  GROUP BY c_customer_id, c_first_name, d_year"""
_YEARS = " UNION ALL ".join(
    _YEAR.format(total=total, mark=mark, table=table, customer=customer, date=date)
    for total, mark, table, customer, date in (
        ("ss_ext_sales_price - ss_coupon_amt", "s", "store_sales", "ss_customer_sk", "ss_sold_date_sk"),
        ("ws_ext_sales_price - ws_ext_discount_amt", "w", "web_sales", "ws_bill_customer_sk", "ws_sold_date_sk"),
    )
)
_BRANDS = " INTERSECT ".join(
    f"SELECT {p}i.i_brand_id AS brand_id, {p}i.i_class AS class FROM {t}, item {p}i, date_dim {p}d "
    f"WHERE {item} = {p}i.i_item_sk AND {date} = {p}d.d_date_sk AND {p}d.d_year BETWEEN 1 AND 6"
    for p, t, item, date in (
        ("s", "store_sales", "ss_item_sk", "ss_sold_date_sk"),
        ("c", "catalog_sales", "cs_item_sk", "cs_sold_date_sk"),
    )
)

QUERIES: dict[str, str] = {
    # year over year: one expression read four times
    "q11": f"""
WITH year_total AS ({_YEARS})
SELECT t_s_sec.c_customer_id, t_s_sec.c_first_name FROM year_total t_s_first
JOIN year_total t_s_sec ON t_s_sec.c_customer_id = t_s_first.c_customer_id AND t_s_sec.sale_type = 's'
  AND t_s_sec.dyear = t_s_first.dyear + 1
JOIN year_total t_w_first ON t_s_first.c_customer_id = t_w_first.c_customer_id AND t_w_first.sale_type = 'w'
JOIN year_total t_w_sec ON t_s_first.c_customer_id = t_w_sec.c_customer_id AND t_w_sec.sale_type = 'w'
WHERE t_s_first.sale_type = 's' AND t_s_first.year_total > 0 AND t_w_first.year_total > 0
  AND t_w_sec.year_total * t_s_first.year_total > t_w_first.year_total * t_s_sec.year_total""",
    # what all channels sell, above the average of all, rolled up
    "q14": f"""
WITH cross_items AS (SELECT i_item_sk AS ss_sk FROM item, ({_BRANDS}) b
    WHERE i_brand_id = brand_id AND i_class = class),
  avg_sales AS (SELECT avg(quantity) AS average FROM (SELECT ss_quantity AS quantity FROM store_sales, date_dim
      WHERE ss_sold_date_sk = d_date_sk UNION ALL SELECT cs_quantity AS quantity FROM catalog_sales) x)
SELECT channel, i_brand_id, sum(sales) AS sales, sum(number_sales) AS n FROM (
  SELECT 'store' AS channel, i_brand_id, sum(ss_quantity) AS sales, count(*) AS number_sales FROM store_sales, item
  WHERE ss_item_sk IN (SELECT ss_sk FROM cross_items) AND ss_item_sk = i_item_sk
  GROUP BY i_brand_id HAVING sum(ss_quantity) > (SELECT average FROM avg_sales)
  UNION ALL
  SELECT 'catalog' AS channel, i_brand_id, sum(cs_quantity) AS sales, count(*) AS number_sales FROM catalog_sales, item
  WHERE cs_item_sk IN (SELECT ss_sk FROM cross_items) AND cs_item_sk = i_item_sk
  GROUP BY i_brand_id HAVING sum(cs_quantity) > (SELECT average FROM avg_sales)) y
GROUP BY ROLLUP (channel, i_brand_id)""",
    # frequent items and best customers
    "q23": """
WITH frequent AS (SELECT ss_item_sk AS item_sk, count(*) AS cnt FROM store_sales, date_dim
    WHERE ss_sold_date_sk = d_date_sk AND d_year IN (3, 4, 5) GROUP BY ss_item_sk HAVING count(*) > 1),
  most AS (SELECT max(csales) AS cmax FROM (SELECT ss_customer_sk, sum(ss_quantity * ss_sales_price) AS csales
      FROM store_sales, customer WHERE ss_customer_sk = c_customer_sk GROUP BY ss_customer_sk) x),
  best AS (SELECT c_customer_sk, sum(ss_quantity * ss_sales_price) AS ssales FROM store_sales, customer
    WHERE ss_customer_sk = c_customer_sk GROUP BY c_customer_sk
    HAVING sum(ss_quantity * ss_sales_price) > 0.5 * (SELECT cmax FROM most))
SELECT c_last_name, sum(sales) AS sales FROM (
  SELECT c_last_name, cs_quantity * cs_ext_sales_price AS sales FROM catalog_sales, customer
  WHERE cs_item_sk IN (SELECT item_sk FROM frequent) AND cs_bill_customer_sk IN (SELECT c_customer_sk FROM best)
    AND cs_bill_customer_sk = c_customer_sk
  UNION ALL
  SELECT c_last_name, ws_quantity * ws_ext_sales_price AS sales FROM web_sales, customer
  WHERE ws_item_sk IN (SELECT item_sk FROM frequent) AND ws_bill_customer_sk IN (SELECT c_customer_sk FROM best)
    AND ws_bill_customer_sk = c_customer_sk) y
GROUP BY c_last_name""",
    # HAVING above a value of the same expression
    "q24": """
WITH ssales AS (SELECT c_last_name, c_first_name, s_store_name, i_color, sum(ss_sales_price) AS netpaid
  FROM store_sales, store_returns, store, item, customer
  WHERE ss_ticket_number = sr_ticket_number AND ss_item_sk = sr_item_sk AND ss_customer_sk = c_customer_sk
    AND ss_item_sk = i_item_sk AND ss_store_sk = s_store_sk
  GROUP BY c_last_name, c_first_name, s_store_name, i_color)
SELECT c_last_name, c_first_name, s_store_name, sum(netpaid) AS paid FROM ssales WHERE i_color IN ('peach', 'snow')
GROUP BY c_last_name, c_first_name, s_store_name HAVING sum(netpaid) > (SELECT 0.05 * min(netpaid) FROM ssales)""",
    # the coefficient of variation, month against month: statistics are floating-point numbers
    "q39": """
WITH inv AS (SELECT inv_warehouse_sk, inv_item_sk, d_moy, stddev_samp(inv_quantity_on_hand) AS stdev,
    avg(inv_quantity_on_hand) AS mean FROM inventory, date_dim WHERE inv_date_sk = d_date_sk
  GROUP BY inv_warehouse_sk, inv_item_sk, d_moy)
SELECT inv1.inv_warehouse_sk, inv1.inv_item_sk, inv1.mean, inv2.mean AS mean2 FROM inv inv1, inv inv2
WHERE inv1.inv_item_sk = inv2.inv_item_sk AND inv1.inv_warehouse_sk = inv2.inv_warehouse_sk AND inv1.d_moy = 3
  AND inv2.d_moy = 4 AND inv1.stdev > inv1.mean""",
    # a count that depends on outer columns, under OR
    "q41": """
SELECT DISTINCT i_item_id FROM item i1 WHERE i_manufact_id BETWEEN 2 AND 7
  AND (SELECT count(*) FROM item WHERE i_manufact_id = i1.i_manufact_id
    AND ((i_category = 'Women' AND i_color IN ('peach', 'snow'))
      OR (i_category = 'Men' AND i_color = 'saddle'))) > 0""",
    # a month beside the month before it, and the yearly average
    "q47": """
WITH v1 AS (SELECT i_category, i_brand, d_year, d_moy, sum(ss_sales_price) AS sum_sales,
    sum(sum(ss_sales_price)) OVER (PARTITION BY i_category, i_brand, d_year) AS year_sales,
    rank() OVER (PARTITION BY i_category, i_brand ORDER BY d_year, d_moy) AS rn
  FROM item, store_sales, date_dim WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk
  GROUP BY i_category, i_brand, d_year, d_moy)
SELECT v1.i_category, v1.i_brand, v1.d_year, v1.d_moy, v1.year_sales, v1.sum_sales, v1_lag.sum_sales AS psum
FROM v1, v1 v1_lag WHERE v1.i_category = v1_lag.i_category AND v1.i_brand = v1_lag.i_brand AND v1.rn = v1_lag.rn + 1""",
    # the ten worst of each channel by two ranks
    "q49": """
SELECT 'web' AS channel, web.item, web.return_rank FROM (SELECT item, rank() OVER (ORDER BY quantity) AS return_rank,
    rank() OVER (ORDER BY amount DESC) AS currency_rank
  FROM (SELECT ws_item_sk AS item, sum(ws_quantity) AS quantity, sum(ws_ext_sales_price) AS amount
    FROM web_sales GROUP BY ws_item_sk) in_web) web WHERE web.return_rank <= 2 OR web.currency_rank <= 2
UNION
SELECT 'store' AS channel, store.item, store.return_rank FROM (SELECT item, rank() OVER (ORDER BY quantity) AS
    return_rank, rank() OVER (ORDER BY amount DESC) AS currency_rank
  FROM (SELECT sts.ss_item_sk AS item, sum(coalesce(sr.sr_return_quantity, 0)) AS quantity,
      sum(coalesce(sr.sr_return_amt, 0)) AS amount
    FROM store_sales sts LEFT OUTER JOIN store_returns sr
      ON sts.ss_ticket_number = sr.sr_ticket_number AND sts.ss_item_sk = sr.sr_item_sk
    GROUP BY sts.ss_item_sk) in_store) store WHERE store.return_rank <= 2 OR store.currency_rank <= 2""",
    # values of one row that are no aggregates
    "q54": """
WITH my_customers AS (SELECT DISTINCT c_customer_sk, c_current_addr_sk
  FROM (SELECT cs_sold_date_sk AS sold_date_sk, cs_bill_customer_sk AS customer_sk, cs_item_sk AS item_sk
      FROM catalog_sales UNION ALL SELECT ws_sold_date_sk, ws_bill_customer_sk, ws_item_sk FROM web_sales) sales,
    item, customer
  WHERE item_sk = i_item_sk AND i_category = 'Women' AND c_customer_sk = sales.customer_sk),
  my_revenue AS (SELECT c_customer_sk, sum(ss_ext_sales_price) AS revenue
  FROM my_customers, store_sales, customer_address, date_dim
  WHERE c_current_addr_sk = ca_address_sk AND ss_sold_date_sk = d_date_sk AND c_customer_sk = ss_customer_sk
    AND d_month_seq BETWEEN (SELECT DISTINCT 0 * d_year + 2 FROM date_dim WHERE d_year = 3 AND d_moy >= 1)
      AND (SELECT DISTINCT 0 * d_year + 7 FROM date_dim WHERE d_year = 3 AND d_moy >= 1)
  GROUP BY c_customer_sk)
SELECT segment, count(*) AS num_customers FROM (SELECT CAST(revenue / 50 AS INT) AS segment FROM my_revenue) s
GROUP BY segment""",
    # the week of a day, within two others
    "q58": """
SELECT ss_items.item_id, ss_items.ss_item_rev, ws_items.ws_item_rev FROM
  (SELECT i_item_id AS item_id, sum(ss_ext_sales_price) AS ss_item_rev FROM store_sales, item, date_dim
   WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND d_date IN (SELECT d_date FROM date_dim
     WHERE d_month_seq >= (SELECT min(d_month_seq) FROM date_dim WHERE d_date = DATE '2000-06-02'))
   GROUP BY i_item_id) ss_items,
  (SELECT i_item_id AS item_id, sum(ws_ext_sales_price) AS ws_item_rev FROM web_sales, item, date_dim
   WHERE ws_item_sk = i_item_sk AND ws_sold_date_sk = d_date_sk GROUP BY i_item_id) ws_items
WHERE ss_items.item_id = ws_items.item_id AND ss_items.ss_item_rev >= 0.1 * ws_items.ws_item_rev""",
    # the five best states, and ranks within the levels of a rollup
    "q70": """
SELECT sum(ss_net_profit) AS total_sum, s_state, s_city,
  CAST(grouping(s_state) + grouping(s_city) AS INT) AS lochierarchy,
  rank() OVER (PARTITION BY grouping(s_state) + grouping(s_city), CASE WHEN grouping(s_city) = 0 THEN s_state END
    ORDER BY sum(ss_net_profit) DESC) AS rank_within_parent
FROM store_sales, date_dim d1, store
WHERE d1.d_month_seq BETWEEN 1 AND 8 AND d1.d_date_sk = ss_sold_date_sk AND s_store_sk = ss_store_sk AND s_state IN (
  SELECT s_state FROM (SELECT s_state AS s_state, rank() OVER (PARTITION BY s_state ORDER BY sum(ss_net_profit) DESC)
      AS ranking FROM store_sales, store WHERE s_store_sk = ss_store_sk GROUP BY s_state) tmp1 WHERE ranking <= 5)
GROUP BY ROLLUP (s_state, s_city)""",
    # sales less returns of three channels, year against year
    "q75": """
WITH all_sales AS (SELECT d_year, i_brand_id, sum(sales_cnt) AS sales_cnt, sum(sales_amt) AS sales_amt FROM (
    SELECT d_year, i_brand_id, cs_quantity AS sales_cnt, cs_ext_sales_price - COALESCE(cr_return_amount, 0.0) AS
      sales_amt FROM catalog_sales JOIN item ON i_item_sk = cs_item_sk JOIN date_dim ON d_date_sk = cs_sold_date_sk
      LEFT JOIN catalog_returns ON cs_order_number = cr_order_number AND cs_item_sk = cr_item_sk
    UNION
    SELECT d_year, i_brand_id, ss_quantity - COALESCE(sr_return_quantity, 0) AS sales_cnt,
      ss_ext_sales_price - COALESCE(sr_return_amt, 0.0) AS sales_amt
    FROM store_sales JOIN item ON i_item_sk = ss_item_sk JOIN date_dim ON d_date_sk = ss_sold_date_sk
      LEFT JOIN store_returns ON ss_ticket_number = sr_ticket_number AND ss_item_sk = sr_item_sk) sales_detail
  GROUP BY d_year, i_brand_id)
SELECT prev_yr.d_year AS prev_year, curr_yr.i_brand_id, curr_yr.sales_cnt - prev_yr.sales_cnt AS sales_cnt_diff,
  curr_yr.sales_amt - prev_yr.sales_amt AS sales_amt_diff FROM all_sales curr_yr, all_sales prev_yr
WHERE curr_yr.i_brand_id = prev_yr.i_brand_id AND curr_yr.d_year = 4 AND prev_yr.d_year = 3""",
    # rows without a customer, a store or an address
    "q76": """
SELECT channel, col_name, d_year, i_category, count(*) AS sales_cnt, sum(ext_sales_price) AS sales_amt FROM (
  SELECT 'store' AS channel, 'ss_customer_sk' AS col_name, d_year, i_category, ss_ext_sales_price AS ext_sales_price
  FROM store_sales, item, date_dim
  WHERE ss_customer_sk IS NULL AND ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk
  UNION ALL
  SELECT 'web' AS channel, 'ws_bill_addr_sk' AS col_name, d_year, i_category, ws_ext_sales_price AS ext_sales_price
  FROM web_sales, item, date_dim
  WHERE ws_quantity > 3 AND ws_sold_date_sk = d_date_sk AND ws_item_sk = i_item_sk) foo
GROUP BY channel, col_name, d_year, i_category""",
    # sales and returns of each channel, outer joined and rolled up
    "q77": """
WITH ss AS (SELECT s_store_sk, sum(ss_ext_sales_price) AS sales, sum(ss_net_profit) AS profit
    FROM store_sales, date_dim, store WHERE ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk
    GROUP BY s_store_sk),
  sr AS (SELECT s_store_sk, sum(sr_return_amt) AS returned FROM store_returns, date_dim, store
    WHERE sr_returned_date_sk = d_date_sk AND sr_store_sk = s_store_sk GROUP BY s_store_sk)
SELECT channel, id, sum(sales) AS sales, sum(returned) AS returned FROM (
  SELECT 'store channel' AS channel, ss.s_store_sk AS id, sales, coalesce(returned, 0) AS returned
  FROM ss LEFT JOIN sr ON ss.s_store_sk = sr.s_store_sk
  UNION ALL
  SELECT 'catalog channel' AS channel, cs_warehouse_sk AS id, sum(cs_ext_sales_price) AS sales, 0 AS returned
  FROM catalog_sales CROSS JOIN (SELECT count(*) AS n FROM catalog_returns) r WHERE n > 0 GROUP BY cs_warehouse_sk) x
GROUP BY ROLLUP (channel, id)""",
    # what was never returned, by a left join and IS NULL
    "q78": """
WITH ws AS (SELECT d_year AS ws_sold_year, ws_item_sk, ws_bill_customer_sk AS ws_customer_sk, sum(ws_quantity) AS ws_qty
    FROM web_sales LEFT JOIN catalog_returns ON cr_order_number = ws_order_number AND ws_item_sk = cr_item_sk
    JOIN date_dim ON ws_sold_date_sk = d_date_sk WHERE cr_order_number IS NULL
    GROUP BY d_year, ws_item_sk, ws_bill_customer_sk),
  ss AS (SELECT d_year AS ss_sold_year, ss_item_sk, ss_customer_sk, sum(ss_quantity) AS ss_qty
    FROM store_sales LEFT JOIN store_returns ON sr_ticket_number = ss_ticket_number AND ss_item_sk = sr_item_sk
    JOIN date_dim ON ss_sold_date_sk = d_date_sk WHERE sr_ticket_number IS NULL
    GROUP BY d_year, ss_item_sk, ss_customer_sk)
SELECT ss_item_sk, ss_qty, coalesce(ws_qty, 0) AS other_qty FROM ss
LEFT JOIN ws ON ws_sold_year = ss_sold_year AND ws_item_sk = ss_item_sk AND ws_customer_sk = ss_customer_sk
WHERE coalesce(ws_qty, 0) > 0 OR ss_qty > 5""",
    # returns above those of the customer's state
    "q81": """
WITH ctr AS (SELECT sr_customer_sk AS ctr_customer_sk, ca_state AS ctr_state, sum(sr_return_amt) AS total
  FROM store_returns, customer, customer_address WHERE sr_customer_sk = c_customer_sk
    AND c_current_addr_sk = ca_address_sk GROUP BY sr_customer_sk, ca_state)
SELECT c_customer_id, c_first_name, ca_city, ctr1.total FROM ctr ctr1, customer_address, customer
WHERE ctr1.total > (SELECT avg(total) * 0.5 FROM ctr ctr2 WHERE ctr1.ctr_state = ctr2.ctr_state)
  AND ca_address_sk = c_current_addr_sk AND ctr1.ctr_customer_sk = c_customer_sk""",
    # first of each group, and what is left of the whole
    "q98": """
SELECT i_item_id, i_class, sum(ss_ext_sales_price) AS itemrevenue,
  sum(sum(ss_ext_sales_price)) OVER (PARTITION BY i_class) AS classrevenue,
  sum(sum(ss_ext_sales_price)) OVER () AS revenue
FROM store_sales, item, date_dim WHERE ss_item_sk = i_item_sk AND i_category IN ('Sports', 'Books', 'Home')
  AND ss_sold_date_sk = d_date_sk AND d_date BETWEEN DATE '2000-06-01' AND DATE '2000-06-01' + INTERVAL '30' DAY
GROUP BY i_item_id, i_class""",
    # orders that left from two warehouses, and were returned
    "q95": """
WITH cs_wh AS (SELECT cs1.cs_order_number FROM catalog_sales cs1, catalog_sales cs2
  WHERE cs1.cs_order_number = cs2.cs_order_number AND cs1.cs_warehouse_sk <> cs2.cs_warehouse_sk)
SELECT count(DISTINCT cs_order_number) AS order_count, sum(cs_ext_discount_amt) AS cost, sum(cs_net_profit) AS profit
FROM catalog_sales cs1, customer_address WHERE cs1.cs_ship_addr_sk = ca_address_sk
  AND cs1.cs_order_number IN (SELECT cs_order_number FROM cs_wh)
  AND cs1.cs_order_number IN (SELECT cr_order_number FROM catalog_returns, cs_wh
    WHERE cr_order_number = cs_wh.cs_order_number)""",
    # customers of one channel and another, and what they are
    "q35": """
SELECT ca_state, cd_gender, count(*) AS cnt1, min(cd_dep_count) AS least, max(cd_dep_count) AS most,
  sum(DISTINCT cd_dep_count) AS different
FROM customer c, customer_address ca, customer_demographics
WHERE c.c_current_addr_sk = ca.ca_address_sk AND cd_demo_sk = c.c_current_cdemo_sk
  AND EXISTS (SELECT * FROM store_sales WHERE c.c_customer_sk = ss_customer_sk)
  AND (EXISTS (SELECT * FROM web_sales WHERE c.c_customer_sk = ws_bill_customer_sk)
    OR EXISTS (SELECT * FROM catalog_sales WHERE c.c_customer_sk = cs_bill_customer_sk))
GROUP BY ca_state, cd_gender""",
}
