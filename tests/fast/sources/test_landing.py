"""When landings wait and when they end, with a source in which nothing was committed."""

from __future__ import annotations

import datetime as dt
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from catalog_kit.ready import ready_project
from catalog_kit.samples import lake, see
from kit.waiting import until

from headrace.api.facade import Headrace
from headrace.catalog import Catalog, DatabaseSource, Mirror, Publication, SourceMove, SourceStatus
from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.events import (
    Events,
    Notice,
    RefreshFailed,
    RefreshGivenUp,
    RefreshStarted,
    StageFinished,
    StageProgressed,
    StageStarted,
)
from headrace.landing.captured_nodes import add_node, drop_node, move_node
from headrace.landing.captured_tables import add_tables
from headrace.landing.lander import Lander
from headrace.landing.mirror_writer import MirrorWriter
from headrace.landing.resting_nodes import RestingNodes
from headrace.landing.shared_keys import KEY_ON_TWO_NODES
from headrace.landing.source_leases import source_resource
from headrace.refresh.held_leases import holding_leases
from headrace.results.source_results import LandingResult
from headrace.sources.capture import Json, Landing
from headrace.sources.interruption import interruptible
from headrace.sources.nodes.nodes_capture import NodesCapture, NodeSet
from headrace.sources.postgres.postgres_kind import POSTGRES
from headrace.sources.source_kind import SourceRequest

OPTIONS = {"url": "postgresql://db/shop", "tables": {"items": ["public", "items"]}}
MIRROR = Mirror(lake("shop.items"), lake("_headrace.shop_items_log"))


class Still:
    """A capture of a database in which nothing happens, and never all is read."""

    def __init__(self, _: DatabaseSource, told: Callable[[str], None] = lambda _: None) -> None:
        self.told = told
        self.caught_up = False

    def begin(self) -> Landing:
        return self.land({"lsn": 1})

    def land(self, position: Mapping[str, Any]) -> Landing:
        return Landing((), position, keep_position=False, transactions=0, rows=0, caught_up=self.caught_up)

    def acknowledge(self, position: Mapping[str, Any]) -> None:
        """Nothing was published."""

    def remove(self) -> None:
        """Nothing was installed."""

    def clear(self) -> None:
        """There are no files."""

    def sweep(self, age: dt.timedelta | None) -> None:
        """Nor any of former landings."""


class Installed(Still):
    """A capture of a source with shards, which installs slots on servers that have nothing to land."""

    slots: ClassVar[set[str]] = set()
    refused = False

    def __init__(self, source: DatabaseSource, told: Callable[[str], None] = lambda _: None) -> None:
        super().__init__(source, told)
        self.mine = {node: of["slot"] for node, of in source.options["nodes"].items()}

    def renew(self, position: Mapping[str, Any], _: object) -> Landing:
        at = position["nodes"]
        self.told("copy: 1 row")
        self.slots.update(slot for node, slot in self.mine.items() if node not in at)
        if self.refused:
            raise EnvironmentFault("SOURCE_BUSY", "Others hold it.")
        return replace(self.land({"nodes": {node: {"lsn": 1} for node in self.mine}}), keep_position=True)

    def remove(self) -> None:
        self.slots.difference_update(self.mine.values())


class Behind(Lander):
    """Lands after others have done something to the source that it has looked at."""

    others: Callable[[], object] = staticmethod(lambda: None)

    def renew(self, *said: Any) -> LandingResult:
        self.others()
        return super().renew(*said)


@pytest.fixture
def hr(tmp_path: Path) -> Headrace:
    return Headrace(ready_project(tmp_path / "shop"))


@pytest.fixture
def catalog(hr: Headrace) -> Catalog:
    catalog = hr._catalog
    catalog.create_source("shop", "postgres", OPTIONS, [MIRROR])
    catalog.publish(Publication(sources=(SourceMove("shop", None, {"lsn": 1}, ()),)))
    return catalog


def writer(hr: Headrace) -> MirrorWriter:
    return MirrorWriter(hr._catalog, hr._lazy, Events(), "file:///nowhere", 2)


def lander(hr: Headrace, patience: float = 0.0) -> Lander:
    return Lander(hr._catalog, Events(), Still, writer(hr), {}, patience=patience)


@pytest.fixture
def sharded(hr: Headrace, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], Behind]:
    """Make landers of a source with the shard s1, which look at it before others do something to it."""
    monkeypatch.setattr(Installed, "slots", set())
    options = POSTGRES.options("shop", SourceRequest("", ["items"], {"shards": ["postgresql://a/x"]}))
    hr._catalog.create_source("shop", "postgres", options, [MIRROR])
    slots = [of["slot"] for of in options["nodes"].values()]
    begun = SourceMove("shop", None, {"nodes": {"s1": {"lsn": 1}}}, activates=True)
    hr._catalog.publish(Publication(sources=(begun,)))
    Installed.slots.update(slots)

    def behind(others: Callable[[], object] = lambda: None) -> Behind:
        made = Behind(hr._catalog, Events(), Installed, writer(hr), {})
        monkeypatch.setattr(made, "others", others)
        return made

    return behind


def in_use(hr: Headrace) -> dict[str, str]:
    """Return the slots of a source's shards."""
    with hr._catalog.reading() as reader:
        source = reader.source("shop")
    assert (source.position or {})["nodes"].keys() == source.options["nodes"].keys()
    return {node: of["slot"] for node, of in source.options["nodes"].items()}


def added(url: str) -> Callable[[Json], Json]:
    return lambda options: POSTGRES.with_node("shop", options, {"url": f"postgresql://{url}/x"})


def named_s1(options: Json) -> Json:
    return POSTGRES.with_node("shop", options, {"url": "postgresql://b/x", "name": "s1"})


def moved(url: str) -> Callable[[Json], Json]:
    return lambda options: POSTGRES.moved_node("shop", options, "s2", f"postgresql://{url}/x")


def test_shards_change_beside_what_others_change(hr: Headrace, sharded: Callable[..., Behind]) -> None:
    """What others published between looking at a source and changing it stays, and no slot is left over."""
    add_node(sharded(lambda: add_node(sharded(), "shop", added("b"))), "shop", added("c"))
    assert list(in_use(hr)) == ["s1", "s2", "s3"]
    assert set(in_use(hr).values()) == Installed.slots
    with hr._catalog.reading() as reader:
        options = reader.source("shop").options
    assert [of["url"] for of in options["nodes"].values()] == [f"postgresql://{at}/x" for at in "abc"]
    move_node(sharded(lambda: move_node(sharded(), "shop", moved("d"), "s2")), "shop", moved("e"), "s2")
    assert set(in_use(hr).values()) == Installed.slots
    without = partial(POSTGRES.without_node, "shop", node="s2")
    drop_node(sharded(lambda: move_node(sharded(), "shop", moved("f"), "s2")), "shop", without, "s2")
    assert list(in_use(hr)) == ["s1", "s3"]
    assert set(in_use(hr).values()) == Installed.slots


def test_a_table_that_others_add_stays_when_a_shard_is_added(hr: Headrace, sharded: Callable[..., Behind]) -> None:
    def others() -> None:
        add_tables(sharded(), "shop", lambda options: POSTGRES.with_tables(options, ["more"], {}), ["more"])

    add_node(sharded(others), "shop", added("b"))
    with hr._catalog.reading() as reader:
        source = reader.source("shop")
    assert set(source.options["tables"]) == {"items", "more"} == {m.name.table for m in source.mirrors}


def test_a_shard_that_cannot_be_added_leaves_no_slot(
    hr: Headrace, sharded: Callable[..., Behind], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = in_use(hr)

    def others() -> None:
        monkeypatch.setattr(Installed, "refused", False)
        add_node(sharded(), "shop", added("b"))
        monkeypatch.setattr(Installed, "refused", True)

    with pytest.raises(EnvironmentFault, match="SOURCE_BUSY"):
        add_node(sharded(others), "shop", added("c"))
    assert list(in_use(hr)) == ["s1", "s2"]
    assert set(in_use(hr).values()) == Installed.slots > set(before.values())


class Killed(BaseException):
    """In place of what kills a process: nothing that it would do then is done."""


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object], str], None]:
    """Change nodes in a process that is killed, while it copies or once all is published."""

    def kill(*_: object) -> None:
        raise Killed

    def change(what: Callable[[], object], when: str) -> None:
        with monkeypatch.context() as patch:
            patch.setattr("headrace.landing.captured_nodes._take_away", kill)
            if when == "copying":
                patch.setattr(Catalog, "publish_or_settle", kill)
            with pytest.raises(Killed):
                what()

    return change


@pytest.mark.parametrize("when", ["copying", "published"])
@pytest.mark.parametrize("change", ["add", "move", "drop"])
def test_what_a_killed_process_leaves_on_servers_is_removed_later(
    hr: Headrace,
    sharded: Callable[..., Behind],
    killed: Callable[[Callable[[], object], str], None],
    monkeypatch: pytest.MonkeyPatch,
    when: str,
    change: str,
) -> None:
    """A slot that nobody knows of would keep its server's log for ever."""
    if change != "add":
        add_node(sharded(), "shop", added("b"))
    before, removed = in_use(hr), partial(POSTGRES.without_node, "shop", node="s2")
    act: dict[str, Callable[[], object]] = {
        "add": lambda: add_node(sharded(), "shop", added("b")),
        "move": lambda: move_node(sharded(), "shop", moved("c"), "s2"),
        "drop": lambda: drop_node(sharded(), "shop", removed, "s2"),
    }
    killed(act[change], when)
    now = in_use(hr)
    assert (now == before) is (when == "copying")
    assert Installed.slots >= set(now.values())
    if (change, when) not in {("add", "published"), ("drop", "copying")}:
        assert Installed.slots > set(now.values())
    monkeypatch.setattr(type(POSTGRES), "look", lambda *_, **__: None)
    monkeypatch.setattr(hr.sources._watch, "_open_capture", Installed)
    with holding_leases(hr._catalog, [source_resource("shop")]):  # somebody may just have installed it
        hr.sources._watch.landed("shop", None)
    assert hr._catalog.source("shop").captures
    hr.sources._watch._looked.clear()
    hr.sources._watch.landed("shop", None)
    assert Installed.slots == set(now.values())
    assert not hr._catalog.source("shop").captures


@pytest.mark.parametrize("force", [False, True])
def test_what_cannot_be_removed_is_told_once_and_tried_again(
    hr: Headrace,
    sharded: Callable[..., Behind],
    killed: Callable[[Callable[[], object], str], None],
    monkeypatch: pytest.MonkeyPatch,
    force: bool,
) -> None:
    killed(lambda: add_node(sharded(), "shop", added("b")), "copying")
    [left] = Installed.slots - set(in_use(hr).values())
    told, away, asked = list[object](), [True], list[str]()
    removing = Installed.remove

    def remove(self: Installed) -> None:
        asked.extend(self.mine.values())
        if left in self.mine.values() and away[0]:
            raise EnvironmentFault("SOURCE_UNREACHABLE", "It is away.", retryable=True)
        removing(self)

    monkeypatch.setattr(Installed, "remove", remove)
    monkeypatch.setattr(type(POSTGRES), "look", lambda *_, **__: None)
    monkeypatch.setattr(hr.sources._watch, "_open_capture", Installed)
    hr.events.subscribe(told.append)
    for again in (False, True, True):
        hr.sources._watch._looked.clear()
        if again:
            hr.sources._watch._left.clear()
        for _ in range(2):
            hr.sources._watch.landed("shop", None)
            hr.sources._watch._looked.clear()
    assert asked == [left] * 3
    assert [left in event.message for event in told if isinstance(event, Notice)] == [True]
    if force:
        sharded().drop("shop", force=True)
        assert Installed.slots == {left}
        return
    with pytest.raises(EnvironmentFault, match="--force"):
        sharded().drop("shop")
    away.clear()
    away.append(False)
    sharded().drop("shop")
    assert Installed.slots == set()


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("SHARD_EXISTS", lambda lander: add_node(lander, "shop", named_s1)),
        ("SHARD_UNKNOWN", lambda lander: move_node(lander, "shop", moved("b"), "s2")),
        (
            "SOURCE_WITHOUT_TABLES",
            lambda lander: drop_node(lander, "shop", partial(POSTGRES.without_node, "shop", node="s1"), "s1"),
        ),
    ],
)
def test_what_is_refused_by_its_words_begins_nothing(
    sharded: Callable[..., Behind], code: str, change: Callable[[Lander], object]
) -> None:
    """Who follows events would wait for the end of a landing that never was one."""
    lander, told = sharded(), list[object]()
    lander.events.subscribe(told.append)
    with pytest.raises(UserError, match=code):
        change(lander)
    assert told == []


@pytest.mark.parametrize("held", [True, False])
def test_who_follows_events_waits_for_no_end_of_a_copy_that_comes_to_nothing(
    hr: Headrace, sharded: Callable[..., Behind], held: bool
) -> None:
    """Because others hold the source, or there was nothing to copy."""
    lander, told = sharded(), list[object]()
    lander.events.subscribe(told.append)
    with holding_leases(hr._catalog, [source_resource("shop" if held else "other")]):
        if held:
            with pytest.raises(EnvironmentFault, match="LEASE_HELD"):
                lander.resnapshot("shop", [MIRROR.name])
        else:
            lander.resnapshot("shop", [MIRROR.name])
    ends = [type(event) for event in told if not isinstance(event, StageStarted | StageProgressed | StageFinished)]
    assert ends == [RefreshStarted, RefreshGivenUp]


@pytest.mark.parametrize("refused", [True, False])
def test_each_stage_of_a_landing_ends_where_the_next_one_begins(
    sharded: Callable[..., Behind], monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    """How far it is makes no stage; one that fails ends with the landing."""
    monkeypatch.setattr(Installed, "refused", refused)
    lander, told = sharded(), list[object]()
    lander.events.subscribe(told.append)
    with pytest.raises(EnvironmentFault, match="SOURCE_BUSY") if refused else nullcontext():
        lander.resnapshot("shop", [MIRROR.name])
    stages = [(type(e), e.stage) for e in told if isinstance(e, StageStarted | StageProgressed | StageFinished)]
    read = [(StageStarted, "copy"), (StageProgressed, "copy")]
    ended = [(StageFinished, "copy"), (StageStarted, "publish"), (StageFinished, "publish")]
    assert stages == read + ([] if refused else ended)
    assert isinstance(told[len(stages) + 1], RefreshFailed if refused else RefreshGivenUp)


def test_a_landing_ends_between_two_publications(hr: Headrace, catalog: Catalog) -> None:
    ended = threading.Event()
    ended.set()
    assert len(lander(hr).land("shop", ended)) == 1


@pytest.mark.parametrize("overtaken", [False, True])
def test_a_landing_that_another_has_overtaken_does_not_stop_the_source(
    hr: Headrace, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, overtaken: bool
) -> None:
    """Its process slept, and lost its lease to one that has published and moved the slot."""

    def land(*_: object) -> Landing:
        if overtaken:
            catalog.publish(Publication(sources=(SourceMove("shop", {"lsn": 1}, {"lsn": 2}, ()),)))
        raise UserError("SLOT_LOST", "Somebody else moved the slot.")

    monkeypatch.setattr(Still, "land", land)
    with pytest.raises(UserError, match="SLOT_LOST"):
        lander(hr).land("shop")
    assert (hr._catalog.source("shop").status is SourceStatus.STOPPED) is not overtaken


def test_nodes_that_nothing_is_landed_without_are_named_by_the_source(hr: Headrace, catalog: Catalog) -> None:
    """Or a table that was altered there would be copied at each landing; each failure is told once."""
    down: dict[str, HeadraceError] = {"eu": EnvironmentFault("NODES_DIFFER", "differs"), "us": UserError("X", "is off")}
    told, at = list[object](), {name: {"lsn": name} for name in ("eu", "us")}
    catalog.publish(Publication(sources=(SourceMove("shop", {"lsn": 1}, {"nodes": at}, ()),)))

    class Node(Still):
        def land(self, position: Mapping[str, Any]) -> Landing:
            if position["lsn"] in down:
                raise down[position["lsn"]]
            return super().land(position)

    def opened(source: DatabaseSource, _: object) -> NodesCapture:
        return NodesCapture(NodeSet({name: Node(source) for name in at}, {}, strict=True))

    def failures() -> dict[str, str]:
        return dict(hr._catalog.source("shop").held)

    events = Events()
    events.subscribe(told.append)
    landing = Lander(hr._catalog, events, opened, writer(hr), {})
    ended = threading.Event()
    ended.set()
    for _ in range(2):
        with pytest.raises(HeadraceError, match="eu"):
            landing.land("shop", ended)
        assert failures() == {"eu": "NODES_DIFFER", "us": "X"}
    assert [of.code for of in told if isinstance(of, RefreshFailed)] == ["NODES_DIFFER", "X"]
    del down["us"]
    with pytest.raises(HeadraceError, match="eu"):
        landing.land("shop", ended)
    assert failures() == {"eu": "NODES_DIFFER"}
    down.clear()
    landing.land("shop", ended)
    assert failures() == {}


def test_a_key_on_two_nodes_is_told_once_though_another_node_is_down_meanwhile(
    hr: Headrace, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written then, so that nobody knows whether the key is still there."""
    fault, gone = EnvironmentFault(KEY_ON_TWO_NODES, "it is on both"), EnvironmentFault("SOURCE_LOST", "is gone")
    told, at, down, twice = list[object](), {name: {"lsn": name} for name in ("eu", "us")}, set[str](), {"eu"}
    catalog.publish(Publication(sources=(SourceMove("shop", {"lsn": 1}, {"nodes": at}, ()),)))

    class Node(Still):
        def land(self, position: Mapping[str, Any]) -> Landing:
            if position["lsn"] in down:
                raise gone
            return super().land(position)

    def opened(source: DatabaseSource, _: object) -> NodesCapture:
        return NodesCapture(NodeSet({name: Node(source) for name in at}, {}, strict=True))

    def brought(_: object, capture: NodesCapture, landing: Landing, *__: object) -> tuple[Landing, dict[Any, Any]]:
        for node in twice:
            landing = capture.without(node, fault)
        return landing, {}

    events = Events()
    events.subscribe(told.append)
    clock = itertools.count(step=1000.0)
    landing = Lander(hr._catalog, events, opened, writer(hr), {}, rests=RestingNodes(clock.__next__))
    monkeypatch.setattr(landing._attempts, "_brought", brought)
    for now_down, code in ([], KEY_ON_TWO_NODES), (["us"], "SOURCE_LOST"), ([], KEY_ON_TWO_NODES):
        down.clear()
        down.update(now_down)
        with pytest.raises(EnvironmentFault, match=code):
            landing.land("shop")
        assert dict(hr._catalog.source("shop").held) == {"eu": KEY_ON_TWO_NODES} | dict.fromkeys(down, "SOURCE_LOST")
    assert [of.code for of in told if isinstance(of, RefreshFailed)] == [KEY_ON_TWO_NODES, "SOURCE_LOST"]
    twice.clear()
    ended = threading.Event()
    ended.set()
    landing.land("shop", ended)
    assert dict(hr._catalog.source("shop").held) == {}


@pytest.mark.parametrize(
    ("code", "strict", "reads"),
    [
        (KEY_ON_TWO_NODES, False, {"eu": 20, "us": 6}),  # after 0, 1, 2, 4, 8, … seconds
        (KEY_ON_TWO_NODES, True, {"eu": 6, "us": 6}),  # nothing can be landed without it
        ("SOURCE_UNREACHABLE", False, {"eu": 20, "us": 5}),  # after 1, 2, 4, … seconds, each minute at least
        ("SOURCE_UNREACHABLE", True, {"eu": 20, "us": 20}),
        ("NODES_DIFFER", False, {"eu": 20, "us": 20}),
    ],
)
def test_a_node_that_gives_nothing_is_read_again_after_a_pause_that_grows(
    hr: Headrace, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, code: str, strict: bool, reads: dict[str, int]
) -> None:
    """Landing others twice a second neither waits for it nor reads all that it has committed."""
    fault, read, seconds, limits = EnvironmentFault(code, "gives nothing"), Counter[str](), [0.0], list[int]()
    written, note = list[str](), hr._catalog.note_node_failures
    at, failing = {name: {"lsn": name} for name in ("eu", "us")}, {"us"}
    catalog.publish(Publication(sources=(SourceMove("shop", {"lsn": 1}, {"nodes": at}, (), activates=True),)))
    landings = dict[str, int]()

    class Node(Still):
        def land(self, position: Mapping[str, Any]) -> Landing:
            read[position["lsn"]] += 1
            if position["lsn"] in failing and code != KEY_ON_TWO_NODES:
                raise fault
            return replace(super().land(position), caught_up=True)

    def opened(source: DatabaseSource, _: object) -> NodesCapture:
        limits.append(landings.get("shop", 0))
        return NodesCapture(NodeSet({name: Node(source) for name in at}, {}, strict=strict))

    def brought(_: object, capture: NodesCapture, landing: Landing, *__: object) -> tuple[Landing, dict[Any, Any]]:
        found = code == KEY_ON_TWO_NODES and failing - landing.held.keys()
        return (capture.without("us", fault) if found else landing), {}

    rests = RestingNodes(lambda: seconds[0])
    lander = Lander(hr._catalog, Events(), opened, writer(hr), {}, landings, rests)
    monkeypatch.setattr(lander._attempts, "_brought", brought)
    monkeypatch.setattr(hr._catalog, "note_node_failures", lambda *of: (written.append(of[0]), note(*of)))
    monkeypatch.setattr(hr.sources, "_rests", rests)
    monkeypatch.setattr(hr.sources, "_lander", lambda *_: lander)
    monkeypatch.setattr(hr.sources._watch, "landed", lambda *_: None)
    for _ in range(20):
        with pytest.raises(EnvironmentFault, match=code) if strict else nullcontext():
            hr.sources.land_due("shop", threading.Event(), nullcontext)
        assert dict(hr._catalog.source("shop").held) == {"us": code}
        seconds[0] += 1
    assert read == reads
    assert len(written) == reads["us"], "what is known of a node that rests is not written at each landing"
    assert limits.count(-1) == (reads["us"] - 1 if code == KEY_ON_TWO_NODES else 0), "all there is, where it is read"
    failing.clear()
    hr.sources.land("shop")  # who asks for it has it tried
    assert read["us"] == reads["us"] + 1
    assert dict(hr._catalog.source("shop").held) == {}


def test_nodes_out_of_reach_rest_only_where_others_are_landed_meanwhile() -> None:
    gone, twice = EnvironmentFault("SOURCE_LOST", "is gone"), EnvironmentFault(KEY_ON_TWO_NODES, "is twice")
    seconds = [0.0]
    rests = RestingNodes(lambda: seconds[0])
    rests.note("shop", {"eu": gone, "us": gone}, ())
    assert rests.of("shop", ["eu", "us"], strict=False) == {}
    assert list(rests.of("shop", ["eu", "us", "asia"], strict=False)) == ["eu", "us"]
    for _ in range(20):
        rests.note("shop", {"eu": gone, "us": twice}, ())
    assert list(rests.of("shop", ["eu", "us"], strict=False)) == ["us"]
    assert list(rests.of("shop", ["eu", "us"], strict=True)) == ["us"]
    assert not rests.read_all("shop")
    seconds[0] += 60
    assert list(rests.of("shop", ["eu", "us", "asia"], strict=False)) == ["us"]
    seconds[0] += 240
    assert rests.read_all("shop")
    rests.note("shop", {"us": twice}, ["us"])
    assert rests.read_all("shop"), "one that was not read has not failed again"
    rests.note("shop", {}, ())
    assert not rests.read_all("shop")
    for _ in range(2):
        rests.note("shop", {"us": twice}, (), 20.0)
    seconds[0] += 79
    assert not rests.read_all("shop"), "a landing that takes long is not made most of the time"
    seconds[0] += 1
    assert rests.read_all("shop")


def test_a_key_that_takes_long_to_find_holds_up_others_for_a_fifth_of_the_time() -> None:
    seconds, twice = [0.0], EnvironmentFault(KEY_ON_TWO_NODES, "A row is on two nodes.")
    rests = RestingNodes(lambda: seconds[0])
    for took in (0.0, 600.0, 1800.0):
        rests.note("shop", {"us": twice}, (), took)
        seconds[0] += 4 * took - 1
        assert not took or list(rests.of("shop", ["eu", "us"], strict=False)) == ["us"]
        seconds[0] += 2


def test_a_long_landing_of_others_does_not_keep_a_node_that_was_away() -> None:
    seconds, gone = [0.0], EnvironmentFault("SOURCE_UNREACHABLE", "No answer.")
    rests = RestingNodes(lambda: seconds[0])
    for _ in range(2):
        rests.note("shop", {"us": gone}, (), 600.0)
    seconds[0] += 61
    assert rests.of("shop", ["eu", "us"], strict=False) == {}


def test_a_node_that_was_removed_does_not_rest() -> None:
    twice = EnvironmentFault(KEY_ON_TWO_NODES, "A row is on two nodes.")
    rests = RestingNodes(lambda: 0.0)
    for _ in range(2):
        rests.note("shop", {"us": twice}, ())
    assert list(rests.of("shop", ["eu", "us"], strict=True)) == ["us"]
    assert rests.of("shop", ["eu", "asia"], strict=True) == {}


def test_a_move_that_fails_is_no_failure_of_the_shard_that_stays(hr: Headrace, sharded: Callable[..., Behind]) -> None:
    sharded()

    class Gone(Still):
        def begin(self) -> Landing:
            raise EnvironmentFault("SOURCE_LOST", "is gone")

    def opened(source: DatabaseSource, _: object) -> NodesCapture:
        return NodesCapture(NodeSet({name: Gone(source) for name in source.options["nodes"]}, {}))

    landing = Lander(hr._catalog, Events(), opened, writer(hr), {})
    elsewhere = partial(POSTGRES.moved_node, "shop", node="s1", address="postgresql://b/x")
    with pytest.raises(EnvironmentFault, match="SOURCE_LOST"):
        move_node(landing, "shop", elsewhere, "s1")
    assert dict(hr._catalog.source("shop").held) == {}


def test_tables_are_not_added_to_what_is_held_back(hr: Headrace, catalog: Catalog) -> None:
    catalog.set_source_status("shop", SourceStatus.ACTIVE)
    see(catalog, MIRROR.name)
    catalog.close_gates([MIRROR.name])
    with pytest.raises(UserError, match="SOURCE_GATED"):
        add_tables(lander(hr), "shop", dict, ["orders"])


def test_sources_are_left_out_when_it_is_to_end(hr: Headrace, catalog: Catalog) -> None:
    catalog.set_source_status("shop", SourceStatus.ACTIVE)
    ended = threading.Event()
    ended.set()
    assert hr.sources.land_for(None, until=ended) is None  # or it would say that it cannot reach the server


def test_a_verb_waits_for_who_lands_the_same_source(hr: Headrace, catalog: Catalog) -> None:
    ended, holding = threading.Event(), threading.Event()
    ended.set()

    def hold() -> None:
        with holding_leases(catalog, [source_resource("shop")]):
            holding.set()
            refused.wait(180)

    refused = threading.Event()
    other = threading.Thread(target=hold)
    other.start()
    assert holding.wait(180)
    with pytest.raises(EnvironmentFault, match="LEASE_HELD"):
        lander(hr).land("shop", ended)
    refused.set()
    assert len(lander(hr, patience=20).land("shop", ended)) == 1
    other.join()


@pytest.mark.parametrize(("ended", "patience"), [(None, 60.0), (threading.Event(), 0.0)])
def test_only_who_comes_again_has_no_patience(
    hr: Headrace, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, ended: threading.Event | None, patience: float
) -> None:
    seen: list[float] = []
    catalog.set_source_status("shop", SourceStatus.ACTIVE)
    monkeypatch.setattr(Lander, "land", lambda self, *_: seen.append(self.patience) or ())
    hr.sources.land_for(None, until=ended)
    assert seen == [patience]


class Busy(Still):
    """A capture of a database that always has something to read, or does not answer."""

    hangs: ClassVar[threading.Event] = threading.Event()
    reads: ClassVar[list[str]] = []

    def __init__(self, source: DatabaseSource, told: Callable[[str], None] = lambda _: None) -> None:
        super().__init__(source, told)
        self.name = source.name
        self.caught_up = True

    def land(self, position: Mapping[str, Any]) -> Landing:
        self.reads.append(self.name)
        if self.name == "hangs":
            self.hangs.wait(60)
        if self.name == "away":
            raise EnvironmentFault("SOURCE_UNREACHABLE", "It is away.", retryable=True)
        return super().land(position)


def several(hr: Headrace, monkeypatch: pytest.MonkeyPatch, **status: SourceStatus) -> None:
    """Make sources of that status, one mirror each, whose captures are `Busy`."""
    monkeypatch.setattr(Busy, "hangs", threading.Event())
    monkeypatch.setattr(Busy, "reads", [])
    monkeypatch.setattr(hr.sources, "_capture", Busy)
    monkeypatch.setattr(hr.sources._watch, "landed", lambda *_: None)
    for name, of in status.items():
        mirror = Mirror(lake(f"{name}.items"), lake(f"_headrace.{name}_items_log"))
        hr._catalog.create_source(name, "postgres", OPTIONS, [mirror])
        if of is not SourceStatus.NEW:
            hr._catalog.publish(Publication(sources=(SourceMove(name, None, {"lsn": 1}, (), activates=True),)))
            hr._catalog.set_source_status(name, of, "SOURCE_LOST", "It was lost.")


@pytest.mark.parametrize("other", ["hangs", "away"])
def test_a_server_that_fails_or_hangs_delays_no_other(
    hr: Headrace, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    monkeypatch.setattr("headrace.scheduler.source_and_sink_work.landings.FAILED_PAUSE", 60.0)
    several(hr, monkeypatch, **{other: SourceStatus.ACTIVE, "runs": SourceStatus.ACTIVE})
    stopping = threading.Event()
    run = threading.Thread(target=lambda: hr.run(stopping=stopping))
    run.start()
    try:
        until(lambda: Busy.reads.count("runs") >= 4, seconds=20)
        assert Busy.reads.count(other) == 1
    finally:
        Busy.hangs.set()
        stopping.set()
        run.join()


def test_a_source_that_is_stopped_is_told_after_the_others_were_landed(
    hr: Headrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    several(hr, monkeypatch, lost=SourceStatus.STOPPED, runs=SourceStatus.ACTIVE)
    assert hr.sources.land_for(None) is not None
    assert not hr.run(once=True).landed
    assert Busy.reads == ["runs", "runs"]


def test_a_source_that_is_being_added_keeps_nobody_from_landing_the_others(
    hr: Headrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    several(hr, monkeypatch, added=SourceStatus.NEW, runs=SourceStatus.ACTIVE)
    told: list[object] = []
    hr.events.subscribe(told.append)
    assert hr.sources.land_for(None) is None
    assert hr.run(once=True).landed
    assert Busy.reads == ["runs", "runs"]
    assert not [event for event in told if isinstance(event, Notice)]


def test_sources_are_landed_side_by_side(hr: Headrace, monkeypatch: pytest.MonkeyPatch) -> None:
    several(hr, monkeypatch, **dict.fromkeys("abcd", SourceStatus.ACTIVE))
    together = threading.Barrier(4)

    class Meets(Busy):
        def land(self, position: Mapping[str, Any]) -> Landing:
            together.wait(20)
            if self.name in "bc":
                raise EnvironmentFault("SOURCE_UNREACHABLE", f"{self.name} is away.", retryable=True)
            return super().land(position)

    monkeypatch.setattr(hr.sources, "_capture", Meets)
    failure = hr.sources.land_for(None)
    assert failure is not None
    assert failure.message == "b is away."
    assert sorted(Busy.reads) == ["a", "d"]


def test_a_landing_that_is_interrupted_with_others_is_no_failure(hr: Headrace, monkeypatch: pytest.MonkeyPatch) -> None:
    several(hr, monkeypatch, breaks=SourceStatus.ACTIVE, hangs=SourceStatus.ACTIVE, reads=SourceStatus.ACTIVE)
    begun, told = threading.Barrier(3), list[object]()
    hr.events.subscribe(told.append)

    class Interrupted(Busy):
        def land(self, position: Mapping[str, Any]) -> Landing:
            begun.wait(20)
            if self.name == "breaks":
                raise LookupError
            with interruptible(self.hangs.set):
                assert self.hangs.wait(20)
            if self.name == "hangs":
                raise EnvironmentFault("SOURCE_LOST", "The connection broke.", retryable=True)
            return replace(super().land(position), position={"lsn": 2}, keep_position=True)

    monkeypatch.setattr(hr.sources, "_capture", Interrupted)
    with pytest.raises(LookupError):
        hr.sources.land()
    assert hr._catalog.source("hangs").failure is None
    assert hr._catalog.source("reads").position == {"lsn": 1}
    assert not [event for event in told if isinstance(event, RefreshFailed)]
