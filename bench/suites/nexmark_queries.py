"""Queries in the manner of Nexmark, with event-time windows: q0 to q23 in Spark's SQL.

Numbering and meaning follow the suite of Flink. There is no q12, which counts by the time at which rows arrive: that is
no function of the rows. Bounds are those of a few hundred rows. `q11w` finds q11's sessions by window functions.
"""

from __future__ import annotations

_SOLD = "auction a JOIN bid b ON a.id = b.auction WHERE b.placed BETWEEN a.opens AND a.expires"
_RANKED = (
    "SELECT a.id, a.item, a.seller, a.category, b.bidder, b.price, b.placed, row_number() OVER "
    f"(PARTITION BY a.id ORDER BY b.price DESC, b.placed) AS place FROM {_SOLD}"
)
_BY_PRICE = """count({what}) AS all_{name}, count({what}) FILTER (WHERE price < 500) AS low_{name},
  count({what}) FILTER (WHERE price >= 500 AND price < 1000) AS fair_{name},
  count({what}) FILTER (WHERE price >= 1000) AS high_{name}"""
_BIDS = _BY_PRICE.format(what="*", name="bids")
_BIDDERS = _BY_PRICE.format(what="DISTINCT bidder", name="bidders")
_AUCTIONS = _BY_PRICE.format(what="DISTINCT auction", name="auctions")

QUERIES: dict[str, str] = {
    # pass through
    "q0": "SELECT auction, bidder, price, placed, extra FROM bid",
    # currency conversion
    "q1": "SELECT auction, bidder, 0.908 * price AS price, placed, extra FROM bid",
    # selection
    "q2": "SELECT auction, price FROM bid WHERE auction % 7 = 3",
    # local item suggestion
    "q3": "SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id "
    "WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')",
    # average price of a category
    "q4": f"SELECT category, avg(final) AS price FROM (SELECT a.category, max(b.price) AS final FROM {_SOLD} "
    "GROUP BY a.id, a.category) GROUP BY category",
    # hot items of sliding windows
    "q5": """
WITH counted AS (
  SELECT auction, window.start AS starts, window.end AS ends, count(*) AS bids
  FROM bid GROUP BY auction, window(placed, '10 minutes', '5 minutes'))
SELECT c.auction, c.bids, c.starts
FROM counted c
JOIN (SELECT starts, ends, max(bids) AS most FROM counted GROUP BY starts, ends) m
  ON c.starts = m.starts AND c.ends = m.ends AND c.bids >= m.most""",
    # average selling price of a seller's last auctions
    "q6": f"SELECT seller, id, avg(price) OVER (PARTITION BY seller ORDER BY placed ROWS BETWEEN 10 PRECEDING AND "
    f"CURRENT ROW) AS price FROM ({_RANKED}) WHERE place = 1",
    # highest bids of windows
    "q7": """
SELECT b.auction, b.price, b.bidder, b.placed
FROM bid b
JOIN (SELECT window.end AS ends, max(price) AS most FROM bid GROUP BY window(placed, '10 minutes')) m
  ON b.price = m.most
WHERE b.placed >= m.ends - INTERVAL 10 MINUTES AND b.placed < m.ends""",
    # new users who sell in the window they came in
    "q8": """
SELECT p.id, p.name, p.starts
FROM (SELECT id, name, window.start AS starts FROM person GROUP BY id, name, window(registered, '20 minutes')) p
JOIN (SELECT seller, window.start AS starts FROM auction GROUP BY seller, window(opens, '20 minutes')) a
  ON p.id = a.seller AND p.starts = a.starts""",
    # winning bids
    "q9": f"SELECT id, item, seller, category, bidder, price, placed FROM ({_RANKED}) WHERE place = 1",
    # log by day and minute
    "q10": "SELECT auction, bidder, price, placed, extra, date_format(placed, 'yyyy-MM-dd') AS day, "
    "date_format(placed, 'HH:mm') AS minute FROM bid",
    # sessions of users
    "q11": "SELECT bidder, count(*) AS bids, session_window.start AS starts, session_window.end AS ends FROM bid "
    "GROUP BY bidder, session_window(placed, '5 minutes')",
    "q11w": """
SELECT bidder, session, count(*) AS bids, min(placed) AS starts, max(placed) + INTERVAL 5 MINUTES AS ends
FROM (
  SELECT bidder, placed, sum(begins) OVER (PARTITION BY bidder ORDER BY placed) AS session
  FROM (
    SELECT bidder, placed, CASE WHEN placed < lag(placed) OVER (PARTITION BY bidder ORDER BY placed)
      + INTERVAL 5 MINUTES THEN 0 ELSE 1 END AS begins
    FROM bid WHERE placed IS NOT NULL))
GROUP BY bidder, session""",
    # a side input
    "q13": "SELECT b.auction, b.bidder, b.price, b.placed, s.value FROM bid b JOIN side_input s "
    "ON b.auction % 100 = s.key",
    # calculation
    "q14": """
SELECT auction, bidder, 0.908 * price AS price,
  CASE WHEN minute(placed) >= 8 AND minute(placed) <= 18 THEN 'day'
    WHEN minute(placed) <= 6 OR minute(placed) >= 50 THEN 'night' ELSE 'other' END AS kind,
  placed, extra, length(url) - length(replace(url, 'e', '')) AS letters
FROM bid WHERE 0.908 * price > 500 AND 0.908 * price < 900""",
    # bids of each hour
    "q15": f"SELECT date_format(placed, 'yyyy-MM-dd HH') AS hour, {_BIDS}, {_BIDDERS}, {_AUCTIONS} FROM bid "
    "GROUP BY date_format(placed, 'yyyy-MM-dd HH')",
    # channels
    "q16": f"SELECT channel, date_format(placed, 'yyyy-MM-dd HH') AS hour, "
    f"max(date_format(placed, 'HH:mm')) AS minute, "
    f"{_BIDS}, {_BIDDERS}, {_AUCTIONS} FROM bid GROUP BY channel, date_format(placed, 'yyyy-MM-dd HH')",
    # auctions
    "q17": f"SELECT auction, date_format(placed, 'yyyy-MM-dd') AS day, {_BIDS}, min(price) AS least, "
    "max(price) AS most, avg(price) AS mean, sum(price) AS total FROM bid GROUP BY auction, "
    "date_format(placed, 'yyyy-MM-dd')",
    # the last bid of a bidder for an auction
    "q18": "SELECT auction, bidder, price, channel, url, placed, extra FROM (SELECT *, row_number() OVER (PARTITION BY "
    "bidder, auction ORDER BY placed DESC) AS place FROM bid) WHERE place <= 1",
    # an auction's best bids
    "q19": "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC) AS place FROM bid) "
    "WHERE place <= 3",
    # bids with their auctions
    "q20": "SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.placed, a.item, a.description, a.initial_bid, "
    "a.reserve, a.opens, a.expires, a.seller, a.category FROM bid b JOIN auction a ON b.auction = a.id "
    "WHERE a.category = 10",
    # channels by number
    "q21": """
SELECT auction, bidder, price, channel,
  CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
    ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id
FROM bid
WHERE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) <> ''
  OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    # folders of addresses
    "q22": "SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS first, "
    "split_part(url, '/', 5) AS second, split_part(url, '/', 6) AS third FROM bid",
    # bids with bidders and auctions
    "q23": "SELECT b.auction, b.price, b.placed, p.name, p.city, a.item, a.category, a.expires FROM bid b "
    "JOIN person p ON b.bidder = p.id JOIN auction a ON b.auction = a.id",
}
