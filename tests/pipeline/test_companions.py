"""Companions that are left behind while recomputing is cheaper, and written again before they are used."""

from __future__ import annotations

import random

import pytest

from headrace.api.facade import Headrace
from headrace.errors import HeadraceError
from headrace.names import LAKE, TableName
from headrace.reasons import FullReason
from headrace.results.refresh_results import Mode, RefreshResult

SETUP = """
CREATE TABLE {0}.t (k INT, v INT, d DECIMAL(10,2), parent INT) USING iceberg;
INSERT INTO {0}.t SELECT id % 7, id, id / 3, id % 5 FROM range(40);
CREATE STREAM TABLE {0}.means AS SELECT k, avg(d) AS mean, count(v) AS n FROM {0}.t GROUP BY k;
CREATE STREAM TABLE {0}.distinct AS SELECT DISTINCT k, v % 3 AS m FROM {0}.t;
CREATE STREAM TABLE {0}.first AS SELECT k, v, d FROM {0}.t ORDER BY v DESC, k, d LIMIT 5;
CREATE STREAM TABLE {0}.above AS SELECT v FROM {0}.t WHERE v > (SELECT avg(v) FROM {0}.t);
CREATE STREAM TABLE {0}.reader REFRESH MODE DIFFERENTIAL AS SELECT max(mean) AS mean, sum(n) AS n FROM {0}.means
"""
NAMES = ("distinct", "first", "above", "means")
"""The last one is read by another stream table."""


@pytest.fixture
def names(hr: Headrace, ns: str) -> list[str]:
    hr.sql(SETUP.format(ns))
    return [f"{ns}.{name}" for name in NAMES]


def refreshed(hr: Headrace, name: str, mode: str | None = None, **options: bool) -> RefreshResult:
    """A refresh whose result must be right."""
    if mode is not None:
        hr.alter_stream_table(name, refresh_mode=mode)
    result = hr.refresh(name, **options)
    assert hr.verify(name).ok, result
    return result


def how(result: RefreshResult) -> tuple[Mode, FullReason | None]:
    return result.mode, result.reason


def wrote_companion(result: RefreshResult) -> bool:
    return any("companion" in title and title.startswith(("overwrite", "apply")) for title in result.stages)


def is_behind(hr: Headrace, ns: str, name: str = NAMES[0]) -> bool:
    return hr._catalog.stream_table(TableName(LAKE, (ns,), name)).companion_behind


def chosen(hr: Headrace, name: str) -> str:
    """What `explain` says of the choice."""
    return dict(hr.explain(name).sections)["choice"]


def test_where_recomputing_is_cheaper_it_is_left_behind(hr: Headrace, ns: str, names: list[str]) -> None:
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 50, 1, 1)")
    assert "the companion will be behind" in chosen(hr, names[0])
    result = refreshed(hr, names[0])  # of forty rows
    assert how(result) == (Mode.FULL, FullReason.COST)
    assert not wrote_companion(result)
    assert is_behind(hr, ns)
    assert "the companion is behind" in chosen(hr, names[0])


def test_who_reads_such_a_table_receives_the_difference(hr: Headrace, ns: str, names: list[str]) -> None:
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 50, 100, 1)")
    assert (refreshed(hr, names[3], "FULL").rows_inserted, is_behind(hr, ns, NAMES[3])) == (1, True)
    follower = refreshed(hr, f"{ns}.reader")
    assert (follower.mode, follower.rows_inserted) == (Mode.DIFFERENTIAL, 1)


def test_it_is_written_again_before_changes_are_followed(hr: Headrace, ns: str, names: list[str]) -> None:
    for name in names:
        hr.sql(f"INSERT INTO {ns}.t VALUES (1, 50, 1, 1), (9, NULL, NULL, NULL)")
        refreshed(hr, name, "FULL")
        hr.sql(f"DELETE FROM {ns}.t WHERE v = 50")
        again = refreshed(hr, name, "DIFFERENTIAL")
        assert how(again) == (Mode.FULL, FullReason.COMPANION_BEHIND)
        assert wrote_companion(again)
        hr.sql(f"INSERT INTO {ns}.t VALUES (1, 60, 1, 1)")
        assert how(refreshed(hr, name)) == (Mode.DIFFERENTIAL, None)


def test_nothing_changed_is_no_reason_to_write_it(hr: Headrace, ns: str, names: list[str]) -> None:
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 50, 1, 1)")
    refreshed(hr, names[0])
    assert refreshed(hr, names[0], "DIFFERENTIAL").mode is Mode.NO_CHANGE
    assert is_behind(hr, ns)


def test_a_table_altered_to_full_writes_none(hr: Headrace, ns: str, names: list[str]) -> None:
    assert not is_behind(hr, ns)
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 50, 1, 1)")
    result = refreshed(hr, names[0], "FULL")
    assert how(result) == (Mode.FULL, FullReason.FORCED)
    assert not wrote_companion(result)
    assert is_behind(hr, ns)


def test_who_asks_for_full_has_everything_written(hr: Headrace, ns: str, names: list[str]) -> None:
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 50, 1, 1)")
    refreshed(hr, names[0])
    assert is_behind(hr, ns)
    result = refreshed(hr, names[0], full=True)
    assert how(result) == (Mode.FULL, FullReason.FORCED)
    assert wrote_companion(result)
    assert not is_behind(hr, ns)
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 60, 1, 1)")
    assert refreshed(hr, names[0], "DIFFERENTIAL").mode is Mode.DIFFERENTIAL


def test_where_somebody_wrote_to_it_full_repairs_it(hr: Headrace, ns: str, names: list[str]) -> None:
    hr.alter_stream_table(names[0], refresh_mode="FULL")
    companion = hr._catalog.stream_table(TableName(LAKE, (ns,), NAMES[0])).companion
    assert companion is not None
    hr.spark.sql(f"DELETE FROM {companion.sql} WHERE true")
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 50, 1, 1)")
    with pytest.raises(HeadraceError) as caught:
        hr.refresh(names[0])
    assert caught.value.code == "FOREIGN_WRITER"
    assert wrote_companion(refreshed(hr, names[0], full=True))
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 60, 1, 1)")
    assert refreshed(hr, names[0], "DIFFERENTIAL").mode is Mode.DIFFERENTIAL


def test_where_nothing_differs_it_is_behind_all_the_same(hr: Headrace, ns: str, names: list[str]) -> None:
    """Other values with the same mean: what is shown, to a reader, too, stays, and what it is made of does not."""
    hr.sql(f"INSERT INTO {ns}.t VALUES (50, 1, 3, 1), (50, 1, 5, 1)")
    refreshed(hr, names[3], "DIFFERENTIAL")
    hr.sql(f"UPDATE {ns}.t SET d = 4 WHERE k = 50")
    hr.sql(f"INSERT INTO {ns}.t VALUES (50, NULL, 4, 1)")
    result = refreshed(hr, names[3], "FULL")
    assert (result.rows_inserted, result.rows_deleted, is_behind(hr, ns, NAMES[3])) == (0, 0, True)
    hr.sql(f"INSERT INTO {ns}.t VALUES (50, 1, 8, 1)")
    assert how(refreshed(hr, names[3], "DIFFERENTIAL")) == (Mode.FULL, FullReason.COMPANION_BEHIND)


def test_members_of_a_group_may_be_behind(hr: Headrace, ns: str, names: list[str]) -> None:
    for name in names:
        hr.alter_stream_table(name, refresh_mode="FULL", options={"refresh_group": f"{ns}_together"})
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 50, 1, 1)")
    hr.refresh(names)
    assert [is_behind(hr, ns, name) for name in NAMES] == [True] * 4
    for name in names:
        hr.alter_stream_table(name, refresh_mode="DIFFERENTIAL")
    for reason in (FullReason.COMPANION_BEHIND, None):
        hr.sql(f"UPDATE {ns}.t SET v = v + 1 WHERE k = 1")
        assert {result.reason for result in hr.refresh(names)} == {reason}
        assert all(result.ok for result in hr.verify(names))


def test_a_new_definition_has_a_companion_of_its_own(hr: Headrace, ns: str, names: list[str]) -> None:
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 50, 1, 1)")
    refreshed(hr, names[0])
    hr.sql(
        f"CREATE OR REPLACE STREAM TABLE {names[0]} AS SELECT k, avg(d) AS mean, count(d) AS n FROM {ns}.t GROUP BY k"
    )
    assert not is_behind(hr, ns)
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 60, NULL, 1)")
    assert refreshed(hr, names[0], "DIFFERENTIAL").mode is Mode.DIFFERENTIAL


CHANGES = (
    "INSERT INTO {0}.t VALUES ({1}, {2}, {1}.5, 2)",
    "DELETE FROM {0}.t WHERE k = {1}",
    "UPDATE {0}.t SET d = d + 1, v = v - 3 WHERE k = {1}",
    "INSERT INTO {0}.t VALUES ({1}, NULL, NULL, NULL), ({1}, {2}, 0.25, 1)",
)


def test_modes_follow_one_another_in_any_order(hr: Headrace, ns: str, names: list[str]) -> None:
    choose = random.Random(1)
    seen = set()
    for _ in range(10):
        hr.sql(choose.choice(CHANGES).format(ns, choose.randrange(8), choose.randrange(90)))
        name = choose.choice(names)
        result = refreshed(hr, name, choose.choice(("AUTO", "FULL", "DIFFERENTIAL", "DIFFERENTIAL")))
        seen.add(how(result))
    for name in names:
        for mode in ("FULL", "DIFFERENTIAL", "DIFFERENTIAL"):
            hr.sql(f"INSERT INTO {ns}.t VALUES ({choose.randrange(8)}, {choose.randrange(90)}, 1, 2)")
            seen.add(how(refreshed(hr, name, mode)))
    assert {(Mode.DIFFERENTIAL, None), (Mode.FULL, FullReason.COMPANION_BEHIND)} <= seen
