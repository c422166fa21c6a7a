"""Slots that several schedulers share, who come and go as they like."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, field

import pytest

from headrace.catalog import SchedulerRecord
from headrace.graph.dag import Dag
from headrace.names import LAKE, TableName
from headrace.scheduler.policy.dispatch import Dispatch
from headrace.scheduler.policy.slot_shares import Portion, Rank, Slots, portion, share
from headrace.scheduler.policy.urgency import PREFERENCE, own_share_first

NOW = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
TOTAL = Slots(4, {"p": 2})


@pytest.mark.parametrize(("slots", "schedulers"), [(4, 1), (4, 2), (4, 3), (4, 6), (32, 5)])
def test_schedulers_share_the_slots(slots: int, schedulers: int) -> None:
    assert sum(share(slots, place, schedulers) for place in range(schedulers)) == slots


@dataclass
class One:
    """A scheduler."""

    owner: str
    claim: Slots | None = None
    room: Slots = field(default_factory=Slots)
    running: list[str] = field(default_factory=list)
    ending: bool = False

    @property
    def record(self) -> SchedulerRecord:
        return SchedulerRecord(self.owner, NOW, NOW, self.ending, self.claim and self.claim.as_dict())

    @property
    def runs(self) -> Slots:
        return Slots(len(self.running), {"p": self.running.count("p")})

    def beat(self, everybody: list[One]) -> Portion:
        found = portion(TOTAL, self.runs, self.owner, [one.record for one in everybody], ending=self.ending)
        self.claim, self.room = found.claim, found.room
        return found

    def start(self, pool: str) -> None:
        if self.runs.all < self.room.all and (not pool or self.runs.pools[pool] < self.room.pools[pool]):
            self.running.append(pool)


def test_who_comes_begins_with_what_is_left() -> None:
    first, second = One("first"), One("second")
    assert first.beat([first]).settled
    first.running += ["", "", "", "p"]
    both = [first, second]
    assert second.beat(both).room == Slots(0, {"p": 0})
    found = first.beat(both)
    assert (found.share, found.claim) == (Slots(2, {"p": 1}), Slots(4, {"p": 1}))
    assert second.beat(both).room == Slots(0, {"p": 1})
    first.running[:3] = []
    assert first.beat(both).settled
    assert second.beat(both).settled
    assert second.room == Slots(2, {"p": 1})


def test_who_ends_leaves_its_share_to_the_others() -> None:
    first, second = One("first", ending=True), One("second")
    first.running += ["", ""]
    first.beat([first, second])
    assert second.beat([first, second]).share == TOTAL
    assert second.room == Slots(2, {"p": 2})
    assert second.beat([second]).settled


@pytest.mark.parametrize("seed", range(40))
def test_together_they_never_run_more_than_one_alone_would(seed: int) -> None:
    chance, everybody = random.Random(seed), list[One]()
    for number in range(400):
        if not everybody or (len(everybody) < 6 and chance.random() < 0.02):
            everybody.append(One(f"{number}"))
        one = chance.choice(everybody)
        match chance.randrange(5):
            case 0 | 1:
                one.beat(everybody)
            case 2 | 3:
                one.start(chance.choice(("", "p")))
            case _ if one.running:
                one.running.remove(chance.choice(one.running))
        if chance.random() < 0.01:
            one.ending = True
        everybody = [o for o in everybody if not (o.ending and not o.running)]
        assert sum(o.runs.all for o in everybody) <= sum(o.claim.all for o in everybody if o.claim) <= TOTAL.all
        assert sum(o.runs.pools["p"] for o in everybody) <= TOTAL.pools["p"]
    everybody = [o for o in everybody if not o.ending] or [One("the last")]
    for one in 2 * everybody:
        one.running.clear()
        one.beat(everybody)
    assert sum(o.room.all for o in everybody) == TOTAL.all
    assert sum(o.room.pools["p"] for o in everybody) == TOTAL.pools["p"]


def test_what_has_no_share_is_left_to_others() -> None:
    assert [Slots(1, {"p": 0}).admits(pools) for pools in ((), ("q", "p"), ("q",))] == [True, False, True]
    assert not Slots(0, {"p": 1}).admits(["p"])


TASKS = [TableName(LAKE, ("s",), f"t{number}") for number in range(400)]


def _begun(left: dict[TableName, float], rank: Rank) -> list[TableName]:
    dispatch = Dispatch[TableName](20)
    dispatch.draw(Dag({task: () for task in TASKS}), own_share_first(left, rank))
    dispatch.add(TASKS)
    return list(dispatch.start())


@pytest.mark.parametrize("schedulers", [2, 5, 10])
def test_several_schedulers_begin_with_different_tasks(schedulers: int) -> None:
    left = {task: float(place % 7) for place, task in enumerate(TASKS)}
    begun = [task for place in range(schedulers) for task in _begun(left, Rank(place, schedulers))]
    assert len(begun) == len(set(begun)) == 20 * schedulers


def test_a_task_more_urgent_by_far_is_begun_by_whoever_is_free() -> None:
    left = dict.fromkeys(TASKS, 1.0) | {TASKS[7]: 2.0 + PREFERENCE}
    assert all(_begun(left, Rank(place, 5))[0] == TASKS[7] for place in range(5))


def test_tasks_of_others_are_begun_where_nothing_own_is_left() -> None:
    dispatch = Dispatch[TableName](len(TASKS))
    dispatch.draw(Dag({task: () for task in TASKS}), own_share_first(dict.fromkeys(TASKS, 1.0), Rank(1, 3)))
    dispatch.add(TASKS)
    assert set(dispatch.start()) == set(TASKS)


def test_a_single_scheduler_begins_with_the_most_urgent_tasks() -> None:
    left = {task: float(place) for place, task in enumerate(TASKS)}
    assert _begun(left, Rank()) == TASKS[:-21:-1]
