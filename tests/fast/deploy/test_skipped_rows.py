"""Rows that were skipped stay known wherever an exchange takes the contents that lack them."""

from __future__ import annotations

from catalog_kit.clock import ManualClock
from catalog_kit.samples import ORDERS, REVENUE, create, entry, lake, see

from headrace.catalog import Catalog, FrontierMove, NewVersion, Publication
from headrace.definitions.details import Details
from headrace.deploy.exchanging.halves import Half, Halves, frontier_move
from headrace.frontier import Frontier
from headrace.names import TableName
from headrace.refresh import gather_facts
from headrace.refresh.run_context import Outcome
from headrace.semantics import Semantics

SEEN = Frontier({ORDERS: 0})
OTHER = lake("shop__v2.revenue")
DETAILS = Details("SELECT 1", (), Semantics(), (), (), {}, (), None)


def exchange(catalog: Catalog) -> None:
    states = [gather_facts.known(catalog, name) for name in (REVENUE, OTHER)]
    public, other = (
        Half(one, one.table.name, two, DETAILS, Outcome(), altered=False) for one, two in (states, states[::-1])
    )
    halves, scheduling = Halves(((public, other),)), catalog.scheduling_states()
    moves = [frontier_move(half, halves, scheduling) for half in halves]
    catalog.publish(
        Publication(frontiers=tuple(filter(None, moves)), history=tuple(entry(half.name) for half in halves))
    )


def skipped(catalog: Catalog) -> dict[TableName, int]:
    return {name: state.skipped_rows for name, state in catalog.scheduling_states().items() if state.skipped_at}


def test_skipped_rows_go_with_the_contents_and_come_back_with_them(timed: Catalog, clock: ManualClock) -> None:
    see(timed)
    for name in (REVENUE, OTHER):
        create(timed, name)
        timed.publish(Publication(versions=(NewVersion(name, 0, 1),), frontiers=(FrontierMove(name, SEEN),)))
    timed.publish(Publication(frontiers=(FrontierMove(REVENUE, SEEN, skipped=3),)))
    assert skipped(timed) == {REVENUE: 3}
    since = timed.scheduling_states()[REVENUE].skipped_at
    for name in (OTHER, REVENUE):
        clock.advance(60)
        exchange(timed)
        assert skipped(timed) == {name: 3}
        assert timed.scheduling_states()[name].skipped_at == since


def test_what_is_only_renamed_keeps_its_mark(timed: Catalog) -> None:
    create(timed)
    see(timed)
    timed.publish(
        Publication(versions=(NewVersion(REVENUE, 0, 1),), frontiers=(FrontierMove(REVENUE, SEEN, skipped=3),))
    )
    state = gather_facts.known(timed, REVENUE)
    leaving = Half(state, OTHER, state, DETAILS, Outcome(), altered=False)
    moved = frontier_move(leaving, Halves((), leaving=(leaving,)), timed.scheduling_states())
    assert moved == FrontierMove(OTHER, SEEN)  # whose mark would else be added to itself
