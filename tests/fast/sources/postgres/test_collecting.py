"""Messages become what is left of a batch."""

from __future__ import annotations

import random
from copy import deepcopy
from dataclasses import replace

import pytest
from fast.sources.postgres import messages as m

from headrace.errors import InternalError
from headrace.sources.postgres.spool.text_columns import keyed as written
from headrace.sources.postgres.wal import net_collector as collecting
from headrace.sources.postgres.wal.net_changes import KeyedChanges, WeighedChanges
from headrace.sources.postgres.wal.net_collector import Collector
from headrace.sources.postgres.wal.pgoutput import UNCHANGED, Begin, Commit, Update, decode, unpacked

T = m.table()
FULL = m.table(2, "f", ())


@pytest.fixture(autouse=True, params=["one by one", "together"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Messages about rows are taken in one by one, or as many as there are together; nothing else may differ."""
    monkeypatch.setattr(collecting, "TOGETHER", 1 if request.param == "together" else 1_000)
    return str(request.param)


def collect(*messages: bytes, landed: int = 0, until: int | None = None) -> Collector:
    collector = Collector({T.oid: T, FULL.oid: FULL}, landed, until)
    collector.feed(m.blocks([m.relation(T), m.relation(FULL), *messages]))
    return collector


def keyed(*messages: bytes) -> KeyedChanges:
    found = collect(m.begin(10), *messages, m.commit(10, 20)).changes[T.oid]
    assert isinstance(found, KeyedChanges)
    found.one_by_one()
    found.rows = {key: None if row is None else unpacked(row) for key, row in found.rows.items()}
    return found


def test_messages_are_read() -> None:
    assert decode(m.begin(258, 3)) == Begin(258, 0, 3)
    assert decode(m.commit(10, 20)) == Commit(10, 20)
    assert decode(m.update(9, ["1", UNCHANGED, None], ["0", None, None])) == Update(
        9, [b"0", None, None], [b"1", UNCHANGED, None]
    )
    assert decode(b"Y\0\0\0\1public\0t\0") is None
    with pytest.raises(InternalError, match="PGOUTPUT_UNREADABLE"):
        decode(b"?")


def test_a_fresh_key_that_goes_again_leaves_nothing() -> None:
    found = keyed(m.insert(1, "1", "x", "y"), m.update(1, ["1", "z", "y"]), m.delete(1, "1", None, None))
    assert (found.rows, found.fresh) == ({}, set())


def test_a_key_that_moves_takes_the_row_along() -> None:
    found = keyed(
        m.update(1, ["2", "x", UNCHANGED], ["1", None, None]), m.update(1, ["3", "y", UNCHANGED], ["2", None, None])
    )
    assert found.rows == {(b"1",): None, (b"3",): [b"3", b"y", UNCHANGED]}
    assert found.fresh == {(b"3",)}
    assert found.origins == {(b"3",): (b"1",)}


def test_keys_that_swap_over_a_third_keep_their_rows() -> None:
    found = keyed(
        m.update(1, ["0", "a", UNCHANGED], ["1", None, None]),
        m.update(1, ["1", "b", UNCHANGED], ["2", None, None]),
        m.update(1, ["2", "a", UNCHANGED], ["0", None, None]),
    )
    assert found.rows == {(b"1",): [b"1", b"b", UNCHANGED], (b"2",): [b"2", b"a", UNCHANGED]}
    assert found.origins == {(b"1",): (b"2",), (b"2",): (b"1",)}
    assert found.fresh == set()


def test_unsent_values_come_from_the_image_before() -> None:
    found = keyed(m.insert(1, "1", "x", "large"), m.update(1, ["1", "y", UNCHANGED]))
    assert found.rows == {(b"1",): [b"1", b"y", b"large"]}
    assert not found.origins


def test_a_value_that_is_sent_again_needs_no_origin() -> None:
    found = keyed(m.update(1, ["1", "y", UNCHANGED]), m.update(1, ["1", "y", "new"]))
    assert not found.origins
    assert found.rows == {(b"1",): [b"1", b"y", b"new"]}


def test_truncate_forgets_what_was_before_it() -> None:
    found = keyed(m.insert(1, "1", "x", "y"), m.truncate(1), m.insert(1, "2", "x", "y"))
    assert found.truncated
    assert found.rows == {(b"2",): [b"2", b"x", b"y"]}
    with pytest.raises(InternalError, match="CAPTURE_DIVERGED"):
        keyed(m.truncate(1), m.update(1, ["1", "x", UNCHANGED]))


def test_whole_rows_are_weighed() -> None:
    found = collect(
        m.begin(10),
        m.insert(2, "1", "x", "y"),
        m.update(2, ["1", "z", UNCHANGED], ["1", "x", "y"], "O"),
        m.delete(2, "5", None, "", kind="O"),
        m.commit(10, 20),
    ).changes[2]
    assert isinstance(found, WeighedChanges)
    came, went = (
        [*rows, *(row for bulk in bulks for row in bulk.packed())]
        for rows, bulks in ((found.added, found.came), (found.removed, found.went))
    )
    assert sorted(unpacked(row) for row in came) == [[b"1", b"x", b"y"], [b"1", b"z", b"y"]]
    assert [unpacked(row) for row in went] == [[b"1", b"x", b"y"], [b"5", None, b""]]


def test_transactions_that_are_landed_or_too_late_are_left_out() -> None:
    stream = [
        *(m.begin(10), m.insert(1, "1", "", ""), m.commit(10, 19)),
        *(m.begin(20), m.insert(1, "2", "", ""), m.commit(20, 29)),
        *(m.begin(30), m.insert(1, "3", "", ""), m.commit(30, 39)),
    ]
    found = collect(*stream, landed=19, until=30)
    assert found.changes[1].touched() == {(b"2",)}
    assert (found.transactions, found.rows, found.end) == (1, 1, 29)
    assert collect(*stream, landed=39).changes == {}


def test_a_table_that_looks_otherwise_is_stale() -> None:
    other = m.table(1, columns="id a b c")
    altered = [m.begin(10), m.insert(1, "1", "", ""), m.relation(other), m.insert(1, "2", "", "", ""), m.commit(10, 20)]
    found = collect(*altered)
    assert found.stale == {1}
    assert found.changes == {}
    landed = collect(*altered, m.relation(T), landed=15)
    assert landed.stale == set()


def test_a_partition_that_is_not_known_has_the_table_taken_anew_and_another_table_does_not() -> None:
    parted, other = replace(m.table(3), partitioned=True, marks="0 4:1"), m.table(5)

    def stale(*messages: bytes) -> set[int]:
        collector = Collector({3: parted}, 0)
        collector.feed(m.blocks([m.begin(10), *messages, m.commit(10, 20)]))
        return collector.stale

    come = m.insert(3, "1", "x", "y")
    assert stale(m.relation(parted), m.relation(m.table(4)), come) == set()
    assert stale(m.relation(parted), m.relation(other), come) == {3}
    emptied = (m.relation(parted), m.truncate(3))
    assert stale(*emptied, m.relation(other), m.insert(5, "1", "x", "y")) == set()
    assert stale(*emptied, m.relation(parted), m.relation(other), come) == {3}


def test_much_is_spilled_by_rows_and_by_bytes(how: str) -> None:
    parts: list[list[int]] = []
    large = [m.insert(1, str(k), "x" * 1000, "") for k in range(5)]
    small = [m.insert(1, str(k), "", "") for k in range(5, 10)]
    collector = Collector(
        {T.oid: T},
        0,
        spill=lambda c: parts.append(sorted(int(k[0]) for k in c[T.oid].touched())),
        most=4,
        most_bytes=2000,
    )
    collector.feed(m.blocks([m.relation(T), m.begin(10), *large, *small, m.commit(10, 20)]))
    if how == "together":  # bytes are counted when a block of messages has been taken in
        assert parts == [[0, 1, 2, 3], [4, 5, 6, 7]]
    else:
        assert parts == [[0, 1], [2, 3], [4, 5, 6, 7]]
    assert collector.changes[T.oid].touched() == {(b"8",), (b"9",)}
    assert collector.rows == 10


def test_tables_that_are_not_captured_do_not_count() -> None:
    found = collect(m.begin(10), m.insert(99, "1"), m.truncate(99), m.commit(10, 20))
    assert (found.changes, found.rows, found.end) == ({}, 0, 20)


@pytest.mark.parametrize("seed", range(60))
def test_what_is_left_makes_the_mirror_what_the_table_is(seed: int) -> None:
    """Random histories; the table as the server has it, and the mirror as it is after every batch."""
    chance = random.Random(seed)
    server: dict[str, list[str]] = {str(k): [str(k), "a", f"big{k}"] for k in range(4)}
    mirror = {(k.encode(),): [v.encode() for v in row] for k, row in server.items()}
    for batch in range(6):
        stream = [
            m.begin(batch),
            *(_step(chance, server) for _ in range(chance.randint(1, 12))),
            m.commit(batch, batch),
        ]
        collector = Collector({T.oid: T}, 0)
        collector.feed(m.blocks([m.relation(T), *stream], chance.randint(1, 9)))
        if T.oid in collector.changes:
            changes = collector.changes[T.oid]
            assert isinstance(changes, KeyedChanges)
            alike(changes)
            mirror = brought(mirror, changes)
        assert mirror == {(k.encode(),): [v.encode() for v in row] for k, row in server.items()}


def _step(chance: random.Random, server: dict[str, list[str]]) -> bytes:
    key = str(chance.randint(0, 7))
    if chance.random() < 0.03:
        server.clear()
        return m.truncate(1)
    if key not in server:
        server[key] = [key, str(chance.random()), f"big{chance.random()}"]
        return m.insert(1, *server[key])
    if chance.random() < 0.25:
        del server[key]
        return m.delete(1, key, None, None)
    row = server.pop(key)
    to = next((k for k in map(str, chance.sample(range(8), 4)) if k not in server), key)
    large = chance.random() < 0.3
    new = [to, str(chance.random()), f"big{chance.random()}" if large else row[2]]
    server[to] = new
    sent = [to, new[1], new[2] if large else UNCHANGED]
    return m.update(1, sent, [key, None, None] if to != key else None)


def alike(changes: KeyedChanges) -> None:
    """What is written of messages held together is what is written of them one by one."""
    together = [row for batch in written(T, changes) for row in batch.to_pylist()]
    changes.one_by_one()
    alone = [row for batch in written(T, deepcopy(changes)) for row in batch.to_pylist()]
    assert sorted(map(str, together)) == sorted(map(str, alone))


def brought(mirror: dict, changes: KeyedChanges) -> dict:
    """The mirror after a batch, as the SQL of landing makes it."""
    after = (
        {} if changes.truncated else {k: v for k, v in mirror.items() if k not in changes.rows or k in changes.fresh}
    )
    assert changes.truncated or not changes.fresh & mirror.keys()
    for key, values in changes.rows.items():
        if values is not None:
            origin = mirror.get(changes.origins.get(key, key))
            after[key] = [origin[i] if v is UNCHANGED else v for i, v in enumerate(unpacked(values))]
    return after
