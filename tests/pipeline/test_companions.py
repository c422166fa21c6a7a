"""Companions that are left behind while recomputing is cheaper, and written again before they are used."""

from __future__ import annotations

import random

import pytest

from headrace.api.facade import Headrace
from headrace.errors import HeadraceError
from headrace.names import LAKE, TableName
from headrace.reasons import FullReason
from headrace.results.refresh_results import Mode, RefreshResult

SOURCE = """
CREATE TABLE {0}.t USING iceberg AS SELECT CAST(id % 7 AS INT) AS k, CAST(id AS INT) AS v,
    CAST(id / 3 AS DECIMAL(10,2)) AS d, CAST(id % 5 AS INT) AS parent FROM range(40)
"""
TABLES = {
    "distinct": "AS SELECT DISTINCT k, v % 3 AS m FROM {0}.t",
    "first": "AS SELECT k, v, d FROM {0}.t ORDER BY v DESC, k, d LIMIT 5",
    "above": "AS SELECT v FROM {0}.t WHERE v > (SELECT avg(v) FROM {0}.t)",
    "means": "AS SELECT k, avg(d) AS mean, count(v) AS n FROM {0}.t GROUP BY k",
    "reader": "REFRESH MODE DIFFERENTIAL AS SELECT max(mean) AS mean, sum(n) AS n FROM {0}.means",
}
NAMES = ("distinct", "first", "above", "means")
"""The last one is read by another stream table."""


def made(hr: Headrace, ns: str, *tables: str) -> list[str]:
    hr.sql(";".join([SOURCE, *(f"CREATE STREAM TABLE {{0}}.{name} {TABLES[name]}" for name in tables)]).format(ns))
    return [f"{ns}.{name}" for name in tables]


@pytest.fixture
def names(hr: Headrace, ns: str) -> list[str]:
    return made(hr, ns, *TABLES)[: len(NAMES)]


@pytest.fixture
def one(hr: Headrace, ns: str) -> str:
    return made(hr, ns, "distinct")[0]


@pytest.fixture
def means(hr: Headrace, ns: str) -> str:
    """The one that another stream table reads, and that one."""
    return made(hr, ns, "means", "reader")[0]


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


def test_it_is_left_behind_where_recomputing_is_cheaper_and_written_when_asked(hr: Headrace, ns: str, one: str) -> None:
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 50, 1, 1)")
    assert "the companion will be behind" in chosen(hr, one)
    result = refreshed(hr, one)  # of forty rows
    assert how(result) == (Mode.FULL, FullReason.COST)
    assert not wrote_companion(result)
    assert is_behind(hr, ns)
    assert "the companion is behind" in chosen(hr, one)
    assert refreshed(hr, one, "DIFFERENTIAL").mode is Mode.NO_CHANGE  # which is no reason to write it
    assert is_behind(hr, ns)
    result = refreshed(hr, one, full=True)  # whoever asks for it has everything written
    assert how(result) == (Mode.FULL, FullReason.FORCED)
    assert wrote_companion(result)
    assert not is_behind(hr, ns)
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 60, 1, 1)")
    assert refreshed(hr, one).mode is Mode.DIFFERENTIAL
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 70, 1, 1)")
    result = refreshed(hr, one, "FULL")  # a table altered to it writes none
    assert how(result) == (Mode.FULL, FullReason.FORCED)
    assert not wrote_companion(result)
    assert is_behind(hr, ns)


def test_who_reads_such_a_table_receives_the_difference(hr: Headrace, ns: str, means: str) -> None:
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 50, 100, 1)")
    assert (refreshed(hr, means, "FULL").rows_inserted, is_behind(hr, ns, NAMES[3])) == (1, True)
    follower = refreshed(hr, f"{ns}.reader")
    assert (follower.mode, follower.rows_inserted) == (Mode.DIFFERENTIAL, 1)


@pytest.mark.long
def test_it_is_written_again_before_changes_are_followed(hr: Headrace, ns: str, names: list[str]) -> None:
    def follow(mode: str | None) -> list[RefreshResult]:
        for name in names if mode else ():
            hr.alter_stream_table(name, refresh_mode=mode)
        return list(hr.refresh(names))

    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 50, 1, 1), (9, NULL, NULL, NULL)")
    assert {how(result) for result in follow("FULL")} == {(Mode.FULL, FullReason.FORCED)}
    hr.sql(f"DELETE FROM {ns}.t WHERE v = 50")
    again = follow("DIFFERENTIAL")
    assert {how(result) for result in again} == {(Mode.FULL, FullReason.COMPANION_BEHIND)}
    assert all(wrote_companion(result) for result in again)
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 60, 1, 1)")
    assert {how(result) for result in follow(None)} == {(Mode.DIFFERENTIAL, None)}
    assert all(found.ok for found in hr.verify(names))


def test_where_somebody_wrote_to_it_full_repairs_it(hr: Headrace, ns: str, one: str) -> None:
    hr.alter_stream_table(one, refresh_mode="FULL")
    companion = hr._catalog.stream_table(TableName(LAKE, (ns,), NAMES[0])).companion
    assert companion is not None
    hr.spark.sql(f"DELETE FROM {companion.sql} WHERE true")
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 50, 1, 1)")
    with pytest.raises(HeadraceError) as caught:
        hr.refresh(one)
    assert caught.value.code == "FOREIGN_WRITER"
    assert wrote_companion(refreshed(hr, one, full=True))
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 60, 1, 1)")
    assert refreshed(hr, one, "DIFFERENTIAL").mode is Mode.DIFFERENTIAL


def test_where_nothing_differs_it_is_behind_all_the_same(hr: Headrace, ns: str, means: str) -> None:
    """Other values with the same mean: what is shown, to a reader, too, stays, and what it is made of does not."""
    hr.sql(f"INSERT INTO {ns}.t VALUES (50, 1, 3, 1), (50, 1, 5, 1)")
    refreshed(hr, means, "DIFFERENTIAL")
    hr.sql(f"UPDATE {ns}.t SET d = 4 WHERE k = 50")
    hr.sql(f"INSERT INTO {ns}.t VALUES (50, NULL, 4, 1)")
    result = refreshed(hr, means, "FULL")
    assert (result.rows_inserted, result.rows_deleted, is_behind(hr, ns, NAMES[3])) == (0, 0, True)
    hr.sql(f"INSERT INTO {ns}.t VALUES (50, 1, 8, 1)")
    assert how(refreshed(hr, means, "DIFFERENTIAL")) == (Mode.FULL, FullReason.COMPANION_BEHIND)


@pytest.mark.long
def test_members_of_a_group_may_be_behind(hr: Headrace, ns: str) -> None:
    names = made(hr, ns, "distinct", "above")
    for name in names:
        hr.alter_stream_table(name, refresh_mode="FULL", options={"refresh_group": f"{ns}_together"})
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 50, 1, 1)")
    hr.refresh(names)
    assert [is_behind(hr, ns, name) for name in ("distinct", "above")] == [True] * 2
    for name in names:
        hr.alter_stream_table(name, refresh_mode="DIFFERENTIAL")
    for reason in (FullReason.COMPANION_BEHIND, None):
        hr.sql(f"UPDATE {ns}.t SET v = v + 1 WHERE k = 1")
        assert {result.reason for result in hr.refresh(names)} == {reason}
    assert all(result.ok for result in hr.verify(names))


def test_a_new_definition_has_a_companion_of_its_own(hr: Headrace, ns: str, one: str) -> None:
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 50, 1, 1)")
    refreshed(hr, one)
    hr.sql(f"CREATE OR REPLACE STREAM TABLE {one} AS SELECT k, avg(d) AS mean, count(d) AS n FROM {ns}.t GROUP BY k")
    assert not is_behind(hr, ns)
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 60, NULL, 1)")
    assert refreshed(hr, one, "DIFFERENTIAL").mode is Mode.DIFFERENTIAL


CHANGES = (
    "INSERT INTO {0}.t VALUES ({1}, {2}, {1}.5, 2)",
    "DELETE FROM {0}.t WHERE k = {1}",
    "UPDATE {0}.t SET d = d + 1, v = v - 3 WHERE k = {1}",
    "INSERT INTO {0}.t VALUES ({1}, NULL, NULL, NULL), ({1}, {2}, 0.25, 1)",
)


@pytest.mark.long
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
