"""What schedulers ask and tell the catalog, on both databases."""

import dataclasses
import datetime as dt
import itertools

import pytest
import sqlalchemy as sa
from catalog_kit.clock import START, ManualClock
from catalog_kit.iceberg import Iceberg
from catalog_kit.samples import ORDERS, REVENUE, TOP, attempt, create, define, lake, refresh, see
from catalog_kit.stream_tables import drop_stream_table, replace_stream_table

from headrace.catalog import Catalog, Publication, PublicationRecord, RanAs
from headrace.errors import UserError
from headrace.names import TableName

MINUTE = dt.timedelta(minutes=1)


def later(failures: int) -> dt.datetime | None:
    return START + failures * MINUTE if failures < 3 else None


def test_failures_are_counted_until_the_table_is_suspended(catalog: Catalog) -> None:
    create(catalog)
    create(catalog, TOP)
    assert catalog.scheduling_states() == {}
    assert [catalog.note_failure([REVENUE], f"E{n}", "why", later) for n in (1, 2, 3)] == [1, 2, 3]
    scheduling = catalog.scheduling_states()[REVENUE]
    assert (scheduling.failures, scheduling.retry_at, scheduling.error_code, scheduling.error_message) == (
        3,
        None,
        "E3",
        "why",
    )
    assert scheduling.suspended_at is not None
    assert TOP not in catalog.scheduling_states()


def test_a_retry_is_remembered_over_a_restart(catalog: Catalog, url: str) -> None:
    create(catalog)
    catalog.note_failure([REVENUE], "E", "why", later)
    with Catalog.open(url) as another:
        again = another.scheduling_states()[REVENUE].retry_at
        # by the clock of its host, which the server's may differ from by what asking for it takes
        assert again is not None
        assert abs(again - START - MINUTE) < dt.timedelta(seconds=1)


def test_a_group_fails_together(catalog: Catalog) -> None:
    create(catalog)
    create(catalog, TOP)
    catalog.note_failure([TOP], "E", "why", later)
    assert catalog.note_failure([REVENUE, TOP], "E", "why", later) == 2
    assert {n: c.failures for n, c in catalog.scheduling_states().items()} == {REVENUE: 2, TOP: 2}


def test_publishing_ends_a_row_of_failures_and_keeps_a_pause(catalog: Catalog, iceberg: Iceberg) -> None:
    create(catalog)
    see(catalog)
    catalog.pause([REVENUE])
    catalog.note_failure([REVENUE], "E", "why", later)
    catalog.publish(refresh(catalog, iceberg, 1, REVENUE))
    scheduling = catalog.scheduling_states()[REVENUE]
    assert (scheduling.failures, scheduling.retry_at, scheduling.error_code) == (0, None, None)
    assert scheduling.paused_at is not None


def test_pausing_and_resuming(catalog: Catalog) -> None:
    create(catalog)
    catalog.note_failure([REVENUE], "E", "why", lambda _: None)
    catalog.pause([REVENUE])
    catalog.unpause([REVENUE])
    scheduling = catalog.scheduling_states()[REVENUE]
    assert (scheduling.paused_at, scheduling.suspended_at, scheduling.failures) == (None, None, 0)
    for act in (catalog.pause, catalog.unpause):
        with pytest.raises(UserError, match="STREAM_TABLE_NOT_FOUND"):
            act([REVENUE, ORDERS])
    assert catalog.scheduling_states()[REVENUE].paused_at is None


def test_a_blown_fuse_lasts_until_something_is_published(catalog: Catalog, iceberg: Iceberg) -> None:
    create(catalog)
    see(catalog)
    before = catalog.pulse()
    catalog.blow_fuse(REVENUE, {"rows": 5})
    assert catalog.pulse() != before
    scheduling = catalog.scheduling_states()[REVENUE]
    assert (scheduling.held_up, scheduling.fuse_at, scheduling.fuse) == ("stopped by its fuse", START, {"rows": 5})
    catalog.pause([REVENUE])
    catalog.unpause([REVENUE])
    assert catalog.scheduling_states()[REVENUE].fuse == {"rows": 5}  # resuming decides nothing
    catalog.publish(refresh(catalog, iceberg, 1, REVENUE))
    assert catalog.scheduling_states()[REVENUE].fuse_at is None
    catalog.blow_fuse(REVENUE, {"rows": 5})
    catalog.mend_fuse(REVENUE)
    assert catalog.scheduling_states()[REVENUE].held_up is None


def test_skipped_rows_add_up_until_the_table_is_recomputed(catalog: Catalog, iceberg: Iceberg) -> None:
    create(catalog)
    for number, mode in enumerate((RanAs.DIFFERENTIAL, RanAs.NO_CHANGE, RanAs.DIFFERENTIAL, RanAs.FULL), 1):
        see(catalog, snapshot=number)
        made = refresh(catalog, iceberg, number, REVENUE)
        moves = tuple(dataclasses.replace(m, skipped=10 if number < 3 else 0) for m in made.frontiers)
        history = tuple(dataclasses.replace(e, mode=mode) for e in made.history)
        catalog.publish(dataclasses.replace(made, frontiers=moves, history=history))
        scheduling = catalog.scheduling_states()[REVENUE]
        assert (scheduling.skipped_rows, scheduling.skipped_at is None) == {4: (0, True)}.get(
            number, (min(20, 10 * number), False)
        )


def test_a_dropped_table_is_forgotten(catalog: Catalog) -> None:
    create(catalog)
    catalog.pause([REVENUE])
    drop_stream_table(catalog, REVENUE)
    create(catalog)
    assert catalog.scheduling_states() == {}


def test_epochs_grow_whoever_is_a_member(catalog: Catalog, iceberg: Iceberg) -> None:
    new, numbers = lake("shop.new"), itertools.count(1)
    for name in (REVENUE, TOP, new):
        create(catalog, name)

    def publish(*members: TableName) -> tuple[Publication, PublicationRecord]:
        number = next(numbers)
        see(catalog, snapshot=number)
        done = dataclasses.replace(refresh(catalog, iceberg, number, *members), groups=(members,))
        return done, catalog.publish(done)

    def epochs() -> dict[TableName, int]:
        return {name: of.epoch for name, of in catalog.epochs().items()}

    publish(REVENUE, TOP)
    _, record = publish(REVENUE, TOP)
    assert {of.publication for of in catalog.epochs().values()} == {record}
    publish(REVENUE, TOP, new)  # its last member gives a group its name
    assert epochs() == {REVENUE: 3, TOP: 3, new: 3}
    done, _ = publish(REVENUE, new)
    assert epochs() == {REVENUE: 4, TOP: 3, new: 4}
    lost = dataclasses.replace(done, uuid="again")
    assert isinstance(attempt(lambda: catalog.publish(lost)), Exception)  # its versions are there already
    assert epochs() == {REVENUE: 4, TOP: 3, new: 4}
    with catalog.reading() as reader:
        told = [(e.stream, e.epoch) for e in reader.history(None, 3)]
    assert told == [(new, 4), (REVENUE, 4), (new, 3)]
    for name in (REVENUE, TOP):
        drop_stream_table(catalog, name)
        iceberg.drop(name)
        create(catalog, name)
    assert epochs() == {new: 4}
    publish(REVENUE, TOP)  # a namesake begins anew
    assert epochs() == {REVENUE: 1, TOP: 1, new: 4}


def test_options_stay_when_a_definition_is_replaced(catalog: Catalog) -> None:
    create(catalog, options={"tier": "cold"})
    assert replace_stream_table(catalog, define()).options == {"tier": "cold"}
    assert replace_stream_table(catalog, define(options={})).options == {}
    assert catalog.alter_stream_table(REVENUE, options={"pool": "a"}).options == {"pool": "a"}


def test_the_pulse_tells_what_may_have_changed(catalog: Catalog, iceberg: Iceberg, clock: ManualClock) -> None:
    beats = [catalog.pulse()]

    def beat() -> None:
        clock.advance(1)
        beats.append(catalog.pulse())

    create(catalog)
    beat()
    see(catalog)
    catalog.publish(refresh(catalog, iceberg, 1, REVENUE))
    beat()
    catalog.pause([REVENUE])
    beat()
    catalog.note_failure([REVENUE], "E", "why", later)
    beat()
    catalog.unpause([REVENUE])
    beat()
    catalog.alter_stream_table(REVENUE, schedule="1 minute")
    beat()
    drop_stream_table(catalog, REVENUE)
    beat()
    assert len(set(beats)) == len(beats)
    assert catalog.pulse() == beats[-1]


def test_schedulers_are_known_while_they_are_heard_of(catalog: Catalog, clock: ManualClock) -> None:
    catalog.register_scheduler("one", MINUTE)
    clock.advance(50)
    assert [s.draining for s in catalog.scheduler_beat("one", MINUTE)] == [False]
    clock.advance(50)
    assert [s.owner for s in catalog.schedulers()] == ["one"]
    clock.advance(20)
    assert catalog.schedulers() == ()
    catalog.register_scheduler("two", MINUTE)
    assert [s.owner for s in catalog.schedulers()] == ["two"]
    catalog.unregister_scheduler("two")
    assert catalog.schedulers() == ()


def test_what_schedulers_claim_is_known_to_who_claims_next(catalog: Catalog, clock: ManualClock) -> None:
    catalog.register_scheduler("one", MINUTE)
    for claim in (4, 2):
        catalog.scheduler_beat("one", MINUTE, lambda _, claim=claim: {"all": claim})
    seen: list[object] = []
    catalog.scheduler_beat("one", MINUTE, lambda alive: seen.extend(s.claim for s in alive), ending=True)
    assert seen == [{"all": 2}]
    assert [(s.draining, s.claim) for s in catalog.schedulers()] == [(True, None)]
    clock.advance(120)
    assert catalog.scheduler_beat("nobody", MINUTE, lambda _: pytest.fail("it has nothing to claim")) == ()


def test_sqlite_has_one_scheduler_at_a_time(catalog: Catalog, backend: str) -> None:
    catalog.register_scheduler("one", MINUTE)
    second = attempt(lambda: catalog.register_scheduler("two", MINUTE))
    if backend == "sqlite":
        assert isinstance(second, UserError)
        assert second.code == "SCHEDULER_RUNNING"
        assert "one" in second.message
    else:
        assert [s.owner for s in catalog.schedulers()] == ["one", "two"]
    catalog.register_scheduler("three", MINUTE, is_dead=lambda owner: owner in ("one", "two"))
    assert [s.owner for s in catalog.schedulers()] == ["three"]


def test_draining(catalog: Catalog) -> None:
    assert catalog.drain() == ()
    catalog.register_scheduler("one", MINUTE)
    assert [s.owner for s in catalog.drain()] == ["one"]
    assert [s.draining for s in catalog.scheduler_beat("one", MINUTE)] == [True]
    assert [s.owner for s in catalog.scheduler_beat("nobody", MINUTE)] == ["one"]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)  # PostgreSQL decides by what there is
def test_rare_events_are_found_among_many_without_reading_these(catalog: Catalog) -> None:
    """A scheduler asks for decisions each second, and there may be none for days."""
    asked: list[tuple[str, object]] = []
    sa.event.listen(catalog._database.engine, "before_cursor_execute", lambda *told: asked.append(told[2:4]))
    assert catalog.events(7, 10, ("paused", "resumed")) == ()
    (statement, given) = next(each for each in asked if "hr_event" in each[0])
    with catalog._database.read() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", given).all()
    assert any("SEARCH hr_event USING INDEX ix_hr_event_kind (kind=? AND id>?)" in row[-1] for row in plan), plan


def test_events_are_kept_in_order(catalog: Catalog) -> None:
    catalog.write_events([(START + n * MINUTE, "refreshed", {"table": f"t{n}"}) for n in range(5)])
    newest = catalog.events(limit=2)
    assert [e.fields["table"] for e in newest] == ["t3", "t4"]
    assert [e.fields["table"] for e in catalog.events(newest[0].id)] == ["t4"]
    assert catalog.forget_events(START + 2 * MINUTE) == 2
    assert len(catalog.events()) == 3


def test_a_pause_here_and_an_end_of_one_there_are_noticed(catalog: Catalog, clock: ManualClock) -> None:
    create(catalog)
    create(catalog, TOP)
    catalog.pause([TOP])
    before = catalog.pulse()
    clock.advance(1)
    catalog.pause([REVENUE])
    catalog.unpause([TOP])
    assert catalog.pulse() != before
