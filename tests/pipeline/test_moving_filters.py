"""Moving filters on Spark: rows enter and leave as time goes on, by the change, and as the query says at that time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from kit.long_tests import LONG
from kit.verified_rounds import require_equal

from headrace.api.facade import Headrace
from headrace.catalog import Catalog
from headrace.errors import UserError
from headrace.results.refresh_results import Mode

Go = Callable[[str], None]
"""Lets time go on."""

VIEWS = {
    "recent": "SELECT k, v, ts FROM {ns}.t WHERE ts > current_timestamp() - INTERVAL 7 DAYS AND v > 0",
    "counted": "SELECT k, count(*) AS n, sum(v) AS s, min(v) AS m FROM {ns}.t "
    "WHERE ts BETWEEN now() - INTERVAL 36 HOURS AND now() GROUP BY k",
    "days": "SELECT d, count(DISTINCT k) AS n FROM {ns}.t WHERE d >= current_date - 2 GROUP BY d",
    "none": "SELECT k FROM {ns}.u WHERE NOT EXISTS "
    "(SELECT 1 FROM {ns}.t WHERE t.k = u.k AND t.ts > localtimestamp() - INTERVAL 1 DAY)",
    "padded": "SELECT u.k, u.w, t.v FROM {ns}.u LEFT JOIN {ns}.t ON t.k = u.k AND t.ts > now() - INTERVAL 2 DAYS",
    # over stream tables: a diamond
    "left": "SELECT k, max(ts) AS latest FROM {ns}.recent GROUP BY k",
    "right": "SELECT k, sum(v) AS s FROM {ns}.recent GROUP BY k",
    "bottom": "SELECT l.k, l.latest, r.s FROM {ns}.left l JOIN {ns}.right r ON l.k = r.k",
}


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch) -> Go:
    def to(moment: str) -> None:
        time = dt.datetime.fromisoformat(moment).replace(tzinfo=dt.UTC)
        monkeypatch.setattr(Catalog, "now", lambda _: time)

    to("2024-03-30 12:00:00")
    return to


@pytest.fixture
def events(hr: Headrace, ns: str) -> str:
    hr.sql(f"CREATE TABLE lake.{ns}.t (k INT, v INT, ts TIMESTAMP, d DATE) USING iceberg")
    hr.sql(f"CREATE TABLE lake.{ns}.u (k INT, w INT) USING iceberg")
    hr.sql(
        f"""INSERT INTO lake.{ns}.t SELECT id % 4, id % 5, ts, CAST(ts AS DATE) FROM
        (SELECT id, timestampadd(HOUR, id * 5, TIMESTAMP '2024-03-20 00:00:00Z') AS ts FROM range(120))"""
    )
    hr.sql(f"INSERT INTO lake.{ns}.t VALUES (1, 1, NULL, NULL)")
    hr.sql(f"INSERT INTO lake.{ns}.u VALUES (1, 1), (2, 2), (3, 3), (9, 9), (NULL, 0)")
    return ns


NIGHT = (
    ("2024-03-30 23:30:00", None),  # the day after in Berlin, whose clocks are about to be put forward
    ("2024-03-31 01:00:00", None),
)


def test_rows_enter_and_leave(hr: Headrace, events: str, go: Go) -> None:
    ns = events
    played = {name: query for name, query in VIEWS.items() if LONG or name != "padded"}
    names = [f"{ns}.{name}" for name in played]
    for name, query in played.items():
        hr.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin" if name == "days" else "UTC")
        hr.create_stream_table(f"{ns}.{name}", query.format(ns=ns), refresh_mode="DIFFERENTIAL")
    require_equal(hr, names, "nothing yet", due=False)
    moments = (
        *(NIGHT if LONG else NIGHT[1:]),
        ("2024-04-02 07:00:00", f"UPDATE lake.{ns}.t SET ts = timestampadd(DAY, 3, ts), v = v + 1 WHERE k = 2"),
        ("2024-04-06 00:00:00", f"DELETE FROM lake.{ns}.t WHERE k = 3 OR ts > TIMESTAMP '2024-04-10 00:00:00Z'"),
    )
    for number, (moment, change) in enumerate(moments, 1):
        if change is not None:
            hr.sql(change)
        go(moment)
        results = {r.name: r for r in hr.refresh(names)}
        assert {r.mode for r in results.values()} <= {Mode.DIFFERENTIAL, Mode.NO_CHANGE}, results
        require_equal(hr, names, moment, due=number == len(moments))
    kept = {name: sorted(map(str, hr.spark.table(f"lake.{name}").collect())) for name in names}
    go("2024-04-06 00:00:01")
    assert {r.mode for r in hr.refresh(names, full=True)} == {Mode.FULL}
    assert {name: sorted(map(str, hr.spark.table(f"lake.{name}").collect())) for name in names} == kept
    require_equal(hr, names, "recomputed", due=False)


@pytest.mark.long
def test_time_alone_is_news(hr: Headrace, events: str, go: Go) -> None:
    ns = events
    for name in ("recent", "right"):
        hr.create_stream_table(f"{ns}.{name}", VIEWS[name].format(ns=ns), refresh_mode="DIFFERENTIAL")
    go("2024-04-01 12:00:00")
    first, second = hr.refresh([f"{ns}.recent", f"{ns}.right"])
    assert (first.mode, second.mode) == (Mode.DIFFERENTIAL, Mode.DIFFERENTIAL)
    assert first.rows_deleted
    go("2024-04-01 12:00:01")  # no row is so old
    first, second = hr.refresh([f"{ns}.recent", f"{ns}.right"])
    assert second.mode is Mode.NO_CHANGE
    go("2024-04-01 11:30:00")  # the clock of another host is behind
    assert hr.refresh(f"{ns}.recent").mode is Mode.NO_CHANGE
    go("2024-03-01 00:00:00")  # that of the last one was far ahead
    assert hr.refresh(f"{ns}.recent").rows_inserted
    assert hr.verify(f"{ns}.recent").ok


def test_what_is_told(hr: Headrace, events: str) -> None:
    ns = events
    found = hr.validate(VIEWS["counted"].format(ns=ns))
    assert found.mode is Mode.DIFFERENTIAL
    told = [line.subject for line in found.strategies if line.construct == "MOVING FILTER"]
    assert told == ["t.ts >= (now - INTERVAL 36 HOURS)", "t.ts <= now"]
    for query in (
        "SELECT k, now() AS at FROM {ns}.t",
        "SELECT k, count(*) FILTER (WHERE ts > now()) AS n FROM {ns}.t GROUP BY k",
        "SELECT t.k FROM {ns}.u FULL JOIN {ns}.t ON t.k = u.k AND t.ts > now()",
        "SELECT k FROM {ns}.t WHERE ts > now() - INTERVAL 1 DAY AND rand() > 2",
    ):
        assert hr.validate(query.format(ns=ns)).mode is Mode.FULL, query
        assert hr.validate(query.format(ns=ns)).reason == "NOT_DETERMINISTIC", query
    with pytest.raises(UserError) as caught:
        hr.validate(f"SELECT k FROM {ns}.t WHERE k > current_timestamp() - INTERVAL 1 DAY")
    assert caught.value.place is not None


@pytest.mark.long
def test_generations_stand_at_one_time(hr: Headrace, events: str, go: Go) -> None:
    ns = events
    query = VIEWS["recent"].format(ns=ns)
    hr.create_stream_table(f"{ns}.recent", query, refresh_mode="DIFFERENTIAL")
    hr.create_stream_table(f"{ns}.right", VIEWS["right"].format(ns=ns), refresh_mode="DIFFERENTIAL")
    hr.create_green(f"{ns}.recent", query.replace("7 DAYS", "5 DAYS"))
    hr.create_green(f"{ns}.right")
    go("2024-04-01 12:00:00")
    hr.refresh()
    assert {(i.state, i.converged) for i in hr.green_status(deployment="green")} == {("converged", True)}
    hr.promote_all_green()
    go("2024-04-02 12:00:00")
    results = hr.refresh([f"{ns}.recent", f"{ns}.right"])
    assert {r.mode for r in results} == {Mode.DIFFERENTIAL}
    assert [v for v in hr.verify([f"{ns}.recent", f"{ns}.right"]) if not v.ok] == []
    oldest = hr.spark.sql(f"SELECT min(ts) > TIMESTAMP '2024-03-28 12:00:00Z' AS ok FROM lake.{ns}.recent").first()
    assert oldest is not None
    assert oldest.ok
    hr.cancel_green(deployment="green")
