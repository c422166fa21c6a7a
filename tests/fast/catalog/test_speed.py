"""Budgets that keep a cycle without changes, and the commands that only read, fast.

Processor time is measured, not the wall clock: the machine that runs the tests may be busy with something else.
"""

import time
from collections.abc import Callable

import sqlalchemy as sa
from catalog_kit.iceberg import Iceberg
from catalog_kit.samples import TTL, create, lake, refresh, see

from headrace.catalog import Catalog, NewVersion, Observation, Publication, resource_of
from headrace.catalog import schema as t
from headrace.catalog.relations import ensure_relations
from headrace.names import TableName


def seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def statements(catalog: Catalog, work: Callable[[], object]) -> int:
    """How many statements some work sends, transaction control aside."""
    seen: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        seen.append(statement)

    engine = catalog._database.engine
    sa.event.listen(engine, "before_cursor_execute", note)
    try:
        work()
    finally:
        sa.event.remove(engine, "before_cursor_execute", note)
    return sum(not s.startswith("BEGIN") for s in seen)


def test_publishing_eight_tables(catalog: Catalog, iceberg: Iceberg) -> None:
    streams = [lake(f"shop.t{i}") for i in range(8)]
    for stream in streams:
        create(catalog, stream)
    see(catalog)
    taken = []
    for number in range(5):
        leases = catalog.acquire([resource_of(s) for s in streams], "x", TTL)
        publication = refresh(catalog, iceberg, number, *streams, leases=leases)
        taken.append(seconds(lambda publication=publication: catalog.publish(publication)))
        catalog.release(leases)
    assert min(taken) < 0.02


def test_statements_do_not_grow_with_tables(catalog: Catalog, iceberg: Iceberg) -> None:
    streams = [lake(f"shop.t{i}") for i in range(12)]
    for stream in streams:
        create(catalog, stream)
    see(catalog)
    one = statements(catalog, lambda: catalog.publish(refresh(catalog, iceberg, 1, streams[0])))
    ten = statements(catalog, lambda: catalog.publish(refresh(catalog, iceberg, 1, *streams[1:])))
    assert one == ten


def define_many(catalog: Catalog, streams: list[TableName], sources: list[TableName]) -> None:
    """500 definitions one by one would take longer than what is measured here."""
    create(catalog, streams[0], sources[0])
    with catalog._database.write() as connection:
        ids = ensure_relations(connection, streams)
        (like,) = connection.execute(sa.select(t.stream_table)).mappings()
        rows = [dict(like) | {"relation_id": ids[s]} for s in streams[1:]]
        connection.execute(sa.insert(t.stream_table), rows)
        of = ensure_relations(connection, sources)
        edges = [(ids[s], of[sources[i % len(sources)]]) for i, s in enumerate(streams)]
        rows = [{"stream_id": s, "source_id": source, "position": 0} for s, source in edges[1:]]
        connection.execute(sa.insert(t.dependency), rows)
        connection.execute(
            sa.insert(t.frontier), [{"stream_id": s, "source_id": source, "version": 0} for s, source in edges]
        )
    catalog.publish(Publication(versions=tuple(NewVersion(s, 0, 1) for s in streams)))


def test_a_cycle_over_many_tables_without_changes(catalog: Catalog) -> None:
    streams, sources = [lake(f"shop.t{i}") for i in range(500)], [lake(f"raw.s{i}") for i in range(100)]
    observations = [Observation(s, 5, "u", schema={"columns": ["a"]}) for s in sources]
    catalog.observe(observations)
    define_many(catalog, streams, sources)

    def cycle() -> None:
        with catalog.reading() as reader:
            assert len(reader.stream_tables()) == 500
            assert len(reader.newest_versions()) == 600
            assert len(reader.frontiers()) == 500
            reader.pointers()
        assert not any(o.appended for o in catalog.observe(observations))

    assert statements(catalog, lambda: catalog.stream_tables()) == 2
    assert statements(catalog, cycle) <= 7
    assert min(seconds(cycle) for _ in range(5)) < 0.1
